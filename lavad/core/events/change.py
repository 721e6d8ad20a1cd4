"""What users change of a job: bmod, bswitch, btop and bbot, bpost."""

from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.events.base import STAY_LIVE, STAY_WAITING, JobEvent, Moves, folds, move
from lavad.core.events.chunks import with_slot
from lavad.core.events.records import note_ended, put, record_of, staying_attempt
from lavad.core.job.checkpoints import PERIOD
from lavad.core.job.depend import BLOCKED, MET, Depend, Ended
from lavad.core.job.job import Attempt, Job
from lavad.core.job.message import Message
from lavad.core.lang.ranges import EMPTY
from lavad.core.lang.states import JobState as S


class JobModified(JobEvent, frozen=True):
    """bmod: new spec and name; ``changes``: lines for bhist."""

    external: ClassVar[bool] = True
    moves: ClassVar[Moves] = STAY_LIVE

    spec: int
    name: str
    by: str = ""
    changes: tuple[str, ...] = ()
    limit: int = -1
    reserved: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()
    """Changed reservations of a running job: host to (resource, amount) pairs."""
    depends: bool = False
    """Whether the dependency condition changed, to ``depend``."""
    depend: Depend | None = None
    ended: tuple[tuple[int, Ended], ...] = ()
    amended: tuple[tuple[str, str], ...] = ()
    """Of a running job: (field of JobText, new value) for changes that its first host must know."""


@folds(JobModified)
def _job_modified(cluster: Cluster, event: JobModified) -> None:
    array = cluster.arrays.rows.get(event.key)
    if array is not None:
        limit = array.limit if event.limit < 0 else event.limit
        array = replace(array, spec=event.spec, name=event.name, limit=limit)
        if event.depends:
            waiting = EMPTY if event.depend is None else array.pending.union(array.held)
            array = replace(array, depend=event.depend, waiting=waiting, never=EMPTY)
        cluster.arrays.put(array.job, array)
        note_ended(cluster, event.ended)
        return
    job = record_of(cluster, event.key)
    move(job, event)
    if job.run is not None:
        job = replace(job, run=_changed(cluster, job, job.run, event))
    if job.checkpoints is not None and PERIOD in dict(event.amended):
        job = replace(job, checkpoints=replace(job.checkpoints, period=0))  # no longer what -k auto has chosen
    job = replace(job, spec=event.spec, name=event.name, promised=())
    if event.depends:
        job = replace(job, depend=event.depend, blocked=MET if event.depend is None else BLOCKED)
    put(cluster, job)
    note_ended(cluster, event.ended)


def _changed(cluster: Cluster, job: Job, run: Attempt, event: JobModified) -> Attempt:
    """The attempt of a running job with changed limits, text fields or reservations."""
    limits, before = cluster.specs.rows[event.spec].limits, cluster.specs.rows[job.spec].limits
    if limits != before:
        own = run.limits.run if run.limits is not None and limits.run == before.run else limits.run
        run = replace(run, limits=replace(limits, run=own))
    if event.amended:
        run = replace(run, amended=tuple(sorted({**dict(run.amended), **dict(event.amended)}.items())))
    if not event.reserved:
        return run
    amounts = dict(event.reserved)
    parts = tuple(replace(part, reserved=amounts[part.host], decays=()) if part.host in amounts else part for part in run.parts)
    return replace(run, parts=parts, queue="")


class RunLimitMoved(JobEvent, frozen=True):
    """EXTENDABLE_RUNLIMIT: a job that reached its soft run limit goes on, or is to end as others need its slots. Seconds."""

    moves: ClassVar[Moves] = {S.RUN: S.RUN}

    attempt: int
    soft: int = 0
    """To which it is extended; 0: it is not."""
    hard: int = 0
    """The run limit that it has from now on; 0: as before."""


@folds(RunLimitMoved)
def _run_limit_moved(cluster: Cluster, event: RunLimitMoved) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    if event.hard:
        limits = run.limits or cluster.specs.rows[job.spec].limits
        run = replace(run, limits=replace(limits, run=event.hard), soft_limit=-1)
    else:
        run = replace(run, soft_limit=event.soft)
    put(cluster, replace(job, run=run))


class JobSwitched(JobEvent, frozen=True):
    """bswitch: another queue."""

    external: ClassVar[bool] = True
    moves: ClassVar[Moves] = STAY_LIVE

    spec: int
    queue: str
    by: str = ""


@folds(JobSwitched)
def _job_switched(cluster: Cluster, event: JobSwitched) -> None:
    array = cluster.arrays.rows.get(event.key)
    if array is not None:
        cluster.arrays.put(array.job, replace(array, spec=event.spec, position=0.0, queue_time=0.0))
        return
    job = record_of(cluster, event.key)
    move(job, event)
    job = with_slot(cluster, job)
    if job.run is not None:
        placed_in = job.run.queue or cluster.specs.rows[job.spec].queue
        job = replace(job, run=replace(job.run, queue="" if placed_in == event.queue else placed_in))
    put(cluster, replace(job, spec=event.spec, position=0.0, queue_time=0.0, promised=()))


class JobMoved(JobEvent, frozen=True):
    """btop or bbot."""

    external: ClassVar[bool] = True
    moves: ClassVar[Moves] = STAY_WAITING

    position: float
    by: str = ""
    top: bool = True
    place: int = 1
    queue_time: float = msgspec.field(name="stand", default=0.0)


@folds(JobMoved)
def _job_moved(cluster: Cluster, event: JobMoved) -> None:
    array = cluster.arrays.rows.get(event.key)
    if array is not None:
        cluster.arrays.put(array.job, replace(array, position=event.position, queue_time=event.queue_time))
        return
    job = record_of(cluster, event.key)
    move(job, event)
    put(cluster, replace(job, position=event.position, queue_time=event.queue_time))


class MessagePosted(JobEvent, frozen=True):
    """bpost: a message to a job, an array or an element."""

    external: ClassVar[bool] = True
    moves: ClassVar[Moves] = STAY_LIVE

    message: Message


@folds(MessagePosted)
def _message_posted(cluster: Cluster, event: MessagePosted) -> None:
    array = cluster.arrays.rows.get(event.key)
    if array is not None:
        kept = tuple(old for old in array.messages if old.number != event.message.number)
        cluster.arrays.put(array.job, replace(array, messages=(*kept, event.message)))
        return
    job = record_of(cluster, event.key)
    move(job, event)
    kept = tuple(old for old in job.messages if old.number != event.message.number)
    put(cluster, replace(job, messages=(*kept, event.message)))
