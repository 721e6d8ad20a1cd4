"""Jobs that grow and shrink on a real cluster: host files, the discovery program, blaunch on new hosts, lost agents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

WORKER = Path(__file__).parents[3] / "examples" / "elastic" / "count.py"


pytestmark = pytest.mark.cluster(hosts=4, slots=1)


def steps(path: Path) -> list[dict[str, int]]:
    """What the job wrote of its steps."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_job_goes_from_two_to_four_to_three_workers_and_loses_no_step(cluster: Cluster) -> None:
    """The step counter never goes back beyond the last checkpoint, never below min."""
    folder = cluster.folder.path
    fillers = [cluster.submit(f"-m host{n} sleep 600") for n in (3, 4)]
    for filler in fillers:
        cluster.wait_for(filler, "RUN")
    log = folder / "steps"
    job = cluster.submit(f"-ar -n 2,4 -o out {cluster.environ.get('PYTHON', 'python3')} {WORKER} {log}")
    told = lambda: [row["workers"] for row in steps(log)]  # noqa: E731
    wait_until(lambda: told() and told()[-1] == 2, 60, lambda: f"2 workers: {told()[-3:]}\n{cluster.logs()}")
    cluster.run(f"bkill {fillers[0]} {fillers[1]}")
    wait_until(lambda: told()[-1] == 4, 60, lambda: f"4 workers: {told()[-3:]}\n{cluster.logs()}")
    hosts = cluster.run(f"bjobs -noheader -o exec_host {job}").stdout.strip().split(":")
    assert len(hosts) == 4
    cluster.run(f"bresize release {hosts[-1]} {job}")
    wait_until(lambda: told()[-1] == 3, 60, lambda: f"3 workers: {told()[-3:]}\n{cluster.logs()}")
    wait_until(lambda: len(cluster.run(f"bjobs -noheader -o exec_host {job}").stdout.split(":")) == 3, 30, "3 hosts")
    (folder / "steps.stop").touch()
    assert cluster.wait_end(job) == ["DONE"]
    rows = steps(log)
    numbers = [row["step"] for row in rows]
    assert all(b == a + 1 or b > row["saved"] for a, b, row in zip(numbers, numbers[1:], rows[1:], strict=False))
    assert min(row["workers"] for row in rows) >= 2
    history = cluster.run(f"bhist -l {job}").stdout
    assert "Additional allocation on" in history
    assert "has left the job" in history


def test_an_elastic_pytorchjob_grows_and_shrinks_while_it_runs(cluster: Cluster) -> None:
    """Each host that joins starts a torchrun of its own, which is told of the smallest and the largest job."""
    folder = cluster.folder.path
    began, tool = folder / "began", folder / "torchrun"
    tool.write_text(f'#!/bin/sh\necho "$LSB_JOBID $*" >> {began}\nexec sleep 300\n')
    tool.chmod(0o755)
    (folder / "elastic.yaml").write_text(f"""
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: elastic}}
spec:
  elasticPolicy: {{minReplicas: 2, maxReplicas: "${{{{most}}}}", maxRestarts: 5}}
  pytorchReplicaSpecs:
    Worker: {{template: {{spec: {{containers: [{{name: pytorch, command: [{tool}, train.py]}}]}}}}}}
""")
    fillers = [cluster.submit(f"-m host{n} sleep 600") for n in (3, 4)]
    for filler in fillers:
        cluster.wait_for(filler, "RUN")
    said = cluster.run(f"lava run --set most=4 {folder}/elastic.yaml").stdout
    job = int(said.partition("<")[2].partition(">")[0])
    lines = lambda: began.read_text().splitlines() if began.exists() else []  # noqa: E731
    wait_until(lambda: len(lines()) == 2, 60, lambda: f"2 hosts: {lines()}\n{cluster.logs()}")
    cluster.run(f"bkill {fillers[0]} {fillers[1]}")
    wait_until(lambda: len(lines()) == 4, 60, lambda: f"4 hosts: {lines()}\n{cluster.logs()}")
    assert all(f"{job} --nnodes=2:4 " in line and " --max-restarts=5 " in line for line in lines())
    hosts = lambda: cluster.run(f"bjobs -noheader -o exec_host {job}").stdout.strip().split(":")  # noqa: E731
    cluster.run(f"bresize release {hosts()[-1]} {job}")
    wait_until(lambda: len(hosts()) == 3, 30, lambda: str(hosts()))
    assert cluster.states(job) == ["RUN"]
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)


def test_a_lost_agent_makes_the_job_smaller(cluster: Cluster) -> None:
    """The host goes away with all that runs there; the job goes on."""
    job = cluster.submit("-ar -r -n 1,4 -o out2 sleep 300")
    cluster.wait_for(job, "RUN")

    def hosts() -> list[str]:
        return cluster.run(f"bjobs -noheader -o exec_host {job}").stdout.strip().split(":")

    wait_until(lambda: len(hosts()) == 4, 30, lambda: f"4 hosts: {hosts()}")
    lost = hosts()[-1]
    history = lambda: cluster.run(f"bhist -l {job}").stdout  # noqa: E731
    # one whose processes have not begun everywhere is dispatched again
    wait_until(lambda: "Running with execution home" in history(), 30, lambda: history() + cluster.logs())
    cluster.kill_host(lost)
    cluster.up()
    wait_until(lambda: f"Host <{lost}> has left the job" in history(), 60, lambda: history() + cluster.logs())
    assert cluster.states(job) == ["RUN"]
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)


def test_the_notification_command_sees_what_changes_and_may_refuse(cluster: Cluster) -> None:
    folder = cluster.folder.path
    seen, script = folder / "seen", folder / "told.sh"
    script.write_text(
        f'#!/bin/sh\necho "$LSB_JOBID $LSB_RESIZE_EVENT $LSB_RESIZE_HOSTS" >> {seen}\n'
        f"[ -e {folder}/deny ] && exit $LSB_RESIZE_NOTIFY_FAIL\nexit $LSB_RESIZE_NOTIFY_OK\n"
    )
    script.chmod(0o755)
    filler = cluster.submit("-n 3 sleep 600")
    cluster.wait_for(filler, "RUN")
    job = cluster.submit(f"-ar -rnc {script} -n 1,2 -o out3 sleep 300")
    cluster.wait_for(job, "RUN")
    cluster.run(f"bkill {filler}")
    wait_until(lambda: seen.exists() and "grow" in seen.read_text(), 30, lambda: "grow\n" + cluster.logs())

    def hosts() -> list[str]:
        return cluster.run(f"bjobs -noheader -o exec_host {job}").stdout.strip().split(":")

    history = lambda: cluster.run(f"bhist -l {job}").stdout  # noqa: E731
    wait_until(lambda: "notification accepted" in history(), 30, history)
    added = hosts()[1]
    assert f"{job} grow {added} 1\n" in seen.read_text()
    (folder / "deny").touch()
    cluster.run(f"bresize release {added} {job}")
    wait_until(lambda: "notification rejected: exit code 1" in history(), 30, history)
    assert added in hosts()
    cluster.run(f"bresize release -rncn {added} {job}")
    wait_until(lambda: added not in hosts(), 30, lambda: str(hosts()))
    assert cluster.run(f"bresize release all {job}", ok=False).returncode == 255
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)
