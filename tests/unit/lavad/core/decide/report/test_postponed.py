"""Actions that follow some time after a task has ended, unless it runs again by then."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.decide.report.tasks import postponed
from lavad.core.job.job import PendingSignal
from lavad.core.lang.asks import Refused
from lavad.core.lang.states import JobState, SignalKind, TermReason
from lavad.core.rules.effects import StartTask
from tests.support.worlds.bench import Bench
from tests.support.worlds.roles import OK, TERM, Roles, code, role


def pass_time(job: Roles, seconds: float) -> list[str]:
    """The names of the events that follow by time alone."""
    job.bench.now += seconds
    decided = postponed(job.bench.cluster, job.bench.now)
    job.bench.take(decided)
    return [type(event).__name__ for event in decided.events]


@pytest.mark.parametrize(
    ("action", "follows", "state"),
    [("RestartJob(30)", "JobJudged", JobState.PEND), ("AbortJob(30)", "JobJudged", JobState.EXIT)],
)
def test_the_job_goes_on_until_its_time_is_over(bench: Bench, action: str, follows: str, state: JobState) -> None:
    """Also where all of its tasks have ended meanwhile."""
    job = Roles(bench, role(count=2), actions=[("TaskFailed", action, -1)]).run()
    assert job.ended(0, code(3), limit=TermReason.TERM_MEMLIMIT) == ["TaskEnded", "ActionPostponed"]
    assert job.ended(1, OK) == ["TaskEnded"]
    assert pass_time(job, 29.0) == []
    assert pass_time(job, 2.0) == ["ActionDue", follows]
    assert job.attempt.verdict is not None
    assert job.attempt.verdict.first_reason == "worker[0] on h1 ended with exit code 3 (TERM_MEMLIMIT)"
    assert job.finish() is state
    assert pass_time(job, 60.0) == []


def test_a_task_that_restarts_waits_as_long_at_least(bench: Bench) -> None:
    job = Roles(bench, role(count=2), actions=[("TaskFailed", "RestartTask(30)", -1)]).run()
    assert job.ended(0, code(3)) == ["TaskEnded", "TaskRetried"]
    (start,) = job.due(StartTask)
    assert isinstance(start, StartTask)
    assert start.delay == 30.0


def test_what_starts_again_meanwhile_is_not_restarted_twice(bench: Bench) -> None:
    """Both tasks of a group fail; the first one's time restarts both."""
    job = Roles(bench, role(count=2, actions=[("TaskFailed", "RestartGroup(30)", -1)])).run()
    assert job.ended(0, code(3)) == ["TaskEnded", "ActionPostponed"]
    bench.now += 10.0
    assert job.ended(1, code(3)) == ["TaskEnded", "ActionPostponed"]
    assert pass_time(job, 21.0) == ["ActionDue", "TasksRecalled", "TasksReturned"]
    for rank in (0, 1):
        job.started(rank)
    assert pass_time(job, 30.0) == []
    assert (job.states(), bench.job(job.key).retries) == (["RUNNING"] * 2, 1)


def test_a_success_that_comes_first_ends_the_job(bench: Bench) -> None:
    job = Roles(bench, role(count=2), actions=[("TaskFailed", "AbortJob(30)", -1)], success="any").run()
    job.ended(0, code(3))
    assert job.ended(1, OK) == ["TaskEnded", "JobJudged"]
    assert pass_time(job, 60.0) == []
    assert job.finish() is JobState.DONE


def test_a_job_is_complete_some_time_after_its_tasks(bench: Bench) -> None:
    """Those of one role, while another one runs on."""
    rules = [("TaskCompleted", "CompleteJob(30)", -1)]
    job = Roles(bench, role("a", count=2, actions=rules), role("b"), success="all").run()
    job.ended(0, OK)
    assert job.ended(1, OK) == ["TaskEnded", "ActionPostponed"]
    assert pass_time(job, 31.0) == ["ActionDue", "JobJudged"]
    assert job.finish() is JobState.DONE


@pytest.mark.parametrize("action", ["Ignore(3)", "RestartJob(x)", "RestartJob()", "RestartJob(3", "RestartJob(-1)"])
def test_a_time_that_is_none_is_refused(bench: Bench, action: str) -> None:
    with pytest.raises(Refused, match="it must be a number of seconds that is in parentheses, and Ignore has none"):
        Roles(bench, role(), actions=[("TaskFailed", action, -1)])


def test_a_job_that_is_killed_waits_for_nothing(bench: Bench) -> None:
    job = Roles(bench, role(count=2, actions=[("TaskFailed", "RestartJob(30)", -1)])).run()
    job.ended(0, code(3))
    asked = PendingSignal(kind=SignalKind.KILL, at=bench.now, reason=TermReason.TERM_OWNER)
    bench.apply(ev.SignalRequested(at=bench.now, key=job.key, pending=asked))
    assert job.ended(1, TERM) == ["TaskEnded", "JobJudged"]
    assert pass_time(job, 60.0) == []
