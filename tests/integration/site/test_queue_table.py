"""An administrator's lsb.queues with more than forty parameters on a live cluster: what only processes can show.

Who may start when, and why not, is shown parameter by parameter in tests/scenario/test_queue_*.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

PROVEN = """
NICE PRE_EXEC POST_EXEC HOST_PRE_EXEC HOST_POST_EXEC PRE_POST_EXEC_USER JOB_STARTER DESCRIPTION JOB_CONTROLS
"""
"""Of lsb.queues here and in test_queue_while_jobs_run.py; JOB_WARNING_ACTION is proven in agent/test_control.py,
PRE_POST_EXEC_USER in agent/test_prepost_apart.py."""
SITE = Path(__file__).with_name("site_queues")


pytestmark = pytest.mark.cluster(hosts=2, conf={file.name: file.read_text() for file in SITE.iterdir()})


def said(cluster: Cluster, file: str = "said") -> list[str]:
    path = cluster.folder.path.parent / file
    return path.read_text().splitlines() if path.exists() else []


def output(cluster: Cluster, words: str) -> list[str]:
    """The lines that a job of the queue writes."""
    return cluster.run(f"bsub -q site -I {words}").stdout.splitlines()[1:]


def test_all_of_it_is_in_force(cluster: Cluster) -> None:
    assert cluster.run("badmin ckconfig").stdout.endswith("No errors found.\n\n")
    shown = cluster.run("bqueues -l site").stdout
    for line in (
        "  20  10    Open:Active      8    6  2.0    5",
        "Migration threshold is 30 minutes",
        "Interval for a host to accept two jobs is 0 seconds",
        "DEFAULT LIMITS:",
        " CPULIMIT                 RUNLIMIT                ",
        " 10.0 min of host1        60.0 min of host1       ",
        "MAXIMUM LIMITS:",
        " FILELIMIT DATALIMIT STACKLIMIT CORELIMIT MEMLIMIT SWAPLIMIT PROCESSLIMIT THREADLIMIT",
        " TASKLIMIT\n 4\n",
        " HOSTLIMIT_PER_JOB\n 2\n",
        " loadSched   -   50.0    -     -   4000.0    -    -     -     -      -     10M ",
        " loadStop    -   60.0    -     -   8000.0    -    -     -     -      -      5M ",
        " Threshold       60               1              0.10",
        "SCHEDULING POLICIES:  FAIRSHARE  BACKFILL  IGNORE_DEADLINE  EXCLUSIVE  PREEMPTABLE",
        "USER_SHARES:  [default, 10] ",
        "DEFAULT HOST SPECIFICATION:  host1",
        "RUN_WINDOWS:  0:00-23:59 23:59-0:00",
        "DISPATCH_WINDOW:  0:00-23:59 23:59-0:00",
        "USERS:  all users",
        "HOSTS:  host1+1 host2",
        "ADMINISTRATORS:  root",
        "REQUEUE_EXIT_VALUES:  55 34 EXCLUDE(78)",
        "SUCCESS_EXIT_VALUES:  7",
        "RES_REQ:  select[type==any] rusage[mem=10] order[r1m]",
        "Maximum slot reservation time:  5 periods",
        "RESUME_COND:  select[ut<=1.0]",
        "STOP_COND:  select[ut>2.0]",
        "CHKPNTPERIOD:  10",
        "RERUNNABLE:  yes",
        "MAX_JOB_REQUEUE:  2",
        "JOB_ACTION_WARNING_TIME:  2 minutes",
        "JOB_WARNING_ACTION:  URG",
        "    RESUME:       [SIGCONT]",
        "TERMINATE_WHEN = WINDOW LOAD",
    ):
        assert line in shown, f"{line}\n{shown}"


def test_a_job_starts_as_the_queue_says(cluster: Cluster) -> None:
    limits = "ulimit -t; ulimit -Hf; ulimit -d; ulimit -s; ulimit -c"
    writes = "echo $TMPDIR; echo x > $TMPDIR/file && cat $TMPDIR/file; ls -ld $TMPDIR"
    lines = output(cluster, f"'echo $STARTED; nice; {limits}; {writes}'")
    assert lines[:2] == ["by-site", str(min(19, os.nice(0) + 10))], "JOB_STARTER and NICE"
    assert lines[2:7] == ["600", "40000", "2000000", "20480", "2000"], "CPULIMIT, FILELIMIT, DATALIMIT, STACKLIMIT, CORELIMIT"
    assert lines[7].endswith(".tmpdir")
    assert lines[8] == "x"
    assert lines[9].startswith("drwx------"), "LSB_SET_TMPDIR"
    wait_until(lambda: not Path(lines[7]).exists(), 30, "the folder of a job goes with it")


def test_commands_run_around_a_job_in_lsfs_order_and_on_each_host(cluster: Cluster) -> None:
    log = cluster.folder.path.parent / "said"
    log.unlink(missing_ok=True)
    job = cluster.submit(f"-q site -n 2 -R span[ptile=1] 'echo job $LSB_JOBID >> {log}; exit 7'")
    assert cluster.wait_end(job) == ["DONE"], "SUCCESS_EXIT_VALUES"
    wait_until(lambda: said(cluster).count("host post") == 2, 20, lambda: str(said(cluster)))
    lines = said(cluster)
    assert sorted(lines[:3]) == ["host pre", "host pre", f"queue pre {job}"], "HOST_PRE_EXEC on both, PRE_EXEC on the first"
    assert lines[3] == f"job {job}"
    assert lines.index(f"queue post {job} 1792") > 3, "POST_EXEC knows the exit status"


def test_a_job_runs_until_its_post_execution_has_ended(cluster: Cluster) -> None:
    """JOB_INCLUDE_POSTPROC and JOB_POSTPROC_TIMEOUT of an application."""
    folder = cluster.folder.path.parent
    own = f"echo own >> {folder}/around; until [ -e {folder}/go ]; do sleep 0.1; done"
    job = cluster.submit(f"-q around -app whole -Ep '{own}' true")
    wait_until(lambda: said(cluster, "around") == ["own"], 20, lambda: str(said(cluster, "around")))
    assert cluster.states(job) == ["RUN"]
    (folder / "go").touch()
    assert cluster.wait_end(job) == ["DONE"]
    assert said(cluster, "around") == ["own", "queue"]
    assert "Post job process done successfully" in cluster.run(f"bhist -l {job}").stdout


def test_an_exit_value_sends_a_job_back_and_away_from_its_host(cluster: Cluster) -> None:
    job = cluster.submit("-q site 'test $LSB_HOSTS = host2 || exit 78'")
    assert cluster.wait_end(job, timeout=60) == ["DONE"], "REQUEUE_EXIT_VALUES with EXCLUDE"
    history = cluster.run(f"bhist -l {job}").stdout
    assert "Dispatched to <host1>" in history
    assert "Dispatched to <host2>" in history


TOO_MUCH = {
    "TERM_MEMLIMIT": "python3 -c 'x = bytearray(900_000_000); import time; time.sleep(60)'",
    "TERM_PROCESSLIMIT": "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sleep 60 & done; wait",
    "TERM_THREADLIMIT": "python3 -c 'from threading import Timer\nfor _ in range(40): Timer(60, print).start()'",
}


def test_what_uses_too_much_is_ended(cluster: Cluster) -> None:
    jobs = {}
    for reason, command in TOO_MUCH.items():
        script = cluster.folder.path.parent / reason
        script.write_text(f"#!/bin/sh\n{command}\n")
        script.chmod(0o755)
        jobs[reason] = cluster.submit(f"-q site {script}")
    for reason, job in jobs.items():
        assert cluster.wait_end(job, timeout=60) == ["EXIT"]
        assert reason in cluster.run(f"bjobs -l -a {job}").stdout.replace("\n" + " " * 21, "")
