"""Values with brackets of their own: REQUEUE_EXIT_VALUES with EXCLUDE of a profile, JOB_CONTROLS whose command has brackets."""

from __future__ import annotations

from pathlib import Path

from tests.scenario.queue_site import QueueSite

APPLICATION = "Begin Application\nNAME = a\nREQUEUE_EXIT_VALUES = 1 2 EXCLUDE(3)\nEnd Application\n"
HIGH = "Begin Queue\nQUEUE_NAME = high\nPRIORITY = 60\nPREEMPTION = PREEMPTIVE\nEnd Queue\n"


def test_a_profile_excludes_the_host_of_an_exit_value(tmp_path: Path) -> None:
    site = QueueSite(tmp_path, "", lsb__applications=APPLICATION)
    job = site.bsub(app="a")
    site.turn()
    first = list(site.hosts_of(job))
    site.ends(job, 3)
    assert site.state(job) == "PEND"
    site.turn(60)
    assert list(site.hosts_of(job)) != first


def test_a_suspend_control_with_brackets_that_requeues(tmp_path: Path) -> None:
    line = "PRIORITY = 20\nJOB_CONTROLS = SUSPEND[[ -f /x ] && brequeue $LSB_JOBID]"
    site = QueueSite(tmp_path, line, HIGH)
    low = site.bsub(n="12")
    site.turn()
    site.bsub(q="high")
    plan = site.schedule()
    assert [(one.key, one.how) for one in plan.preemptions] == [(low, "requeue")]
