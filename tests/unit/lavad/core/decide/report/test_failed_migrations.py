"""A job with roles is to end, and does not: its migration has failed. What its tasks ended with meanwhile is decided then."""

from __future__ import annotations

from typing import Any

import pytest

from lavad.core.decide.control.control import migrate, requeue
from lavad.core.decide.report.tasks import postponed
from lavad.core.lang.asks import Migrate, Requeue, Select
from lavad.core.lang.states import JobState, TermReason
from lavad.core.rules.effects import StartTask
from tests.support.worlds.bench import Bench
from tests.support.worlds.roles import OK, Roles, code, role

WHY = "no process of the job catches SIGUSR2"
SAVES = {"k": "/ck"}


def migrated(job: Roles) -> Roles:
    """Somebody asks for its migration."""
    job.bench.now += 10.0
    assert job.bench.asked(migrate, Migrate(jobs=Select(ids=[str(job.key)]))) == [(str(job.key), "")]
    job.bench.now += 1.0
    return job


def failed(job: Roles) -> list[str]:
    """Its first host has made no checkpoint: what follows, after the failure itself."""
    job.bench.now += 1.0
    run = job.attempt
    number = run.pending_signals[-1].number
    first, *more = job.bench.said("granted", job.key, run.parts[0].host, number, False, WHY, uid=run.uid)
    assert (first, job.attempt.pending_signals) == ("SignalHandled", ())
    return more


def due(job: Roles) -> list[tuple[int, int]]:
    """(rank, number) of tasks that are to start."""
    return [(one.rank, one.number) for one in job.due(StartTask) if isinstance(one, StartTask)]


def test_a_task_that_failed_meanwhile_is_restarted(bench: Bench) -> None:
    job = migrated(Roles(bench, role(count=2, restart="OnFailure"), options=SAVES).run())
    assert job.ended(0, code(3)) == ["TaskEnded"]
    assert due(job) == []
    assert failed(job) == ["TaskRetried"]
    assert (due(job), bench.job(job.key).retries) == ([(0, 2)], 1)


def test_a_task_that_failed_meanwhile_ends_the_job(bench: Bench) -> None:
    job = migrated(Roles(bench, role(count=2), role("other"), options=SAVES).run())
    assert job.ended(1, code(3)) == job.ended(2, code(4)) == ["TaskEnded"]
    assert failed(job) == ["JobJudged"]
    assert job.finish() is JobState.EXIT
    assert bench.outcome(job.key).why == "worker[1] on h1 ended with exit code 3"


def test_one_that_a_limit_ended_meanwhile_ends_the_job_for_it(bench: Bench) -> None:
    job = migrated(Roles(bench, role(count=2), options=SAVES | {"Q": "all"}).run())
    assert job.ended(0, 9, limit=TermReason.TERM_MEMLIMIT) == ["TaskEnded"]
    assert failed(job) == ["JobJudged"]
    assert job.finish() is JobState.EXIT
    assert bench.outcome(job.key).reason is TermReason.TERM_MEMLIMIT


def test_one_that_succeeded_meanwhile_completes_the_job(bench: Bench) -> None:
    job = migrated(Roles(bench, role(count=2), role("chief"), success="chief", options=SAVES).run())
    assert job.ended(2, OK) == ["TaskEnded"]
    assert failed(job) == ["JobJudged"]
    assert job.finish() is JobState.DONE


def test_restarts_meanwhile_are_counted_one_after_the_other(bench: Bench) -> None:
    """The job has two of them."""
    job = migrated(Roles(bench, role(count=4, restart="OnFailure"), backoff=2, options=SAVES).run())
    for rank in (2, 0, 1):
        assert job.ended(rank, code(3)) == ["TaskEnded"]
        bench.now += 1.0
    assert failed(job) == ["TaskRetried", "TaskRetried", "JobJudged"]
    assert job.finish() is JobState.EXIT
    assert bench.outcome(job.key).why == "worker[1] on h1 ended with exit code 3, and its 2 restarts are used up"


def test_what_was_decided_before_is_not_decided_again(bench: Bench) -> None:
    """The role is complete with the second of its tasks, and the first one's end was nothing."""
    rules = [("TaskCompleted", "RestartTask", -1), ("TaskFailed", "Ignore", -1)]
    job = Roles(bench, role(count=2, actions=rules), role("other"), success="other", options=SAVES).run()
    assert job.ended(0, OK) == ["TaskEnded"]
    migrated(job)
    assert job.ended(1, OK) == ["TaskEnded"]
    assert failed(job) == ["TaskRetried"]
    assert due(job) == [(1, 2)]


def test_groups_that_were_recalled_or_fail_meanwhile_start_again(bench: Bench) -> None:
    """Of the first group one task was recalled before, of the second one both fail meanwhile: it starts again once."""
    job = Roles(bench, role(count=4, group=2, actions=[("TaskFailed", "RestartGroup", -1)]), role("other"), options=SAVES).run()
    assert job.ended(0, code(3)) == ["TaskEnded", "TasksRecalled"]
    migrated(job)
    for rank in (1, 2, 3):
        assert job.ended(rank, code(3)) == ["TaskEnded"]
    assert failed(job) == ["TasksReturned", "TasksRecalled", "TasksReturned"]
    assert due(job) == [(rank, 2) for rank in range(4)]
    assert bench.job(job.key).retries == 2


def test_what_follows_later_does(bench: Bench) -> None:
    job = migrated(Roles(bench, role(count=2), actions=[("TaskFailed", "AbortJob(30)", -1)], options=SAVES).run())
    assert job.ended(0, code(3)) == ["TaskEnded"]
    assert failed(job) == ["ActionPostponed"]
    bench.now += 31.0
    bench.take(postponed(bench.cluster, bench.now))
    assert job.finish() is JobState.EXIT


@pytest.mark.parametrize("ends", ["TaskEnded", "nothing"])
def test_nothing_is_decided_where_the_job_is_to_end_all_the_same(bench: Bench, ends: str) -> None:
    """brequeue comes before the failure: a task that failed is none of the job's restarts."""
    job = migrated(Roles(bench, role(count=2, restart="OnFailure"), options=SAVES).run())
    run = job.attempt
    bench.asked(requeue, Requeue(jobs=Select(ids=[str(job.key)])))
    if ends == "TaskEnded":
        assert job.ended(0, code(3)) == ["TaskEnded"]
    number = run.pending_signals[-1].number
    assert bench.said("granted", job.key, "h1", number, False, WHY, uid=run.uid) == ["SignalHandled"]
    assert (due(job), bench.job(job.key).retries) == ([], 0)


@pytest.mark.parametrize(("options", "state"), [({"r": True}, JobState.DONE), (SAVES, JobState.PEND)])
def test_a_job_whose_tasks_have_all_succeeded_before_it_could_be_ended(
    bench: Bench, options: dict[str, str | bool], state: JobState
) -> None:
    """It is done, as one of a single process is; a task that writes checkpoints may end well with one."""
    job = migrated(Roles(bench, role(count=2), options=options).run())
    assert job.ended(0, OK) == ["TaskEnded"]
    assert job.ended(1, OK) == ["TaskEnded", "JobJudged"]
    assert job.finish() is state


@pytest.mark.parametrize("fields", [{"restart": "Always"}, {"actions": [("TaskCompleted", "RestartJob", -1)]}])
def test_one_that_would_have_run_on_is_not_done(bench: Bench, fields: dict[str, Any]) -> None:
    job = migrated(Roles(bench, role(count=1, **fields), options={"r": True}).run())
    assert job.ended(0, OK) == ["TaskEnded", "JobJudged"]
    assert job.finish() is JobState.PEND
    assert bench.job(job.key).retries == 0
