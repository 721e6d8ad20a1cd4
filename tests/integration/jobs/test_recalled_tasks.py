"""The pods of one job of a JobSet start again together over two real hosts, while others run on, whoever dies meanwhile."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.job_files import lava_run, nothing_left
from tests.support.processes import is_alive
from tests.support.wait import wait_until

pytest.importorskip("yaml")
pytestmark = pytest.mark.cluster(hosts=2, slots=3)

JOBSET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set}
spec:
  failurePolicy: {maxRestarts: 3, rules: [{name: one, action: RestartJob, targetReplicatedJobs: [w]}]}
  replicatedJobs:
  - name: lead
    template: {spec: {template: {spec: {containers: [{command: [sh, -c, "until test -e go; do sleep 0.1; done"]}]}}}}
  - name: w
    replicas: 2
    template:
      spec:
        parallelism: 2
        backoffLimit: 0
        template: {spec: {containers: [{command: [sh, ./pod.sh]}]}}
  successPolicy: {operator: All, targetReplicatedJobs: [lead]}
"""
POD = """
echo $$ >>said.$JOB_INDEX.$JOB_COMPLETION_INDEX
trap 'echo asked >>asked.$JOB_INDEX; until test -e let; do sleep 0.1; done; exit 1' TERM
sleep 606 &
until test -e fail.$JOB_INDEX.$JOB_COMPLETION_INDEX; do sleep 0.1; done
rm fail.$JOB_INDEX.$JOB_COMPLETION_INDEX
exit 4
"""


@pytest.fixture
def pods(cluster: Cluster, tmp_path: Path) -> Iterator[int]:
    """The job, once all its pods run."""
    (tmp_path / "pod.sh").write_text(POD)
    (tmp_path / "set.yaml").write_text(JOBSET)
    job = lava_run(cluster, tmp_path, "-o out set.yaml")
    wait_until(lambda: sorted(map(len, starts(tmp_path).values())) == [1] * 4, 60, "four pods")
    yield job
    (tmp_path / "go").write_text("")
    assert cluster.wait_end(job, timeout=60) == ["DONE"]
    nothing_left(cluster, "606")


def starts(folder: Path) -> dict[str, list[int]]:
    """JOB.POD to the process of each of its starts."""
    return {path.name[5:]: [int(line) for line in path.read_text().splitlines()] for path in folder.glob("said.*")}


def test_the_pods_of_one_job_start_again_and_the_others_run_on(cluster: Cluster, tmp_path: Path, pods: int) -> None:
    """By kill -9 of one; the other one is asked to end first, and what it leaves is ended with it."""
    (tmp_path / "let").write_text("")
    before = starts(tmp_path)
    os.kill(before["1.0"][0], signal.SIGKILL)
    wait_until(lambda: len(starts(tmp_path)["1.1"]) == 2, 60, lambda: f"the other pod once more: {starts(tmp_path)}")
    wait_until(lambda: len(starts(tmp_path)["1.0"]) == 2, 60, "the first pod once more")
    assert (tmp_path / "asked.1").read_text() == "asked\n"
    assert not (tmp_path / "asked.0").exists()
    now = starts(tmp_path)
    assert [now[pod] for pod in ("0.0", "0.1")] == [before[pod] for pod in ("0.0", "0.1")]
    assert [is_alive(now[pod][-1]) for pod in sorted(now)] == [True] * 4
    history = cluster.run(f"bhist -l {pods} | tr -d '\n' | tr -s ' '").stdout.replace(" ", "")
    assert "Restarting2taskstogether:w[2]onhost" in history


@pytest.mark.parametrize("dies", [("lavad",), ("agent-host1", "agent-host2"), ("agent-host1", "lavad", "agent-host2")])
def test_no_start_is_lost_or_doubled_where_daemons_die_in_the_middle(
    cluster: Cluster, tmp_path: Path, pods: int, dies: tuple[str, ...]
) -> None:
    """While a pod that was asked to end has not yet."""
    (tmp_path / "fail.0.1").write_text("")
    wait_until(lambda: (tmp_path / "asked.0").exists(), 60, "the other pod to be asked")
    for name in dies:
        cluster.kill(name)
    (tmp_path / "let").write_text("")
    cluster.up()
    wait_until(lambda: [len(starts(tmp_path)[pod]) for pod in ("0.0", "0.1")] == [2, 2], 60, "both once more")
    assert [len(starts(tmp_path)[pod]) for pod in ("1.0", "1.1")] == [1, 1]
    assert [is_alive(pids[-1]) for pids in starts(tmp_path).values()] == [True] * 4


VOLCANO = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: x}
spec:
  plugins: {svc: []}
  policies: [{event: PodFailed, action: RestartJob, timeout: 1s}]
  tasks:
  - name: a
    replicas: 4
    partitionPolicy: {totalPartitions: 2, partitionSize: 2}
    policies: [{exitCode: 4, action: RestartPartition}]
    template: {spec: {containers: [{command: [sh, ./part.sh]}]}}
"""


def test_a_partition_starts_again_and_all_some_time_after_a_failure(cluster: Cluster, tmp_path: Path) -> None:
    """A lavad that is killed meanwhile does it when it is back."""
    (tmp_path / "let").write_text("")
    (tmp_path / "pod.sh").write_text(POD)
    (tmp_path / "part.sh").write_text(
        "JOB_INDEX=$((VC_TASK_INDEX / 2)) JOB_COMPLETION_INDEX=$((VC_TASK_INDEX % 2)) exec sh ./pod.sh\n"
    )
    (tmp_path / "job.yaml").write_text(VOLCANO)
    job = lava_run(cluster, tmp_path, "-o out job.yaml")
    wait_until(lambda: sorted(map(len, starts(tmp_path).values())) == [1] * 4, 60, "four pods")
    (tmp_path / "fail.1.0").write_text("")
    wait_until(lambda: [len(starts(tmp_path)[pod]) for pod in ("1.0", "1.1")] == [2, 2], 60, "the partition once more")
    assert [len(starts(tmp_path)[pod]) for pod in ("0.0", "0.1")] == [1, 1]
    os.kill(starts(tmp_path)["0.0"][0], signal.SIGKILL)
    wait_until(lambda: "RestartJob follows in 1 sec" in " ".join(cluster.run(f"bhist -l {job}").stdout.split()), 30, "the delay")
    cluster.kill("lavad")
    cluster.up()
    wait_until(lambda: [len(starts(tmp_path)[pod]) for pod in ("0.0", "0.1", "1.0", "1.1")] == [2, 2, 3, 3], 60, "all once more")
    cluster.run(f"bkill {job}")
    assert cluster.wait_end(job, timeout=60) == ["EXIT"]
    nothing_left(cluster, "606")
