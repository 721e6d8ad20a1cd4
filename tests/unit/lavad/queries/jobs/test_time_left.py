"""lava time-left: the seconds until a job must end."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.queue import QueueConfig
from config.model.values import TerminateWhen
from lavad.core import events as ev
from lavad.core.job.job import PendingSignal
from lavad.core.lang.states import JobState, SignalKind
from lavad.local_time import local_time
from tests.support.worlds.query_cluster import QueryCluster, at


def left(c: QueryCluster, job: int = 1) -> str:
    out, err, code = c.ask("time-left", str(job))
    assert (err, code) == ("", 0)
    return out.strip()


def test_a_run_limit_less_what_was_run_and_not_suspended() -> None:
    c = QueryCluster()
    c.submit(1, limits={"run": 3600})
    c.start(1, "11:33:55")
    c.now = at("11:35:35")
    assert left(c) == "3500"
    c.feed(ev.JobSuspended(at=at("11:35:55"), key=1, state=JobState.USUSP))
    c.now = at("11:45:55")
    assert left(c) == "3480"
    c.feed(ev.JobResumed(at=at("11:45:55"), key=1))
    c.now = at("11:46:55")
    assert left(c) == "3420"
    c.now = at("23:00:00")
    assert left(c) == "0"


def test_what_ends_it_first_counts() -> None:
    c = QueryCluster()
    c.submit(1, limits={"run": 3600}, deadline=at("11:40:00"))
    c.submit(2)
    for job in (1, 2):
        c.start(job, "11:33:55")
    c.now = at("11:35:00")
    assert (left(c, 1), left(c, 2)) == ("300", "unlimited")
    pending = PendingSignal(kind=SignalKind.REQUEUE, at=c.now, notice=60)
    c.feed(ev.SignalRequested(at=c.now, key=2, pending=pending))
    c.now += 20
    assert left(c, 2) == "40", "it was warned"


@pytest.mark.parametrize(
    ("text", "queue", "seconds"),
    [
        ({}, {}, "300"),
        ({"warn_action": "TERM", "warn_before": 60}, {}, "60"),
        ({}, {"job_warning_action": "TERM", "job_action_warning_time": 120}, "120"),
        ({"warn_action": "TERM", "warn_before": 900}, {}, "300"),
    ],
)
def test_a_job_that_was_warned_has_the_time_of_its_warning(text: dict[str, Any], queue: dict[str, Any], seconds: str) -> None:
    """Of -wt, or of its queue, and not more than the master gives."""
    c = QueryCluster()
    c.feed(ev.Configured(at=c.now, conf=replace(c.cluster.conf, queues=(QueueConfig(name="normal", **queue),))))
    c.submit(1, text=text)
    c.start(1)
    c.feed(ev.SignalRequested(at=c.now, key=1, pending=PendingSignal(kind=SignalKind.REQUEUE, at=c.now, notice=300)))
    assert left(c) == seconds


def test_a_run_window_counts_where_it_ends_jobs() -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1)
    local = local_time(c.now)
    queue = QueueConfig(name="normal", run_window=f"{local.hour}:00-{local.hour}:59")
    c.feed(ev.Configured(at=c.now, conf=replace(c.cluster.conf, queues=(queue,))))
    assert left(c) == "unlimited", "it suspends them"
    queue = replace(queue, terminate_when=(TerminateWhen.WINDOW,))
    c.feed(ev.Configured(at=c.now, conf=replace(c.cluster.conf, queues=(queue,))))
    assert left(c) == str(59 * 60 - local.minute * 60 - local.second)


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("77", "Job <77> is not found or has finished"),
        ("2", "Job <2> has not started yet"),
        ("3", "Job <3> is an array: name one element, as 3[1]"),
        ("3[2]", "Job <3[2]> has not started yet"),
        ("x", "x: Illegal job ID"),
    ],
)
def test_of_other_jobs_one_line_says_why_not(word: str, why: str) -> None:
    c = QueryCluster()
    c.submit(2)
    c.submit(3, indices="1-3")
    assert c.ask("time-left", word) == ("", f"{why}\n", 255)
