"""Folds of events about single tasks of jobs with roles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import job as ev
from lavad.core.events.fold_job import live_job
from lavad.core.events.fold_part import attempt_of
from lavad.core.events.moves import IllegalMove, move
from lavad.core.job.job import Attempt, Job
from lavad.core.lang.states import TaskState


def with_task(run: Attempt, rank: int, **changes: Any) -> Attempt:
    """The attempt with one task changed; raises IllegalMove for a rank that it does not have."""
    if not 0 <= rank < len(run.tasks):
        raise IllegalMove(f"attempt {run.number} has no task {rank}")
    tasks = run.tasks
    return replace(run, tasks=(*tasks[:rank], replace(tasks[rank], **changes), *tasks[rank + 1 :]))


def _job(cluster: Cluster, event: Any) -> tuple[Job, Attempt]:
    job = live_job(cluster, event.key)
    move(job, event)
    return job, attempt_of(job, event.attempt)


def _task_started(cluster: Cluster, event: ev.TaskStarted) -> None:
    job, run = _job(cluster, event)
    run = with_task(run, event.rank, number=event.number, state=TaskState.RUNNING, at=event.at, pid=event.pid)
    cluster.jobs.put(job.key, replace(job, run=run))


def _task_ended(cluster: Cluster, event: ev.TaskEnded) -> None:
    job, run = _job(cluster, event)
    cluster.jobs.put(job.key, replace(job, run=ended(run, event)))


def ended(run: Attempt, event: ev.TaskEnded) -> Attempt:
    """The attempt once a task ended."""
    state = TaskState.FAILED if event.status else TaskState.SUCCEEDED
    return with_task(run, event.rank, number=event.number, state=state, at=event.at, status=event.status, pid=0)


def _task_retried(cluster: Cluster, event: ev.TaskRetried) -> None:
    job, run = _job(cluster, event)
    run = with_task(run, event.rank, number=event.number, state=TaskState.WAITING, at=event.at, delay=event.delay)
    cluster.jobs.put(job.key, _again(job, run, event.at, event.why))


def _again(job: Job, run: Attempt, at: float, why: str) -> Job:
    return replace(job, run=run, retries=job.retries + 1, retried=at, retried_why=why)


def _job_judged(cluster: Cluster, event: ev.JobJudged) -> None:
    job, run = _job(cluster, event)
    leave = cluster.specs.rows[job.spec].policy.clean == "none" and not event.end.status
    run = replace(run, verdict=event.end, judged=True, leave=leave, again=event.again)
    job = _again(job, run, event.at, event.again) if event.again else replace(job, run=run)
    cluster.jobs.put(job.key, job)


FOLDS: dict[type[ev.Event], Callable[[Cluster, Any], None]] = {
    ev.TaskStarted: _task_started,
    ev.TaskEnded: _task_ended,
    ev.TaskRetried: _task_retried,
    ev.JobJudged: _job_judged,
}
