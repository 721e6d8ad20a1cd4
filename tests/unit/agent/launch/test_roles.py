"""What the tasks of a job with roles find: golden environments by framework, role and index; ports, GPUs, host files, limits."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.launch import environ, role_env, roles
from agent.launch.command import with_files
from agent.starter.process.ports import Ports
from agent.starter.process.spec import Spec, Template
from agent.starter.protocol.part import PortsSpec, TaskSpec
from proto import agent_pb2 as pb

Roles = Sequence[tuple[int, int, int]]


def host(name: str, address: str, placed: Roles, gpus: Sequence[str] = ()) -> pb.HostSlots:
    parts = [pb.RoleSlots(role=role, first=first, count=count) for role, first, count in placed]
    return pb.HostSlots(host=name, slots=sum(part.count for part in parts), address=address, roles=parts, gpus=gpus)


# chief 0 and worker 0 on h1, ps 0, ps 1 and worker 1 on h2
TWO = [host("h1", "10.0.0.1", [(0, 0, 1), (2, 0, 1)]), host("h2", "10.0.0.2", [(1, 0, 2), (2, 1, 1)])]
AT = {
    "CHIEF_0": "10.0.0.1:@LAVA_PORT_0_0@",
    "PS_0": "10.0.0.2:@LAVA_PORT_1_0@",
    "PS_1": "10.0.0.2:@LAVA_PORT_1_1@",
    "WORKER_0": "10.0.0.1:@LAVA_PORT_0_1@",
    "WORKER_1": "10.0.0.2:@LAVA_PORT_1_2@",
}


def text(framework: str = "", *own: pb.Role, **fields: Any) -> pb.JobText:
    plain = [pb.Role(name=name, command=f"./{name}", slots=1, count=9, least=9) for name in ("chief", "ps", "worker")]
    return pb.JobText(roles=list(own) or plain, framework=framework, limits=pb.Limits(core=-1), **fields)


def fields(job: pb.JobText, place: int, hosts: list[pb.HostSlots] = TWO) -> roles.RolePart:
    order = pb.Order(key=7, attempt=2, uid="abc", start=pb.Start(hosts=hosts, place=place, restart=-1))
    return roles.of_host(order, job, "/bin", "10.0.0.1", lambda names: ("/h/" + ",".join(names), "/ranks", "/slots", "/colons"))


def env_of(job: pb.JobText, hosts: list[pb.HostSlots] = TWO) -> dict[str, dict[str, str]]:
    """Task to its own environment."""
    return {task.label: dict(task.env) for place in range(len(hosts)) for task in fields(job, place, hosts).tasks}


def test_every_task_knows_itself_and_all_others() -> None:
    """LAVA_PEER_<ROLE>_<i> of each task, in every task; rank, role and index of its own."""
    job = text()
    for place in range(2):
        shared = fields(job, place).env
        assert {name.removeprefix("LAVA_PEER_"): at for name, at in shared.items() if name.startswith("LAVA_PEER_")} == AT
        assert (shared["LAVA_SIZE"], shared["LAVA_COUNT_PS"], shared["LAVA_PEERS"]) == ("5", "2", "h1:2:10.0.0.1 h2:3:10.0.0.2")
    envs = env_of(job)
    assert {name: env["LAVA_RANK"] for name, env in envs.items()} == {
        "chief[0]": "0",
        "ps[0]": "1",
        "ps[1]": "2",
        "worker[0]": "3",
        "worker[1]": "4",
    }
    assert envs["ps[1]"] == {
        "LAVA_ROLE": "ps",
        "LAVA_INDEX": "1",
        "LAVA_RANK": "2",
        "LAVA_PORT": "@LAVA_PORT_1_1@",
        "LSF_PM_TASKID": "3",
    }


CLUSTER = {"chief": [AT["CHIEF_0"]], "ps": [AT["PS_0"], AT["PS_1"]], "worker": [AT["WORKER_0"], AT["WORKER_1"]]}


@pytest.mark.parametrize("name", ["chief[0]", "ps[0]", "ps[1]", "worker[0]", "worker[1]"])
def test_tf_config_of_each_role_and_index(name: str) -> None:
    """Golden TF_CONFIG."""
    kind, _, index = name.rstrip("]").partition("[")
    assert json.loads(env_of(text("tensorflow"))[name]["TF_CONFIG"]) == {
        "cluster": CLUSTER,
        "task": {"type": kind, "index": int(index)},
        "environment": "cloud",
    }


def test_an_evaluator_is_no_member_of_the_cluster() -> None:
    """It has a TF_CONFIG of its own, and is in nobody's cluster."""
    job = text("tensorflow", pb.Role(name="worker", command="w"), pb.Role(name="evaluator", command="e"))
    config = json.loads(env_of(job, [host("h1", "10.0.0.1", [(0, 0, 1), (1, 0, 1)])])["evaluator[0]"]["TF_CONFIG"])
    assert config["cluster"] == {"worker": ["127.0.0.1:@LAVA_PORT_0_0@"]}
    assert config["task"] == {"type": "evaluator", "index": 0}


def test_a_single_task_of_tensorflow_trains_alone() -> None:
    """As of the operator: with a TF_CONFIG a program would serve a cluster of which it is all."""
    (env,) = env_of(text("tensorflow", pb.Role(name="worker", command="w")), [host("h1", "10.0.0.1", [(0, 0, 1)])]).values()
    assert "TF_CONFIG" not in env
    assert env["LAVA_ROLE"] == "worker"


def torch(rank: int, nproc: int, **more: str) -> dict[str, str]:
    return {
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "@LAVA_PORT_0_0@",
        "WORLD_SIZE": "5",
        "RANK": str(rank),
        "GROUP_RANK": str(rank),
        "NODE_RANK": str(rank),
        "GROUP_WORLD_SIZE": "5",
        "PET_NNODES": "5",
        "PET_NPROC_PER_NODE": str(nproc),
        "PET_NODE_RANK": str(rank),
        **more,
    }


AT_MASTER = {"PET_MASTER_ADDR": "10.0.0.1", "PET_MASTER_PORT": "@LAVA_PORT_0_0@"}


@pytest.mark.parametrize("rank", range(5))
def test_pytorch_has_two_modes(rank: int) -> None:
    """One process a task: global rank and LOCAL_; a launcher a task: its number as a node, and no LOCAL_ at all."""
    name = ["chief[0]", "ps[0]", "ps[1]", "worker[0]", "worker[1]"][rank]

    def own(job: pb.JobText) -> dict[str, str]:
        return {n: v for n, v in env_of(job)[name].items() if not n.startswith(("LAVA_", "LSF_"))}

    assert own(text("pytorch")) == torch(rank, 1, LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", **AT_MASTER)
    assert own(text("pytorch", nproc=4)) == torch(rank, 4, **AT_MASTER)


def test_an_elastic_pytorch_job_meets_at_its_first_task() -> None:
    """C10d at the first task, which alone serves it."""
    roles_ = [pb.Role(name="worker", command="torchrun t.py", least=1, count=4)]
    hosts = [host("h1", "10.0.0.1", [(0, 0, 1)]), host("h2", "10.0.0.2", [(0, 1, 1)])]
    for rank, env in enumerate(env_of(text("pytorch", *roles_, nproc=2), hosts).values()):
        assert {name: env[name] for name in env if name.startswith("PET_RDZV")} == {
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": "10.0.0.1:@LAVA_PORT_0_0@",
            "PET_RDZV_ID": "lava-7-2",
            "PET_RDZV_CONF": f"is_host={1 - rank}",
        }


ONE_OF_EACH = [host("h1", "10.0.0.1", [(0, 0, 1), (1, 0, 1)]), host("h2", "10.0.0.2", [(1, 1, 1), (2, 0, 1)])]


def theirs(framework: str, task: str, *names: str) -> dict[str, str]:
    """What a task has of its framework's, in a job with these roles."""
    job = text(framework, *(pb.Role(name=name, command="x", least=1, count=2) for name in names))
    return {n: v for n, v in env_of(job, ONE_OF_EACH)[task].items() if not n.startswith(("LAVA_", "LSF_"))}


def test_xgboost_and_jax_meet_at_the_first_task() -> None:
    first, port = "10.0.0.1", "@LAVA_PORT_0_0@"
    found = theirs("xgboost", "worker[1]", "master", "worker", "last")
    tracker = {"DMLC_TRACKER_URI": first, "DMLC_TRACKER_PORT": port, "DMLC_NUM_WORKER": "4", "DMLC_TASK_ID": "2"}
    assert found == {"MASTER_ADDR": first, "MASTER_PORT": port, "WORLD_SIZE": "4", "RANK": "2"} | tracker
    numbers = {"NUM_PROCESSES": "4", "PROCESS_ID": "3"}
    assert theirs("jax", "last[0]", "worker", "more", "last") == {
        "COORDINATOR_ADDRESS": first,
        "COORDINATOR_PORT": port,
        "JAX_COORDINATOR_ADDRESS": f"{first}:{port}",
        **numbers,
        **{f"JAX_{name}": number for name, number in numbers.items()},
    }


@pytest.mark.parametrize("names", [("master", "worker", "last"), ("worker", "more", "last")])
def test_paddle_trains_alone_or_with_servers(names: tuple[str, ...]) -> None:
    both = {"PADDLE_MASTER": "10.0.0.1:@LAVA_PORT_0_0@", "PADDLE_NNODES": "4", "PADDLE_JOB_ID": "lava-7-2"}
    mine = {"PADDLE_RANK": "0", "POD_IP": "10.0.0.1"}, {"PADDLE_RANK": "3", "POD_IP": "10.0.0.2"}
    more: tuple[dict[str, str], dict[str, str]] = ({}, {})
    if "master" in names:
        more = {"PADDLE_SERVER_NUM": "1"}, {"PADDLE_TRAINER_NUM": "1"}
    assert theirs("paddle", f"{names[0]}[0]", *names) == both | mine[0] | more[0]
    assert theirs("paddle", "last[0]", *names) == both | mine[1] | more[1]


def test_mxnet_has_a_scheduler_servers_and_workers() -> None:
    """MX_CONFIG, whose ports are numbers, and the variables of ps-lite."""
    env = theirs("mxnet", "worker[0]", "Scheduler", "Server", "worker")
    config = env.pop("MX_CONFIG")
    for place, number in ((0, 0), (0, 1), (1, 0), (1, 1)):
        config = config.replace(f"@LAVA_PORT_{place}_{number}@", f"2{place}{number}")
    assert json.loads(config) == {
        "cluster": {
            "scheduler": [{"url": "10.0.0.1", "port": 200}],
            "server": [{"url": "10.0.0.1", "port": 201}, {"url": "10.0.0.2", "port": 210}],
            "worker": [{"url": "10.0.0.2", "port": 211}],
        },
        "labels": {"scheduler": "", "server": "", "worker": ""},
        "task": {"type": "worker", "index": 0},
    }
    assert env == {
        "DMLC_PS_ROOT_URI": "10.0.0.1",
        "DMLC_PS_ROOT_PORT": "@LAVA_PORT_0_0@",
        "DMLC_NUM_SERVER": "2",
        "DMLC_NUM_WORKER": "1",
        "DMLC_ROLE": "worker",
        "DMLC_NODE_HOST": "10.0.0.2",
        "DMLC_WORKER_ID": "0",
    }


def mpi(nproc: int = 2) -> pb.JobText:
    launcher = pb.Role(name="launcher", command="mpirun --hostfile /etc/mpi/hostfile ./a.out", slots=1, kind="launcher")
    return text("mpi", launcher, pb.Role(name="worker", kind="hold", slots=2), nproc=nproc)


def test_a_launcher_finds_the_workers_slots_alone() -> None:
    """slotsPerWorker of each worker, not the launcher's; it starts late; blaunch serves all hosts."""
    hosts = [host("h1", "10.0.0.1", [(0, 0, 1), (1, 0, 1)]), host("h2", "10.0.0.2", [(1, 1, 1)])]
    first, second = fields(mpi(), 0, hosts), fields(mpi(), 1, hosts)
    env = first.env
    assert (env["LSB_MCPU_HOSTS"], env["LSB_HOSTS"], env["LSB_DJOB_NUMPROC"]) == ("h1 2 h2 2 ", "h1 h1 h2 h2", "4")
    assert env["OMPI_MCA_orte_default_hostfile"] == env["LAVA_HOSTFILE"] == "/slots"
    launcher, held = first.tasks
    assert (launcher.late, launcher.argv) == (True, ("mpirun", "--hostfile", "/slots", "./a.out"))
    assert held.hold
    assert [part.serve and part.serve.hosts for part in (first, second)] == [("h1", "h2")] * 2
    mpich = mpi()
    mpich.framework = "mpich"
    assert fields(mpich, 0, hosts).tasks[0].argv == ("mpirun", "--hostfile", "/colons", "./a.out")
    at_once = mpi()
    at_once.launcher_start = "at_once"
    assert not fields(at_once, 0, hosts).tasks[0].late


def test_a_role_that_waits_for_another_starts_late() -> None:
    made = fields(
        text("", pb.Role(name="a", command="a"), pb.Role(name="b", command="b", late=True)),
        0,
        [host("h1", "10.0.0.1", [(0, 0, 1), (1, 0, 1)])],
    )
    assert [task.late for task in made.tasks] == [False, True]


def test_volcano_finds_its_hosts() -> None:
    """The variables of svc and env, and the files of hosts that commands name in /etc/volcano."""
    job = text("volcano", pb.Role(name="master", command="cat /etc/volcano/work-er.host"), pb.Role(name="work-er", command="w"))
    hosts = [host("h1", "10.0.0.1", [(0, 0, 1), (1, 0, 1)]), host("h2", "10.0.0.2", [(1, 1, 1)])]
    env = env_of(job, hosts)["work-er[1]"]
    assert (env["VC_WORK_ER_HOSTS"], env["VC_WORK_ER_NUM"], env["VC_TASK_INDEX"]) == ("10.0.0.1,10.0.0.2", "2", "1")
    assert fields(job, 0, hosts).tasks[0].argv == ("cat", "/h/h1,h2")


def test_a_file_of_hosts_may_lie_in_a_folder_with_a_space() -> None:
    """A shell reads the command; a variable has the path as it is."""
    role = pb.Role(name="one", command="cat /etc/volcano/one.host | wc -l", env={"AT": "/etc/volcano/one.host"})
    order = pb.Order(key=7, attempt=2, uid="abc", start=pb.Start(hosts=[host("h1", "10.0.0.1", [(0, 0, 1)])], restart=-1))
    files = lambda names: ("/my jobs/hosts", "", "", "")  # noqa: E731
    (task,) = roles.of_host(order, text("volcano", role), "/bin", "10.0.0.1", files).tasks
    assert task.argv is not None
    assert (task.argv[-1], task.env["AT"]) == ("cat '/my jobs/hosts' | wc -l", "/my jobs/hosts")


@pytest.mark.parametrize(
    "line",
    [
        "cat /etc/mpi/hostfile",
        "cat '/etc/mpi/hostfile'",
        'cat "/etc/mpi/hostfile"',
        "sh -c 'cat /etc/mpi/hostfile'",
        """sh -c 'cat "/etc/mpi/hostfile"'""",
        """sh -c 'for at in "$@"; do cat '"$ONE"' < /etc/mpi/hostfile; done' - x""",
        'sh -c "cat /etc/mpi/hostfile"',
        'sh -c "cat \\"/etc/mpi/hostfile\\" \\$NONE"',
        """sh -c "sh -c 'cat /etc/mpi/hostfile'" """,
        """sh -c 'sh -c "cat /etc/mpi/hostfile"'""",
        "echo it\\'s > /dev/null; cat /etc/mpi/hostfile",
    ],
)
@pytest.mark.parametrize("folder", ["plain", "my jobs", "it's $HOME `x`"])
def test_a_shell_finds_a_file_of_hosts_wherever_the_command_names_it(tmp_path: Path, folder: str, line: str) -> None:
    file = tmp_path / folder / "hosts"
    file.parent.mkdir()
    file.write_text("h1\n")
    found = with_files(line, {"/etc/mpi/hostfile": str(file)})
    done = subprocess.run(["/bin/sh", "-c", found], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, check=False)
    assert (done.stdout, done.stderr) == ("h1\n", ""), found
    if folder == "plain":
        assert found == line.replace("/etc/mpi/hostfile", str(file))


def test_each_task_sees_its_own_gpus() -> None:
    """As many as its role asks for, no two tasks the same; a role without GPUs sees none."""
    job = text("", pb.Role(name="ps", command="p"), pb.Role(name="worker", command="w", gpus=2))
    envs = env_of(job, [host("h1", "10.0.0.1", [(0, 0, 1), (1, 0, 2)], ["G0", "G1", "G2", "G3"])])
    assert {name: env["CUDA_VISIBLE_DEVICES"] for name, env in envs.items()} == {
        "ps[0]": "",
        "worker[0]": "G0,G1",
        "worker[1]": "G2,G3",
    }
    assert envs["ps[0]"]["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "CUDA_VISIBLE_DEVICES" not in env_of(text())["ps[0]"]


def test_a_manifest_cannot_say_which_gpus_a_task_sees() -> None:
    """What the part sees holds: the variables of the role's own that name GPUs are dropped."""
    given = {"CUDA_VISIBLE_DEVICES": "0,1", "NVIDIA_VISIBLE_DEVICES": "all", "A": "b"}
    job = text("", pb.Role(name="ps", command="p", env=given))
    env = env_of(job, [host("h1", "10.0.0.1", [(0, 0, 1)])])["ps[0]"]
    assert env["A"] == "b"
    assert not {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"} & set(env)


def test_a_role_has_its_own_command_folder_variables_and_limits() -> None:
    """What a role does not say is the job's."""
    limits = pb.Limits(cpu=60, mem=5, core=-1)
    one = pb.Role(name="a", command="./a x", cwd="/a", env={"A": "1", "LAVA_ROLE": "no"}, limits=limits)
    job = text("", one, pb.Role(name="b", command="b | c", limits=pb.Limits(core=-1)))
    job.limits.file = 7
    first, second = fields(job, 0, [host("h1", "10.0.0.1", [(0, 0, 1), (1, 0, 1)])]).tasks
    assert (first.argv, first.cwd, first.env["A"], first.env["LAVA_ROLE"]) == (("./a", "x"), "/a", "1", "a")
    assert first.rlimits == {"CPU": (60, 90), "FSIZE": (7168, 7168)}
    assert (second.argv, second.rlimits) == (("/bin/sh", "-c", "b | c"), {"FSIZE": (7168, 7168)})
    hosts = [host("h1", "", [(0, 0, 1), (1, 0, 1)])]
    assert [roles.memory_limit(job, hosts, rank) for rank in range(3)] == [5, 0, 0]


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=5))
def test_ranks_are_dense_and_ports_are_each_ones_own(counts: list[list[int]]) -> None:
    """Whatever the placement: ranks 0 to n-1 in the order of role and index, no port twice."""
    hosts, firsts = [], [0, 0, 0]
    for at, own in enumerate(counts):
        hosts.append(host(f"h{at}", f"10.0.0.{at}", [(role, firsts[role], n) for role, n in enumerate(own) if n]))
        firsts = [first + n for first, n in zip(firsts, own, strict=True)]
    peers = role_env.peers_of(hosts)
    assert [peer.rank for peer in peers] == list(range(sum(firsts)))
    assert [(peer.role, peer.index) for peer in peers] == [(role, index) for role in range(3) for index in range(firsts[role])]
    assert len({peer.at for peer in peers}) == len(peers)


def test_a_role_has_software_of_its_own() -> None:
    """Inside of the job's own."""
    own = [pb.Role(name="a", command="run", software=[pb.Software(name="venv", values=["/v"])]), pb.Role(name="b", command="run")]
    first, second = fields(
        text("", *own, software=[pb.Software(name="conda", values=["base"])]), 0, [host("h1", "", [(0, 0, 1), (1, 0, 1)])]
    ).tasks
    assert [word for word in first.argv or () if word in ("base", "/v", "run")] == ["base", "/v", "run"]
    assert [word for word in second.argv or () if word in ("base", "/v", "run")] == ["base", "run"]


def test_marks_are_filled_wherever_they_stand() -> None:
    """In the shared variables, in a task's own, and in its command."""
    ports = Ports(PortsSpec(place=0, hosts=1, count_=1, first=20000, low=20000, of=12000))
    try:
        task = {"rank": 0, "env": {"OWN": "@LAVA_PORT_0_0@"}, "argv": ["p", "--port=@LAVA_PORT_0_0@"]}
        spec = Spec(Template({}), {"uid": "u", "env": {"SHARED": "h:@LAVA_PORT_0_0@"}, "tasks": [task]})
        ports.fill(spec, None)
        port = str(ports.numbers[0])
        assert spec.env["SHARED"] == f"SHARED=h:{port}".encode()
        assert spec.tasks == (TaskSpec(0, {"OWN": port}, ("p", f"--port={port}")),)
    finally:
        ports.close()


def test_a_job_that_a_task_submits_is_another_world() -> None:
    """Bad input: stale variables of a role do no harm."""
    for framework in ("tensorflow", "jax", "xgboost", "paddle", "mxnet", "volcano"):
        job = text(framework)
        env = role_env.shared(role_env.peers_of(TWO), job, pb.Start(hosts=TWO)) | env_of(job)["chief[0]"] | {"KEEP": "1"}
        assert {n for n in environ.inherited(env) if not n.startswith("VC_")} == {"KEEP"}
