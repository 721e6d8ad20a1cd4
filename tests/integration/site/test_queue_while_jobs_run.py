"""An administrator's lsb.queues on a real cluster: commands around jobs, controls, exit values, and changes while jobs run."""

from __future__ import annotations

import os

import pytest

from tests.support.autogroups import needs_autogroups
from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

QUEUES = """
Begin Queue
QUEUE_NAME = work
PRIORITY = 30
NICE = 7
PRE_EXEC = echo pre >> @FOLDER@/said
POST_EXEC = echo post >> @FOLDER@/said
JOB_STARTER = env STARTED=by-lava %USRCMD
SUCCESS_EXIT_VALUES = 7
REQUEUE_EXIT_VALUES = 99
MAX_JOB_REQUEUE = 1
JOB_CONTROLS = SUSPEND[echo stop >> @FOLDER@/said; kill -STOP $LSB_JOBPIDS] RESUME[kill -CONT $LSB_JOBPIDS] \\
    TERMINATE[echo term $LSB_JOBID >> @FOLDER@/said; kill -TERM $LSB_JOBPIDS]
JOB_OVERRUN = 60
DESCRIPTION = The queue of a site.
End Queue
"""


PARAMS = """
Begin Parameters
DEFAULT_QUEUE = work
MAX_SBD_FAIL = 7
End Parameters
"""

pytestmark = pytest.mark.cluster(conf={"lsb.queues": QUEUES, "lsb.params": PARAMS})


def said(cluster: Cluster) -> list[str]:
    path = cluster.folder.path.parent / "said"
    return path.read_text().splitlines() if path.exists() else []


def test_what_is_around_a_job_and_what_its_exit_means(cluster: Cluster) -> None:
    folder = cluster.folder.path.parent
    good = cluster.submit(f"-o {folder}/out \"sh -c 'echo \\$STARTED \\$(nice); exit 7'\"")
    again = cluster.submit("\"sh -c 'exit 99'\"")
    assert cluster.wait_end(good) == ["DONE"]
    assert cluster.wait_end(again) == ["EXIT"]
    nice = min(19, os.nice(0) + 7)  # added to what the daemons have of the tests
    assert f"by-lava {nice}\n" in (folder / "out").read_text()
    assert cluster.run(f"bhist -l {again}").stdout.count("Dispatched to <host1>") == 2, "once again, as MAX_JOB_REQUEUE says"
    assert "Execution CWD <>" not in cluster.run(f"bhist -l {again}").stdout
    wait_until(lambda: said(cluster).count("post") >= 2, 30, lambda: str(said(cluster)))
    assert said(cluster)[0] == "pre"


@needs_autogroups
def test_niceness_counts_between_jobs(cluster: Cluster) -> None:
    job = cluster.submit("-o /dev/null 'until grep \"nice 7$\" /proc/self/autogroup; do sleep 0.1; done; exit 7'")
    assert cluster.wait_end(job) == ["DONE"]


def test_the_queues_own_commands_stop_and_end_a_job(cluster: Cluster) -> None:
    job = cluster.submit("sleep 1000")
    cluster.wait_for(job, "RUN")
    wait_until(lambda: f"<{job}>" and cluster.run(f"bjobs -noheader -o pids {job}").stdout.strip() != "-", 20, "its process")
    cluster.run(f"bstop {job}")
    cluster.wait_for(job, "USUSP")
    wait_until(lambda: "stop" in said(cluster), 30, lambda: str(said(cluster)))
    cluster.run(f"bresume {job}")
    cluster.wait_for(job, "RUN")
    cluster.run(f"bkill {job}")
    assert cluster.wait_end(job) == ["EXIT"]
    assert f"term {job}" in said(cluster)


def test_a_reconfiguration_is_whole_or_refused_and_disturbs_no_job(cluster: Cluster) -> None:
    file = cluster.folder.conf / "lsb.queues"
    before = file.read_text()
    job = cluster.submit("sleep 1000")
    cluster.wait_for(job, "RUN")
    file.write_text(before.replace("PRIORITY = 30", "PRIORITY = high").replace("The queue of a site.", "Changed."))
    refused = cluster.run("badmin reconfig", ok=False)
    assert refused.returncode == 255
    assert f"{file}:4: error: queue work: PRIORITY" in refused.stdout
    assert "The queue of a site." in cluster.run("bqueues -l work").stdout
    file.write_text(before.replace("PRIORITY = 30", "PRIORITY = 30\nRES_REQ = select[mem>1 rusage[mem=5]"))
    refused = cluster.run("badmin reconfig", ok=False)
    assert refused.returncode == 255
    assert f"{file}:5: error: queue work: RES_REQ: " in refused.stdout
    assert refused.stdout == cluster.run("badmin ckconfig", ok=False).stdout
    assert "Reconfiguration aborted" in refused.stderr
    changed = before.replace("PRIORITY = 30", "PRIORITY = 31\nNETWORK_REQ = 60")
    file.write_text(changed.replace("of a site.", "of two."))
    assert cluster.run("badmin reconfig < /dev/null", ok=False).returncode == 255, "a warning is asked about"
    assert "NETWORK_REQ is not supported" in cluster.run("badmin ckconfig").stdout
    cluster.run("badmin reconfig -f")
    assert "The queue of two." in cluster.run("bqueues -l work").stdout
    assert cluster.states(job) == ["RUN"]
    file.write_text(before)
    assert "MAX_SBD_FAIL is not needed" in cluster.run("badmin reconfig -v < /dev/null").stdout, "a note is not asked about"
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)
