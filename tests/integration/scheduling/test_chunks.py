"""CHUNK_JOB_SIZE with real processes: one after the other in a slot, each once, whatever is killed meanwhile."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

QUEUES = """
Begin Queue
QUEUE_NAME = chunks
PRIORITY = 50
CHUNK_JOB_SIZE = 4
End Queue

Begin Queue
QUEUE_NAME = again
PRIORITY = 50
CHUNK_JOB_SIZE = 4
RERUNNABLE = Y
End Queue
"""
GATE = "'echo $LSB_JOBINDEX >>begun; until [ -e go$LSB_JOBINDEX ]; do sleep 0.05; done; echo $LSB_JOBINDEX >>ended'"

pytestmark = pytest.mark.cluster(added={"lsb.queues": QUEUES}, slots=2)


def lines(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def six_wait(cluster: Cluster, job: int) -> None:
    wait_until(
        lambda: sorted(cluster.states(job)) == ["RUN"] * 2 + ["WAIT"] * 6, 20, lambda: f"six to wait: {cluster.states(job)}"
    )


def test_jobs_of_a_chunk_run_one_after_the_other(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit(f"-q chunks -J 'a[1-8]' -o /dev/null {GATE}", cwd=tmp_path)
    wait_until(lambda: sorted(lines(tmp_path / "begun")) == [1, 2], 20, "two to begin")
    six_wait(cluster, job)
    assert cluster.run("bqueues -noheader -o 'njobs pend run' chunks").stdout.split() == ["8", "6", "2"]
    assert cluster.run("bhosts -noheader -o 'njobs run' host1").stdout.split() == ["2", "2"]
    assert "Waiting" in cluster.run(f"bhist -l '{job}[8]'").stdout
    (tmp_path / "go1").touch()
    wait_until(lambda: sorted(lines(tmp_path / "begun")) == [1, 2, 3], 20, "the one behind the first to begin")
    cluster.wait_for(f"{job}[3]", "RUN")
    for index in range(2, 9):
        (tmp_path / f"go{index}").touch()
    assert cluster.wait_end(job) == ["DONE"] * 8
    assert lines(tmp_path / "ended")[0] == 1
    assert sorted(lines(tmp_path / "ended")) == list(range(1, 9))
    assert cluster.run("bhosts -noheader -o 'njobs run' host1").stdout.split() == ["0", "0"]


def test_one_that_waits_is_killed_held_or_switched_and_the_others_go_on(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit(f"-q chunks -J 'a[1-8]' -o /dev/null {GATE}", cwd=tmp_path)
    six_wait(cluster, job)
    cluster.run(f"bkill '{job}[7]' '{job}[8]'")
    cluster.run(f"bstop '{job}[6]'")
    cluster.run(f"bswitch normal '{job}[5]'")
    cluster.wait_for(f"{job}[7]", "EXIT")
    cluster.wait_for(f"{job}[8]", "EXIT")
    cluster.wait_for(f"{job}[6]", "PSUSP")
    cluster.wait_for(f"{job}[5]", "PEND")
    assert cluster.run("bhosts -noheader -o 'njobs run' host1").stdout.split() == ["2", "2"], "their slots are not free"
    for index in range(1, 9):
        (tmp_path / f"go{index}").touch()
    cluster.wait_for(f"{job}[5]", "DONE")
    cluster.run(f"bresume '{job}[6]'")
    cluster.wait_for(f"{job}[6]", "DONE")
    wait_until(lambda: sorted(lines(tmp_path / "ended")) == [1, 2, 3, 4, 5, 6], 20, "all but the killed to end")
    assert sorted(lines(tmp_path / "begun")) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("queue", ["chunks", "again"])
def test_killed_daemons_lose_none_and_run_none_twice(cluster: Cluster, tmp_path: Path, queue: str) -> None:
    job = cluster.submit(f"-q {queue} -J 'a[1-8]' -o /dev/null {GATE}", cwd=tmp_path)
    six_wait(cluster, job)
    cluster.kill("agent-host1", signal.SIGKILL)
    (tmp_path / "go1").touch()
    wait_until(lambda: lines(tmp_path / "ended") == [1], 20, "one to end while there is no agent")
    cluster.up()
    wait_until(lambda: sorted(lines(tmp_path / "begun")) == [1, 2, 3], 30, "the next to begin with the new agent")
    cluster.kill("lavad", signal.SIGKILL)
    (tmp_path / "go2").touch()
    (tmp_path / "go3").touch()
    wait_until(lambda: sorted(lines(tmp_path / "begun")) == [1, 2, 3, 4, 5], 30, "chunks to go on without a master")
    cluster.up()
    for index in range(4, 9):
        (tmp_path / f"go{index}").touch()
    assert cluster.wait_end(job, timeout=60) == ["DONE"] * 8
    assert sorted(lines(tmp_path / "begun")) == sorted(lines(tmp_path / "ended")) == list(range(1, 9))
