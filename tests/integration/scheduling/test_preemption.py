"""Preemption, reservation and run-limit backfill with real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

QUEUES = """
Begin Queue
QUEUE_NAME = urgent
PRIORITY = 80
PREEMPTION = PREEMPTIVE[normal again]
End Queue

Begin Queue
QUEUE_NAME = big
PRIORITY = 60
SLOT_RESERVE = MAX_RESERVE_TIME[100]
End Queue

Begin Queue
QUEUE_NAME = fill
PRIORITY = 50
BACKFILL = Y
End Queue

Begin Queue
QUEUE_NAME = again
PRIORITY = 10
JOB_CONTROLS = SUSPEND[brequeue $LSB_JOBID]
End Queue
"""


pytestmark = pytest.mark.cluster(added={"lsb.queues": QUEUES})


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_a_victim_stops_and_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    low = cluster.submit("-n 4 -o low.out 'echo $$ >pid; exec sleep 1000'", cwd=tmp_path)
    pid = int(wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(), 20, "pid"))
    high = cluster.submit("-q urgent -n 2 -o high.out 'while [ ! -e go ]; do sleep 0.1; done'", cwd=tmp_path)
    cluster.wait_for(high, "RUN")
    cluster.wait_for(low, "SSUSP")
    wait_until(lambda: stopped(pid), 20, "the victim's process to stop")
    assert f"preempted by job <{high}>" in " ".join(cluster.run(f"bjobs -l {low}").stdout.split())
    later = cluster.submit("-o /dev/null sleep 1000", cwd=tmp_path)
    (tmp_path / "go").touch()
    cluster.wait_for(high, "DONE")
    cluster.wait_for(low, "RUN")
    wait_until(lambda: not stopped(pid), 20, "the victim's process to go on")
    assert cluster.states(later) == ["PEND"]
    cluster.run(f"bkill {low} {later}")
    cluster.wait_end(low)
    cluster.wait_end(later)


def test_a_victim_is_requeued(cluster: Cluster, tmp_path: Path) -> None:
    low = cluster.submit("-q again -n 4 -o low.out 'exec sleep 1000'", cwd=tmp_path)
    cluster.wait_for(low, "RUN")
    high = cluster.submit("-q urgent -n 4 -o high.out 'while [ ! -e go ]; do sleep 0.1; done'", cwd=tmp_path)
    cluster.wait_for(high, "RUN", timeout=60)
    cluster.wait_for(low, "PEND")
    (tmp_path / "go").touch()
    cluster.wait_for(high, "DONE")
    cluster.wait_for(low, "RUN", timeout=60)
    cluster.run(f"bkill {low}")
    cluster.wait_end(low)


def test_a_big_job_holds_what_is_free_and_short_jobs_fill_the_gap(cluster: Cluster, tmp_path: Path) -> None:
    first = cluster.submit("-n 3 -W 60 -o /dev/null sleep 1000", cwd=tmp_path)
    cluster.wait_for(first, "RUN")
    big = cluster.submit("-q big -n 4 -W 10 -o /dev/null true", cwd=tmp_path)
    wait_until(lambda: cluster.run("bqueues -noheader -o rsv big", ok=False).stdout.split() == ["1"], 20, "a slot held")
    assert "Job will start no sooner than" in " ".join(cluster.run(f"bjobs -l {big}").stdout.split())
    plain = cluster.submit("-W 1 -o /dev/null true", cwd=tmp_path)
    short = cluster.submit("-q fill -W 5 -o /dev/null true", cwd=tmp_path)
    cluster.wait_for(short, "DONE")
    assert cluster.states(plain) == ["PEND"]
    cluster.run(f"bkill {first}")
    cluster.wait_for(big, "DONE")
    cluster.wait_for(plain, "DONE")
