"""Preemption, reservation and run-limit backfill with real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.processes import state_of
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
QUEUE_NAME = lazy
PRIORITY = 5
BACKFILL = Y
RUNLIMIT = 600
INTERRUPTIBLE_BACKFILL = 1
REQUEUE_EXIT_VALUES = 140
End Queue

Begin Queue
QUEUE_NAME = soft
PRIORITY = 30
EXTENDABLE_RUNLIMIT = BASE[1] REQUEUE[Y]
DEFAULT_HOST_SPEC = brief
End Queue

Begin Queue
QUEUE_NAME = again
PRIORITY = 10
JOB_CONTROLS = SUSPEND[brequeue $LSB_JOBID]
End Queue
"""


MODELS = "Begin HostModel\nMODELNAME CPUFACTOR ARCHITECTURE\nbrief 0.1 ()\nEnd HostModel\n"
"""A run limit of a minute there is of six seconds elsewhere."""

PARAMS = "Begin Parameters\nABS_RUNLIMIT = N\nEnd Parameters\n"


pytestmark = pytest.mark.cluster(added={"lsb.queues": QUEUES, "lsf.shared": MODELS, "lsb.params": PARAMS})


def stopped(pid: int) -> bool:
    return state_of(pid) == "T"


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


SAVES = """#!/bin/sh
trap 'mkdir $LSB_CHKPNT_DIR/gen-1.tmp; printf "{\\"generation\\": 1, \\"files\\": {}}" >$LSB_CHKPNT_DIR/gen-1.tmp/MANIFEST
mv $LSB_CHKPNT_DIR/gen-1.tmp $LSB_CHKPNT_DIR/gen-1' USR1
echo "$LSB_RESTART $LAVA_CKPT_GENERATION" >>starts
while :; do sleep 0.1; done
"""
STOPS = """#!/bin/sh
trap 'echo $LSB_JOBID >>warned; exit 3' URG
echo begun >>begun
while [ ! -e warned ]; do sleep 0.1; done
sleep 1000
"""


def test_victims_are_warned_before_they_are_requeued(cluster: Cluster, tmp_path: Path) -> None:
    for name, text in {"saves": SAVES, "stops": STOPS, "action": "#!/bin/sh\necho $LSB_JOBID >action.ran\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    lows = [
        cluster.submit(f"-q again -n 2 -k {tmp_path}/ck -o /dev/null ./saves", cwd=tmp_path),
        cluster.submit("-q again -wa URG -wt 1 -o /dev/null ./stops", cwd=tmp_path),
        cluster.submit(f"-q again -wa {tmp_path}/action -wt 60 -o /dev/null 'echo $$ >pid; exec sleep 1000'", cwd=tmp_path),
    ]
    files = [tmp_path / name for name in ("starts", "begun", "pid")]
    wait_until(lambda: all(file.exists() for file in files), 30, lambda: f"all to run\n{cluster.logs()}")
    # One whose start is not reported yet is ended without a warning.
    history = f"bhist -l {' '.join(map(str, lows))}"
    wait_until(lambda: cluster.run(history).stdout.count("Starting (Pid ") == 3, 30, "their starts to be reported")
    high = cluster.submit("-q urgent -n 4 -o /dev/null 'while [ ! -e go ]; do sleep 0.1; done'", cwd=tmp_path)
    ran = tmp_path / "action.ran"
    wait_until(lambda: ran.exists() and ran.read_text() == f"{lows[2]}\n", 30, lambda: f"the command\n{cluster.logs()}")
    for low in lows[:2]:
        cluster.wait_for(low, "PEND")
    assert (tmp_path / "warned").read_text() == f"{lows[1]}\n", "it was warned, and ended as it wanted to"
    assert Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists(), "it has the site's time, 5 minutes"
    assert cluster.states(high) == ["PEND"]
    cluster.run(f"bkill {lows[1]} {lows[2]}")
    cluster.wait_for(high, "RUN")
    (tmp_path / "go").touch()
    cluster.wait_for(high, "DONE")
    wait_until(lambda: (tmp_path / "starts").read_text().splitlines()[1:] == ["Y 1"], 30, lambda: cluster.logs())
    cluster.run(f"bkill {lows[0]}")
    for low in lows:
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


def test_a_job_in_what_is_held_ends_when_that_is_needed_and_goes_on_later(cluster: Cluster, tmp_path: Path) -> None:
    first = cluster.submit("-n 3 -W 1/brief -o /dev/null sleep 1000", cwd=tmp_path)
    cluster.wait_for(first, "RUN")
    big = cluster.submit("-q big -n 4 -W 10 -o /dev/null true", cwd=tmp_path)
    wait_until(lambda: cluster.run("bqueues -noheader -o rsv big", ok=False).stdout.split() == ["1"], 20, "a slot held")
    lazy = cluster.submit("-q lazy -o /dev/null 'echo begun >>starts; exec sleep 1000'", cwd=tmp_path)
    cluster.wait_for(lazy, "RUN")
    assert cluster.run(f"bjobs -noheader -o runtimelimit {lazy}").stdout.split() in (["0.1/host1"], ["0.0/host1"])
    cluster.wait_for(big, "DONE")
    starts = tmp_path / "starts"
    wait_until(lambda: starts.read_text().split() == ["begun"] * 2, 30, lambda: f"it to go on\n{cluster.logs()}")
    assert "minutes: its slots are held for another job from then on" in cluster.run(f"bhist -l -UF {lazy}").stdout
    cluster.run(f"bkill {lazy}")
    cluster.wait_end(lazy)


def test_a_run_limit_is_extended_until_others_need_the_slots(cluster: Cluster, tmp_path: Path) -> None:
    """SOFT has a limit of a minute that is given for a model on which it lasts six seconds."""
    soft = cluster.submit("-q soft -n 4 -o /dev/null 'echo begun >>began; exec sleep 1000'", cwd=tmp_path)
    cluster.wait_for(soft, "RUN")
    assert "SOFT_RUNLIMIT" in cluster.run(f"bjobs -l {soft}").stdout
    history = f"bhist -l -UF {soft}"
    wait_until(
        lambda: "Soft run limit is extended to 2.0 minutes" in cluster.run(history).stdout,
        30,
        lambda: cluster.run(history).stdout + cluster.run(f"bjobs -l {soft}").stdout,
    )
    other = cluster.submit("-q soft -n 2 -o /dev/null true", cwd=tmp_path)
    wait_until(lambda: "as other jobs need its slots" in cluster.run(history).stdout, 30, lambda: cluster.logs())
    cluster.wait_for(other, "DONE")
    wait_until(lambda: (tmp_path / "began").read_text().split() == ["begun"] * 2, 30, lambda: f"to go on\n{cluster.logs()}")
    cluster.run(f"bkill {soft}")
    cluster.wait_end(soft)
