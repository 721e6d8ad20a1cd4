"""Events of single tasks of jobs with roles, and the verdict that follows from their ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.events.base import STAY_STARTED, IllegalMove, JobEvent, Moves, folds
from lavad.core.events.records import staying_attempt
from lavad.core.job.job import Attempt, End, Job
from lavad.core.job.spec import Spec
from lavad.core.job.task_run import TaskRun
from lavad.core.lang.ids import index_of, job_of
from lavad.core.lang.states import TaskState, TermReason


def with_task(run: Attempt, rank: int, **changes: object) -> Attempt:
    """The attempt with one task changed; raises IllegalMove for a rank that it does not have."""
    if not 0 <= rank < len(run.tasks):
        raise IllegalMove(f"attempt {run.number} has no task {rank}")
    tasks = run.tasks
    return replace(run, tasks=(*tasks[:rank], replace(tasks[rank], **changes), *tasks[rank + 1 :]))


class TaskStarted(JobEvent, frozen=True):
    """A task that was started late, or restarted, runs."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    rank: int
    number: int
    pid: int = 0
    name: str = ""
    """``worker[1]``."""


@folds(TaskStarted)
def _task_started(cluster: Cluster, event: TaskStarted) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    run = with_task(run, event.rank, number=event.number, state=TaskState.RUNNING, at=event.at, pid=event.pid)
    cluster.jobs.put(job.key, replace(job, run=run))


class TaskEnded(JobEvent, frozen=True):
    """A task ended."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    rank: int
    number: int
    status: int = 0
    limit: TermReason = TermReason.NONE
    name: str = ""


@folds(TaskEnded)
def _task_ended(cluster: Cluster, event: TaskEnded) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    cluster.jobs.put(job.key, replace(job, run=ended(run, event)))


def ended(run: Attempt, event: TaskEnded) -> Attempt:
    """The attempt once a task ended."""
    state = TaskState.FAILED if event.status else TaskState.SUCCEEDED
    run = with_task(run, event.rank, number=event.number, state=state, at=event.at, status=event.status, pid=0)
    return with_task(run, event.rank, limit=event.limit)


class TaskRetried(JobEvent, frozen=True):
    """A task is to be restarted after ``delay`` seconds; ``number`` counts its starts."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    rank: int
    number: int
    delay: float = 0.0
    why: str = ""


@folds(TaskRetried)
def _task_retried(cluster: Cluster, event: TaskRetried) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    _count_again(cluster, job, retried(run, event), event.at, event.why, counted(cluster.specs.rows[job.spec], run, event))


def retried(run: Attempt, event: TaskRetried) -> Attempt:
    """The attempt once a task is to be restarted."""
    run = with_task(run, event.rank, number=event.number, state=TaskState.WAITING, at=event.at, delay=event.delay)
    return with_task(run, event.rank, limit=TermReason.NONE)


class ActionPostponed(JobEvent, frozen=True):
    """What follows from the end of a task is done in ``delay`` seconds."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    rank: int
    delay: float
    action: str = ""
    limit: TermReason = TermReason.NONE
    why: str = ""


@folds(ActionPostponed)
def _action_postponed(cluster: Cluster, event: ActionPostponed) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    cluster.jobs.put(job.key, replace(job, run=postponed(run, event)))


def postponed(run: Attempt, event: ActionPostponed) -> Attempt:
    """The attempt once what follows from the end of a task was postponed."""
    return with_task(run, event.rank, due=event.at + event.delay, limit=event.limit)


class ActionDue(JobEvent, frozen=True):
    """The time is over after which something was to follow from the end of a task."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    rank: int


@folds(ActionDue)
def _action_due(cluster: Cluster, event: ActionDue) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    cluster.jobs.put(job.key, replace(job, run=with_task(run, event.rank, due=0.0)))


class TasksRecalled(JobEvent, frozen=True):
    """Tasks that belong together are ended, as one of them has failed, to be started again together after ``delay`` seconds."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    ranks: tuple[int, ...]
    delay: float = 0.0
    why: str = ""
    counts: bool = True
    """It is one of the restarts that the job may have."""


@folds(TasksRecalled)
def _tasks_recalled(cluster: Cluster, event: TasksRecalled) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    _count_again(cluster, job, recalled(run, event), event.at, event.why, counted(cluster.specs.rows[job.spec], run, event))


def recalled(run: Attempt, event: TasksRecalled) -> Attempt:
    """The attempt once tasks were recalled."""
    return _with_tasks(run, event.ranks, lambda task: replace(task, recalled=True, delay=event.delay, due=0.0))


def _with_tasks(run: Attempt, ranks: Iterable[int], change: Callable[[TaskRun], TaskRun]) -> Attempt:
    """The attempt with many tasks changed at once; raises IllegalMove for a rank that it does not have."""
    tasks = list(run.tasks)
    for rank in ranks:
        if not 0 <= rank < len(tasks):
            raise IllegalMove(f"attempt {run.number} has no task {rank}")
        tasks[rank] = change(tasks[rank])
    return replace(run, tasks=tuple(tasks))


class TasksReturned(JobEvent, frozen=True):
    """Tasks that were recalled together are over, and are to start again."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    ranks: tuple[int, ...]


@folds(TasksReturned)
def _tasks_returned(cluster: Cluster, event: TasksReturned) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    cluster.jobs.put(job.key, replace(job, run=returned(run, event)))


def returned(run: Attempt, event: TasksReturned) -> Attempt:
    """The attempt once tasks that were recalled are to start again."""
    return _with_tasks(run, event.ranks, lambda task: _returned(task, event.at))


def _returned(task: TaskRun, at: float) -> TaskRun:
    number, recalls = task.number + 1, task.recalls + 1
    task = replace(task, recalled=False, state=TaskState.WAITING, at=at, limit=TermReason.NONE)
    return replace(task, number=number, base=number, recalls=recalls)


def counted(spec: Spec, run: Attempt, event: TaskRetried | TasksRecalled) -> int:
    """1 where a restart is one of those that the job, or its array, may have, else 0."""
    if isinstance(event, TasksRecalled):
        return 1 if event.counts else 0
    return 1 if spec.roles[run.tasks[event.rank].role].backoff < 0 else 0


def _count_again(cluster: Cluster, job: Job, run: Attempt, at: float, why: str, counts: int) -> None:
    """Note a restart; ``counts``: 1, or 0 where it is none of those that the job, or its array, may have."""
    cluster.jobs.put(job.key, replace(job, run=run, retries=job.retries + counts, retried=at, retried_why=why))
    array = cluster.arrays.rows.get(job_of(job.key)) if counts and index_of(job.key) else None
    if array is not None and cluster.specs.rows[job.spec].policy.array_backoff:
        cluster.arrays.put(array.job, replace(array, retries=array.retries + counts))


class JobJudged(JobEvent, frozen=True):
    """The tasks that have ended decide the verdict of the job, or its restart as a whole.

    ``again``: why it restarts. ``uncounted``: that is none of the restarts that the job may have.
    """

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    end: End
    again: str = ""
    uncounted: bool = False


@folds(JobJudged)
def _job_judged(cluster: Cluster, event: JobJudged) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    leave = cluster.specs.rows[job.spec].policy.clean == "none" and not event.end.status
    run = replace(run, verdict=event.end, judged=True, leave=leave, again=event.again)
    if event.again:
        _count_again(cluster, job, run, event.at, event.again, 0 if event.uncounted else 1)
    else:
        cluster.jobs.put(job.key, replace(job, run=run))
