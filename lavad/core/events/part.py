"""Events of one part, an attempt on one host: prepared, started, stopped, ended, gone."""

from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.events.base import STAY_STARTED, JobEvent, Moves, folds
from lavad.core.events.records import attempt_of, staying, staying_attempt
from lavad.core.job.job import Attempt, End, Job
from lavad.core.job.places import places_of
from lavad.core.job.task_run import TaskRun
from lavad.core.lang.ids import job_of
from lavad.core.lang.states import JobState, PartState, TaskState


def with_part(run: Attempt, host: str, **changes: object) -> Attempt:
    """The attempt with one part changed; of a host that had an earlier part of it, both."""
    parts = list(run.parts)
    for at in places_of(run, host):
        parts[at] = replace(parts[at], **changes)
    return replace(run, parts=tuple(parts))


def _part(cluster: Cluster, event: PartPrepared | PartStarted | PartStopped | PartRefused | PartGone, **changes: object) -> Job:
    job = staying(cluster, event)
    return replace(job, run=with_part(attempt_of(job, event.attempt), event.host, **changes))


class PartPrepared(JobEvent, frozen=True):
    """A host is ready to start its part of a gang."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    host: str
    address: str = ""
    attach_address: str = msgspec.field(name="door", default="")
    """Address that the user of an interactive job attaches to."""


@folds(PartPrepared)
def _part_prepared(cluster: Cluster, event: PartPrepared) -> None:
    cluster.jobs.put(
        event.key, _part(cluster, event, state=PartState.PREPARED, address=event.address, attach_address=event.attach_address)
    )


class GangReleased(JobEvent, frozen=True):
    """Every host is prepared: all parts may start."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int


@folds(GangReleased)
def _gang_released(cluster: Cluster, event: GangReleased) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    parts = tuple(replace(p, state=PartState.STARTING) if p.state is PartState.PREPARED else p for p in run.parts)
    cluster.jobs.put(job.key, replace(job, run=replace(run, parts=parts)))


class PartStarted(JobEvent, frozen=True):
    """A part runs on its host; the job has started when its first part has. One that waited in a chunk does so no longer."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    host: str
    pid: int = 0
    started: float = 0.0
    cwd: str = ""


@folds(PartStarted)
def _part_started(cluster: Cluster, event: PartStarted) -> None:
    job = _part(cluster, event, state=PartState.RUNNING, pid=event.pid)
    run = attempt_of(job, event.attempt)
    if run.parts[0].host == event.host:
        run = replace(run, started=event.started or event.at, cwd=event.cwd)
    if run.tasks:
        run = _with_tasks_begun(run, event.host, event.at)
    if job.state is JobState.WAIT:
        job = replace(job, state=JobState.RUN, since=event.at)
    elif job.before is JobState.WAIT:
        job = replace(job, before=JobState.RUN)
    began = job.began or (event.at if cluster.specs.rows[job.spec].policy.time_limit else 0.0)
    cluster.jobs.put(job.key, replace(job, run=run, failures=0, failed_why="", began=began))
    if began and (array := cluster.arrays.rows.get(job_of(job.key))) is not None:
        cluster.arrays.put(array.job, replace(array, began=array.began or event.at))


def _with_tasks_begun(run: Attempt, host: str, at: float) -> Attempt:
    """The attempt with the tasks running that start together with their part."""
    tasks = tuple(
        replace(task, state=TaskState.RUNNING, at=at) if run.parts[task.place].host == host and _begins(task) else task
        for task in run.tasks
    )
    return replace(run, tasks=tasks)


def _begins(task: TaskRun) -> bool:
    return task.state is TaskState.WAITING and task.number == 1 and not task.late


class PartStopped(JobEvent, frozen=True):
    """The processes of a part are stopped or resumed."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    host: str
    stopped: bool


@folds(PartStopped)
def _part_stopped(cluster: Cluster, event: PartStopped) -> None:
    cluster.jobs.put(event.key, _part(cluster, event, stopped=event.stopped))


class PartEnded(JobEvent, frozen=True):
    """The job process of a part ended; other processes of the part may still exist."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    host: str
    end: End


@folds(PartEnded)
def _part_ended(cluster: Cluster, event: PartEnded) -> None:
    job = staying(cluster, event)
    cluster.jobs.put(job.key, replace(job, run=with_end(attempt_of(job, event.attempt), event.host, event.end)))


def with_end(run: Attempt, host: str, end: End) -> Attempt:
    """The attempt after a part's process ended. The verdict is the end of the first part, or an earlier failure of another part;
    a failure of the first part after a host was lost is a consequence of that loss.
    """
    leaving = any(run.parts[at].leaving for at in places_of(run, host))
    run = with_part(run, host, end=end)
    if leaving:
        return run
    if run.judged:
        verdict = run.verdict
        if verdict is not None and run.parts[0].host == host:
            return replace(run, verdict=replace(verdict, output=end.output))
        return run
    bad = bool(end.status or end.lost)
    if run.parts[0].host == host:
        lost = run.verdict is not None and bool(run.verdict.lost)
        verdict = run.verdict if lost and bad else end
        return replace(run, verdict=verdict, started=run.started or end.started)
    return replace(run, verdict=end) if run.verdict is None and bad else run


class PartRefused(JobEvent, frozen=True):
    """A host refused to start its part; nothing of it runs there."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    host: str
    code: str
    why: str


@folds(PartRefused)
def _part_refused(cluster: Cluster, event: PartRefused) -> None:
    job = _part(cluster, event, state=PartState.GONE)
    run = replace(attempt_of(job, event.attempt), refused=event.why, refused_code=event.code)
    cluster.jobs.put(job.key, replace(job, run=run, avoid=(*job.avoid, event.host)))


class PartGone(JobEvent, frozen=True):
    """Nothing of a part is left on its host."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    host: str
    post: int = 0
    """Wait status of the post-execution command."""


@folds(PartGone)
def _part_gone(cluster: Cluster, event: PartGone) -> None:
    cluster.jobs.put(event.key, _part(cluster, event, state=PartState.GONE, post=event.post))


class PartFenced(JobEvent, frozen=True):
    """The lease of a silent host and the margin have expired: nothing of the part can be left there."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    host: str


@folds(PartFenced)
def _part_fenced(cluster: Cluster, event: PartFenced) -> None:
    job = staying(cluster, event)
    cluster.jobs.put(job.key, replace(job, run=with_fence(attempt_of(job, event.attempt), event.host, event.at)))


def with_fence(run: Attempt, host: str, at: float) -> Attempt:
    """The attempt after a part's host was fenced; a part that had ended before does not change the verdict."""
    ended = any(run.parts[at].end is not None for at in places_of(run, host))
    run = with_part(run, host, state=PartState.FENCED)
    if ended or run.verdict is not None:
        return run
    return replace(run, verdict=End(at=at, lost=f"host {host} was lost"))
