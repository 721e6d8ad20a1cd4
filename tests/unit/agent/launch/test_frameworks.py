"""The environments of training frameworks: golden tables for each, dense ranks for every shape, torchrun's command."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.launch import build, environ, frameworks, gpus, mpi, outputs, torchrun
from agent.launch.hostfiles import HostFiles
from agent.launch.site import Site, User
from agent.starter.protocol.part import OutputFile
from agent.starter.protocol.reports import Address, Root
from lavad.core.decide.submit import esubs as asked
from lavad.core.job.endpoint import endpoint_text
from lavad.core.job.job import Attempt, Part
from lavad.core.lang.asks import Refused
from lavad.core.rules.effects import ReleasePart, links_of
from lavad.wire import decode, encode
from proto import agent_pb2 as pb
from tests.support.examples import examples

TWO = [
    pb.HostSlots(host="h1", slots=2, address="10.0.0.1", gpus=["G0", "G1"]),
    pb.HostSlots(host="h2", slots=1, address="10.0.0.2", gpus=["G2", "G3"]),
]
TORCH = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "@LAVA_PORT_0_0@", "GROUP_WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
PEERS = {"LAVA_PEERS": "h1:2:10.0.0.1 h2:1:10.0.0.2"}


def start(place: int = 0, hosts: list[pb.HostSlots] = TWO) -> pb.Start:
    return pb.Start(hosts=hosts, place=place, restart=-1, cert_pem=b"CERT", key_pem=b"KEY")


def environment(launch: str, place: int, local: int, hosts: list[pb.HostSlots] = TWO, **given: str) -> dict[str, str]:
    how = frameworks.parse(launch)
    assert how is not None
    order = start(place, hosts)
    return {**frameworks.shared(how, order, given, "eth0"), **frameworks.tasks(how, order)[local].env}


def base(kind: str, place: int) -> dict[str, str]:
    where = {"GROUP_RANK": str(place), "NODE_RANK": str(place), "LAVA_LAUNCH": kind, "GLOO_SOCKET_IFNAME": "eth0"}
    return TORCH | PEERS | where


RANKS = [
    {"RANK": "0", "WORLD_SIZE": "3", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "LSF_PM_TASKID": "1"},
    {"RANK": "1", "WORLD_SIZE": "3", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "LSF_PM_TASKID": "2"},
    {"RANK": "2", "WORLD_SIZE": "3", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "LSF_PM_TASKID": "3"},
]
WORKERS = ["10.0.0.1:@LAVA_PORT_0_0@", "10.0.0.1:@LAVA_PORT_0_1@", "10.0.0.2:@LAVA_PORT_1_0@"]
HOROVOD = {
    "HOROVOD_CONTROLLER": "gloo",
    "HOROVOD_CPU_OPERATIONS": "gloo",
    "HOROVOD_GLOO_IFACE": "eth0",
    "HOROVOD_SIZE": "3",
}


def horovod(host: str, rank: int, local: int, local_size: int, cross: int, cross_size: int) -> dict[str, str]:
    own = {
        "RANK": rank,
        "LOCAL_RANK": local,
        "LOCAL_SIZE": local_size,
        "CROSS_RANK": cross,
        "CROSS_SIZE": cross_size,
    }
    port = "@LAVA_PORT_0_1@" if host == "h1" else "@LAVA_PORT_1_0@"
    meeting = {
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": f"127.0.0.1:{port}/{hashlib.sha256(b'rendezvous ').hexdigest()}",
        "HOROVOD_GLOO_RENDEZVOUS_PORT": port,
    }
    return HOROVOD | meeting | {"HOROVOD_HOSTNAME": host} | {f"HOROVOD_{name}": str(value) for name, value in own.items()}


def jsm(rank: int, local: int, local_size: int) -> dict[str, str]:
    own = {"RANK": rank, "SIZE": 3, "LOCAL_RANK": local, "LOCAL_SIZE": local_size}
    return {f"JSM_NAMESPACE_{name}": str(value) for name, value in own.items()}


def tensorflow(**fields: object) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps(fields)}


def jax(rank: int) -> dict[str, str]:
    return {"JAX_COORDINATOR_ADDRESS": "10.0.0.1:@LAVA_PORT_0_1@", "JAX_NUM_PROCESSES": "3", "JAX_PROCESS_ID": str(rank)}


def deepspeed(local_size: int, cross: int, cross_size: int) -> dict[str, str]:
    return {"LOCAL_SIZE": str(local_size), "CROSS_RANK": str(cross), "CROSS_SIZE": str(cross_size)}


ALL = {"worker": WORKERS}
CHIEF = {"chief": WORKERS[:1], "worker": WORKERS[1:]}
OWN_GPUS = [gpus.seen(["G0"]), gpus.seen(["G1"]), gpus.seen(["G2", "G3"])]
GOLDEN: dict[str, list[dict[str, str]]] = {
    "pytorch": [{}, {}, {}],
    "pytorch(gpu)": OWN_GPUS,
    "lightning": [jsm(0, 0, 2), jsm(1, 1, 2), jsm(2, 0, 1)],
    "deepspeed": [deepspeed(2, 0, 2), deepspeed(2, 0, 1), deepspeed(1, 1, 2)],
    "horovod": [horovod("h1", 0, 0, 2, 0, 2), horovod("h1", 1, 1, 2, 0, 1), horovod("h2", 2, 0, 1, 1, 2)],
    "jax": [jax(rank) | OWN_GPUS[rank] for rank in range(3)],
    "tensorflow": [tensorflow(cluster=ALL, task={"type": "worker", "index": rank}) | OWN_GPUS[rank] for rank in range(3)],
    "tensorflow(chief)": [
        tensorflow(cluster=CHIEF, task={"type": kind, "index": index}) | OWN_GPUS[rank]
        for rank, (kind, index) in enumerate([("chief", 0), ("worker", 0), ("worker", 1)])
    ],
}


@pytest.mark.parametrize("launch", GOLDEN)
@pytest.mark.parametrize("rank", range(3))
def test_the_environment_of_each_rank(launch: str, rank: int) -> None:
    """The whole environment of each framework, rank by rank."""
    place, local = divmod(rank, 2)
    kind = launch.partition("(")[0]
    assert environment(launch, place, local) == base(kind, place) | RANKS[rank] | GOLDEN[launch][rank]


def test_torchrun_is_given_no_rank() -> None:
    """The two ways are not mixed: one task a host, and no variable that numbers processes."""
    for place in range(2):
        env = environment("torchrun", place, 0)
        assert env == base("torchrun", place) | {"LSF_PM_TASKID": str(place + 1)}
    how = frameworks.parse("torchrun")
    assert how is not None
    assert [task.rank for task in frameworks.tasks(how, start(1))] == [1]
    # one that joins where another has left before
    hosts = [pb.HostSlots(host=f"h{number}", slots=1, node_index=number) for number in (0, 2, 3)]
    for place, number in enumerate((0, 2, 3)):
        (task,) = frameworks.tasks(how, start(place, hosts), resizable=True)
        assert (task.rank, task.env["LSF_PM_TASKID"]) == (number, str(number + 1))


def test_a_job_on_one_host_stays_inside_it() -> None:
    env = environment("pytorch", 0, 0, TWO[:1])
    assert (env["MASTER_ADDR"], env["GLOO_SOCKET_IFNAME"]) == ("127.0.0.1", "lo")


def test_a_users_own_settings_stand() -> None:
    env = environment("pytorch", 0, 0, OMP_NUM_THREADS="4", GLOO_SOCKET_IFNAME="ib0")
    assert not {"OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME"} & set(env)


def test_gpus_that_do_not_divide_are_all_seen() -> None:
    hosts = [pb.HostSlots(host="h1", slots=2, address="10.0.0.1", gpus=["G0", "G1", "G2"])]
    assert "CUDA_VISIBLE_DEVICES" not in environment("jax", 0, 1, hosts)


@pytest.mark.parametrize("kind", ["pytorch", "lightning", "deepspeed", "horovod"])
def test_local_rank_picks_the_one_gpu_of_a_task_and_several_are_shown_alone(kind: str) -> None:
    """num=1/task: all of the host, in the order of its ranks. num=2/task: a rank's own two."""
    how = frameworks.parse(kind)
    assert how is not None
    hosts = [pb.HostSlots(host="h1", slots=2, address="10.0.0.1", gpus=["G0", "G2", "G1", "G3"])]
    found = [frameworks.of_rank(how, start(0, hosts), local, 2)["CUDA_VISIBLE_DEVICES"] for local in (0, 1)]
    assert found == ["G0,G2", "G1,G3"]
    assert "CUDA_VISIBLE_DEVICES" not in frameworks.of_rank(how, start(0, hosts), 0, 1)


def test_a_submission_from_a_rank_is_another_world() -> None:
    env = environment("horovod", 0, 0)
    assert environ.inherited(env | {"PET_NNODES": "2", "A": "b"}) == {"A": "b"}
    assert environ.inherited(env | {"OMP_NUM_THREADS": "4"}) == {"OMP_NUM_THREADS": "4"}
    assert environ.inherited({"MASTER_ADDR": "mine", "RANK": "0"}) == {"MASTER_ADDR": "mine", "RANK": "0"}


SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=12)
KINDS = st.sampled_from([*frameworks.PER_RANK, "tensorflow(chief)"])


@settings(max_examples=examples(60))
@given(SHAPES, KINDS)
def test_ranks_are_dense_and_agree(shape: list[int], launch: str) -> None:
    """Over random placements: each rank once, one size, local ranks dense, all marks are ports that a host keeps."""
    hosts = [pb.HostSlots(host=f"h{n}", slots=slots, address=f"10.0.0.{n}") for n, slots in enumerate(shape)]
    how = frameworks.parse(launch)
    assert how is not None
    kept = [frameworks.ports(how, start(place, hosts), "uid").count_ for place in range(len(hosts))]
    ranks, shared = [], set()
    for place, slots in enumerate(shape):
        envs = [environment(launch, place, local, hosts) for local in range(slots)]
        assert [env["LOCAL_RANK"] for env in envs] == [str(local) for local in range(slots)]
        for env in envs:
            assert (env["LOCAL_WORLD_SIZE"], env["NODE_RANK"]) == (str(slots), str(place))
            ranks.append(int(env["RANK"]))
            shared.add((env["WORLD_SIZE"], env["MASTER_ADDR"], env["MASTER_PORT"], env["LAVA_PEERS"]))
            for where, number in re.findall(r"@LAVA_PORT_(\d+)_(\d+)@", " ".join(env.values())):
                assert int(number) < kept[int(where)]
    assert ranks == list(range(sum(shape)))
    assert len(shared) == 1
    assert next(iter(shared))[0] == str(sum(shape))


PORTS = st.lists(st.integers(1, 65535), max_size=3)


@given(st.booleans(), st.lists(PORTS, min_size=1, max_size=5))
def test_ports_travel_from_each_host_to_all(linked: bool, ports: list[list[int]]) -> None:
    """What hosts report is what all are told, by way of the master's state."""
    link = Address("10.0.0.1", 4000) if linked else Address()
    addresses = [link if place == 0 else Address() for place in range(len(ports))]
    said = [mpi.endpoint(one._replace(ports=tuple(own))) for one, own in zip(addresses, ports, strict=True)]
    texts = [endpoint_text(decode.endpoint(one)) for one in said]
    parts = tuple(Part(host=f"h{n}", slots=1, address=text) for n, text in enumerate(texts))
    root, kept = links_of(Attempt(number=1, uid="u", dispatched=0.0, parts=parts))
    effect = ReleasePart(host="h0", key=1, attempt=1, uid="u", root=root, ports=kept)
    told = mpi.root_of(pb.Order.FromString(encode.order(effect)).release)
    if linked or any(ports):
        assert told == Root(link.host, link.port, tuple(map(tuple, ports)) if any(ports) else ())
    else:
        assert told is None


OPTIONS = {"nnodes": "2"}


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("train.py a 'b c'", "torchrun --nnodes=2 train.py a 'b c'"),
        ("./dir/train.py $HOME", "torchrun --nnodes=2 ./dir/train.py $HOME"),
        ("torchrun --max-restarts=3 train.py", "torchrun --nnodes=2 --max-restarts=3 train.py"),
        ("/v/bin/torchrun train.py >log 2>&1", "/v/bin/torchrun --nnodes=2 train.py >log 2>&1"),
        ("python train.py", "python -m torch.distributed.run --nnodes=2 train.py"),
        ("/v/bin/python3.11 -u -X dev train.py a", "/v/bin/python3.11 -u -X dev -m torch.distributed.run --nnodes=2 train.py a"),
        ("python -m pkg.train a", "python -m torch.distributed.run --nnodes=2 -m pkg.train a"),
        ("python -m torch.distributed.run train.py", "python -m torch.distributed.run --nnodes=2 train.py"),
        ("A=b python train.py", "A=b python -m torch.distributed.run --nnodes=2 train.py"),
        ("env -i ./train.py", "torchrun --nnodes=2 --no-python env -i ./train.py"),
        ("exec torchrun train.py", "exec torchrun --nnodes=2 train.py"),
        ("A=b exec python train.py", "A=b exec python -m torch.distributed.run --nnodes=2 train.py"),
        ("exec env A=b C= ./train.py", "exec env A=b C= torchrun --nnodes=2 ./train.py"),
        ('A=\'b c\' B="d \\" e" C=f\\ g torchrun t.py', 'A=\'b c\' B="d \\" e" C=f\\ g torchrun --nnodes=2 t.py'),
        ('A="$B c"d=$E python train.py', 'A="$B c"d=$E python -m torch.distributed.run --nnodes=2 train.py'),
        ("A=$(cat b) torchrun train.py", "A=$(cat b) torchrun train.py"),
        ('A="$(cat "b c")" torchrun train.py', 'A="$(cat "b c")" torchrun train.py'),
        ("python -c pass", "torchrun --nnodes=2 --no-python python -c pass"),
        ("./prog a", "torchrun --nnodes=2 --no-python ./prog a"),
        ("cd x && torchrun train.py", "cd x && torchrun train.py"),
    ],
)
def test_the_command_of_torchrun(text: str, made: str) -> None:
    assert torchrun.command(text, OPTIONS) == made


def test_the_options_of_torchrun() -> None:
    """As they were seen to work; static: ranks in the order of the hosts."""
    plain, static = frameworks.parse("torchrun"), frameworks.parse("torchrun(static)")
    assert plain is not None
    assert static is not None
    assert torchrun.options(plain, start(1), "77", 2) == {
        "nnodes": "2",
        "nproc-per-node": "1",
        "rdzv-backend": "c10d",
        "rdzv-id": "lava-77-2",
        "rdzv-endpoint": "10.0.0.1:@LAVA_PORT_0_0@",
        "rdzv-conf": "is_host=0",
        "local-addr": "10.0.0.2",
    }
    found = torchrun.options(static, start(1), "77", 2)
    assert (found["node-rank"], found["master-addr"], found["master-port"]) == ("1", "10.0.0.1", "@LAVA_PORT_0_0@")
    assert torchrun.variables({"nproc-per-node": "2"}) == {"PET_NPROC_PER_NODE": "2"}
    counted = frameworks.parse("torchrun(nproc=4,restarts=0)")
    assert counted is not None
    found = torchrun.options(counted, start(1), "77", 2)
    assert (found["nproc-per-node"], found["max-restarts"]) == ("4", "0")
    assert torchrun.elastic(found, start(1), 2, 4)["max-restarts"] == "0"
    assert torchrun.elastic(torchrun.options(plain, start(1), "77", 2), start(1), 2, 4)["max-restarts"] == "1000"


def test_master_and_agents_know_the_same_frameworks() -> None:
    assert set(asked.WORDS) == {*frameworks.PER_RANK, *frameworks.PER_HOST}
    for name, words in asked.WORDS.items():
        launch = frameworks.parse(asked.launch_of(name, " , ".join(words), "./train.py"))
        assert launch is not None
        assert launch.words == set(words)
    assert asked.launch_of("torchrun", "restarts=3 nproc=4", "./train.py") == "torchrun(nproc=4,restarts=3)"


@pytest.mark.parametrize(
    ("name", "word", "why"),
    [
        ("torchrun", "nproc=0", "nproc= is a number from 1 to 100000"),
        ("torchrun", "restarts=-1", "restarts= is a number from 0 to 100000"),
        ("torchrun", "restarts=", "restarts= is a number from 0 to 100000"),
        ("torchrun", "nodes=4", "it knows static, nproc=N, restarts=N, requeues=N"),
        ("pytorch", "nproc=4", "it knows gpu"),
    ],
)
def test_a_word_that_a_framework_does_not_know_is_refused(name: str, word: str, why: str) -> None:
    with pytest.raises(Refused) as refused:
        asked.launch_of(name, word, "./train.py")
    assert refused.value.text == f"{name}({word}): -a {name} does not know {word}; {why}"


def test_a_script_lies_on_every_host(tmp_path: pytest.TempPathFactory) -> None:
    site = Site("h2", "/run", str(tmp_path), "/etc/lava", {"LAVA_MPI_INTERFACE": "eth0"}, own_user="me")
    user = User("me", 1000, 1000, (), "/home/me", "/bin/sh", "g")
    text = pb.JobText(user="me", command="x", script="#!/bin/sh\nexec train\n", launch="pytorch", cwd="/", rank_files="o.%J.%R")
    order = pb.Order(key=7, attempt=1, uid="ab", start=start(1))
    made = build.Compiled(text, user, site)
    _, part = build.part(order, made, outputs.OutputPaths(), site, HostFiles(site.hostfile_dir), "", None)
    assert part.jobfile is not None
    assert part.script == text.script
    assert part.argv == ("/bin/sh", part.jobfile.path)
    assert part.link is not None
    assert part.ports is not None
    assert (part.link.place, part.ports.count_, part.pmi, part.serve) == (1, 0, None, None)
    assert [task.stdout for task in part.tasks or ()] == [OutputFile("o.7.2")]


@pytest.mark.parametrize(
    ("hosts", "given", "found"),
    [
        (TWO, {}, "eth7"),
        (TWO[:1], {}, "lo"),
        (TWO, {"GLOO_SOCKET_IFNAME": "ib0"}, "ib0"),
        (TWO, {"LAVA_PEERS": "", "GLOO_SOCKET_IFNAME": "lo"}, "eth7"),
    ],
)
@pytest.mark.parametrize("launch", ["pytorch", "roles"])
def test_gloo_is_told_the_interface_of_the_jobs_hosts(
    tmp_path: Path, launch: str, hosts: list[pb.HostSlots], given: dict[str, str], found: str
) -> None:
    """Of a job with roles, too: by the host's own name it finds none, or 127.0.1.1. A rank's is not that of a job it submits."""
    site = Site("h1", "/run", str(tmp_path), "/etc/lava", {"LAVA_MPI_INTERFACE": "eth7"}, own_user="me")
    roles = [pb.Role(name="worker", command="x", slots=1, count=2, least=2)] if launch == "roles" else []
    text = pb.JobText(user="me", command="x", launch=launch, framework="pytorch", roles=roles, env=given, cwd="/")
    order = pb.Order(key=7, attempt=1, uid="ab", start=start(0, hosts))
    made = build.Compiled(text, User("me", 1000, 1000, (), "/home/me", "/bin/sh", "g"), site)
    template, part = build.part(order, made, outputs.OutputPaths(), site, HostFiles(site.hostfile_dir), "", None)
    tasks = [task.env for task in part.tasks or ()] or [{}]
    assert {**template.env, **part.env, **tasks[0]}["GLOO_SOCKET_IFNAME"] == found
