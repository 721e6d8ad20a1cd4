"""``lava run`` over two real hosts: roles that start in order, start again, decide the job, and leave nothing behind."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.support.live.cluster import VENV, Cluster
from tests.support.live.job_files import EXAMPLES, lava_run, nothing_left, run
from tests.support.live.ranks import PYTHON_RANK, by_host
from tests.support.wait import wait_until

pytest.importorskip("yaml")
pytestmark = pytest.mark.cluster(hosts=2, slots=3)


def test_an_mpi_manifest_runs_unchanged(cluster: Cluster, tmp_path: Path) -> None:
    """Launcher and workers; the launcher finds the workers' slots and starts tasks there by blaunch."""
    lines = run(cluster, tmp_path, EXAMPLES / "mpijob.yaml")
    assert sum(int(line.partition("slots=")[2] or 0) for line in lines) == 4
    tasks = sorted(line for line in lines if line.startswith("task on"))
    assert len(tasks) == 4
    assert set(tasks) == {"task on host1", "task on host2"}


MPICH = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: ranks}
spec:
  slotsPerWorker: 2
  mpiImplementation: MPICH
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - name: mpi
            command: [mpiexec, -f, /etc/mpi/hostfile, python, rank.py]
            env: [{name: PATH, value: "BIN:/usr/bin:/bin"}]
    Worker: {replicas: 2, template: {spec: {containers: [{name: mpi}]}}}
"""


def test_mpiexec_of_an_mpijob_starts_its_ranks_on_the_workers(cluster: Cluster, tmp_path: Path) -> None:
    """A real mpiexec, given the host file of the manifest's own path: slotsPerWorker ranks for each worker."""
    pytest.importorskip("mpi4py")
    if not (VENV / "mpiexec").exists():
        pytest.skip("no MPICH")
    (tmp_path / "rank.py").write_text(PYTHON_RANK)
    lines = run(cluster, tmp_path, MPICH.replace("BIN", str(VENV)))
    where = by_host("\n".join(lines), 4)
    assert sum(where.values()) == 4
    assert max(where.values()) == 2


def test_a_pytorch_manifest_runs_unchanged(cluster: Cluster, tmp_path: Path) -> None:
    """Master and workers meet by their environment alone, at a port that was free."""
    (tmp_path / "meet.py").write_text((EXAMPLES / "meet.py").read_text())
    lines = run(cluster, tmp_path, EXAMPLES / "pytorchjob.yaml")
    assert sorted(lines) == [f"rank {rank} of 3 knows 3" for rank in range(3)]


def test_a_tensorflow_manifest_runs_unchanged(cluster: Cluster, tmp_path: Path) -> None:
    """TF_CONFIG of each task; workers killed with 137 start again; the chief decides, the rest ends."""
    lines = run(cluster, tmp_path, EXAMPLES / "tfjob.yaml")
    told = [(role, json.loads(config)) for role, config in (line.split(" ", 1) for line in lines)]
    tasks = sorted((config["task"]["type"], config["task"]["index"]) for _, config in told)
    assert tasks == [("chief", 0), ("ps", 0), *[("worker", 0)] * 2, *[("worker", 1)] * 2]
    clusters = {json.dumps(config["cluster"], sort_keys=True) for _, config in told}
    assert len(clusters) == 1
    one = json.loads(clusters.pop())
    assert {name: len(found) for name, found in one.items()} == {"chief": 1, "ps": 1, "worker": 2}
    addresses = [address for found in one.values() for address in found]
    assert len(set(addresses)) == 4
    nothing_left(cluster, "600")


def test_a_volcano_manifest_runs_unchanged(cluster: Cluster, tmp_path: Path) -> None:
    """TaskCompleted of the master completes the job; its host file names the workers' hosts."""
    lines = run(cluster, tmp_path, EXAMPLES / "volcano.yaml")
    assert len(lines) == 2
    assert all(line.startswith("task on host") for line in lines)


def test_a_framework_of_volcano_finds_its_tasks(cluster: Cluster, tmp_path: Path) -> None:
    """The plugin's ranks, with tasks that are not named as it calls them."""
    pod = 'template: {spec: {containers: [{command: [sh, -c, "echo $RANK of $WORLD_SIZE at $MASTER_PORT"]}]}}'
    lines = run(
        cluster,
        tmp_path,
        f"""
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: ranks}}
spec:
  plugins: {{pytorch: ["--master=head"], svc: []}}
  tasks: [{{name: head, replicas: 1, {pod}}}, {{name: worker, replicas: 2, {pod}}}]
""",
    )
    ports = {line.split(" at ")[1] for line in lines}
    assert (sorted(line.partition(" at ")[0] for line in lines), len(ports)) == (["0 of 3", "1 of 3", "2 of 3"], 1)
    assert all(port.isdecimal() for port in ports)


@pytest.mark.skipif(not (VENV / "mpirun").exists(), reason="no MPICH")
def test_a_launcher_that_is_one_of_the_nodes_starts_ranks_on_its_own(cluster: Cluster, tmp_path: Path) -> None:
    """Four ranks on two nodes of two slots, in a job of four slots: none is taken by the launcher alone."""
    assert sorted(run(cluster, tmp_path, EXAMPLES / "trainjob.yaml")) == [f"rank {rank}" for rank in range(4)]
    (tmp_path / "rank.py").write_text(PYTHON_RANK)
    text = (EXAMPLES / "trainjob.yaml").read_text()
    command = next(line for line in text.splitlines() if "command: [mpirun" in line)
    lines = run(cluster, tmp_path, text.replace(command, f"    command: [mpirun, {VENV}/python, rank.py]"))
    assert by_host("\n".join(lines), 4) == {"host1": 2, "host2": 2}


def test_a_job_of_kubernetes_is_an_array(cluster: Cluster, tmp_path: Path) -> None:
    """Each element finds its index, which counts from 0."""
    job = lava_run(cluster, tmp_path, f"-o out.%I {EXAMPLES / 'indexedjob.yaml'}")
    assert cluster.wait_end(job, timeout=60) == ["DONE"] * 5
    outs = [tmp_path / f"out.{index}" for index in range(1, 6)]
    wait_until(lambda: all("Resource usage summary" in out.read_text() for out in outs), 30, "the reports")
    assert [out.read_text().splitlines()[0] for out in outs] == [f"piece {index}" for index in range(5)]


def test_lavas_own_layout(cluster: Cluster, tmp_path: Path) -> None:
    """Roles with their own commands; peers by name; each line has its task's name before it."""
    (tmp_path / "job.yaml").write_text((EXAMPLES / "job.yaml").read_text())
    job = lava_run(cluster, tmp_path, "job.yaml")
    assert cluster.wait_end(job) == ["DONE"]
    text = (tmp_path / f"servers.{job}").read_text()
    assert re.search(r"^\[chief\[0\]\] the chief knows 127\.0\.0\.1:\d+$", text, re.MULTILINE)
    nothing_left(cluster, "600")


def test_roles_start_one_after_the_other(cluster: Cluster, tmp_path: Path) -> None:
    """The second ones start once the first run, on both hosts; the program, a launcher, once all do."""
    text = """
success: program
roles:
  program: {kind: launcher, command: echo program}
  second: {count: 3, after: first, command: echo second; exec sleep 604}
  first: {count: 2, command: echo first; exec sleep 604}
"""
    lines = run(cluster, tmp_path, text)
    assert sorted(lines) == ["first", "first", "program", "second", "second", "second"]
    history = cluster.run("bhist -l -a | tr -d '\n' | tr -s ' '").stdout.replace(" ", "")
    begun = [name for name in re.findall(r"Task(\w+)\[\d\]started", history) if name in ("second", "program")]
    assert begun[-4:] == ["second"] * 3 + ["program"]
    nothing_left(cluster, "604")


FAILS = """
roles:
  good: {count: 3, command: sleep 601}
  bad: {command: COMMAND, restart: RESTART}
backoff: 2
"""


@pytest.mark.parametrize(
    ("command", "restart", "why"),
    [
        ("no-such-interpreter train.py", "ExitCode", "ended with exit code 127"),
        ("'echo again; exit 7'", "OnFailure", "ended with exit code 7, and its 2 restarts are used up"),
    ],
)
def test_one_reason_and_no_orphan(cluster: Cluster, tmp_path: Path, command: str, restart: str, why: str) -> None:
    """Bad input: an interpreter that is not there, a task that always fails: the job ends as a whole, with one reason."""
    run(cluster, tmp_path, FAILS.replace("COMMAND", command).replace("RESTART", restart), "EXIT")
    last = cluster.run("bjobs -a -l | tr -d '\\n' | tr -s ' '").stdout
    assert why.replace(" ", "") in last.replace(" ", "")
    nothing_left(cluster, "601")


def test_a_role_over_its_memory_is_killed_alone(cluster: Cluster, tmp_path: Path) -> None:
    """TERM_MEMLIMIT of one role; the other role lives on, as its policy has it."""
    text = """
success: other
roles:
  fat:
    command: exec python3 -c "b = bytearray(200 << 20); import time; time.sleep(600)"
    limits: {M: 60M}
    on: {TaskFailed: CompleteJob}
  other: {command: sleep 602}
"""
    run(cluster, tmp_path, text)
    history = cluster.run("bhist -l -a | tr -d '\\n' | tr -s ' '").stdout
    assert "TERM_MEMLIMIT" in history.replace(" ", "")
    nothing_left(cluster, "602")


def test_a_task_finds_its_scratch_folder_again(cluster: Cluster, tmp_path: Path) -> None:
    """A folder of its own, the same after a restart; clean all removes it, running keeps it."""
    text = """
clean: CLEAN
roles:
  w:
    scratch: true
    restart: OnFailure
    command: echo $LAVA_SCRATCH; test -e $LAVA_SCRATCH/mark || { touch $LAVA_SCRATCH/mark; exit 1; }
"""
    for clean, there in (("all", False), ("running", True)):
        lines = run(cluster, tmp_path, text.replace("CLEAN", clean))
        assert len(lines) == 2
        assert lines[0] == lines[1]
        folder = Path(lines[0])
        wait_until(lambda folder=folder, there=there: folder.exists() is there, 30, "the folder as it is to be")  # type: ignore[misc]
        shutil.rmtree(folder, ignore_errors=True)


def test_bkill_ends_what_always_restarts(cluster: Cluster, tmp_path: Path) -> None:
    """Always: tasks start again until the job is killed; then nothing is left."""
    (tmp_path / "job.yaml").write_text("backoff: 1000\nroles:\n  w: {count: 4, restart: Always, command: sleep 603}\n")
    job = lava_run(cluster, tmp_path, "-o /dev/null job.yaml")
    cluster.wait_for(job, "RUN")
    cluster.run(f"bkill {job}")
    assert cluster.wait_end(job) == ["EXIT"]
    nothing_left(cluster, "603")


def test_agents_and_master_may_restart_under_it(cluster: Cluster, tmp_path: Path) -> None:
    """Killed and started again, they find every task where it is; ends that nobody heard are told then."""
    (tmp_path / "job.yaml").write_text(
        "success: lead\nroles:\n  lead: {command: 'until test -e go; do sleep 0.1; done; exit 0'}\n"
        "  w: {count: 3, restart: OnFailure, command: 'echo start $LAVA_INDEX; until test -e fail.$LAVA_INDEX; do sleep 0.1;"
        " done; rm fail.$LAVA_INDEX; exit 1'}\n"
    )
    job = lava_run(cluster, tmp_path, "-o out job.yaml")
    out = tmp_path / "out"
    wait_until(lambda: out.exists() and out.read_text().count("start") == 3, 20, "three workers")
    for name in ("agent-host1", "agent-host2", "lavad"):
        cluster.kill(name)
    (tmp_path / "fail.1").write_text("")
    wait_until(lambda: not (tmp_path / "fail.1").exists(), 30, "a worker to end unheard")
    cluster.up()
    wait_until(lambda: out.read_text().count("start 1") == 2, 30, lambda: f"worker 1 again: {out.read_text()}")
    (tmp_path / "go").write_text("")
    assert cluster.wait_end(job) == ["DONE"]
    assert out.read_text().count("start") == 4
