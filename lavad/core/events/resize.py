"""A running job that grows or shrinks; see ``core.job.resize`` for how the events follow one another.

Rule: added slots belong to the job at once. Removed ones belong to it until ``PartLeft`` (a whole host) or until the shrink is
complete (slots of a host that it keeps).
"""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.events.base import STAY_STARTED, IllegalMove, JobEvent, Moves, folds
from lavad.core.events.records import staying_attempt
from lavad.core.job import resize
from lavad.core.job.job import Attempt, End, Placed, Resize


class JobGrew(JobEvent, frozen=True):
    """More hosts, or more slots of its own, for a running attempt."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    number: int
    """Counts the resizes of an attempt."""
    parts: tuple[Placed, ...]
    command: str = ""
    """Notification command, run on the first host once all added hosts run; "": none."""
    by: str = ""


@folds(JobGrew)
def _job_grew(cluster: Cluster, event: JobGrew) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    run = resize.grown(run, event.parts, event.at)
    under_way = Resize(number=event.number, grow=True, parts=event.parts, at=event.at, command=event.command)
    cluster.jobs.put(job.key, replace(job, run=replace(run, resize=under_way, resizes=event.number)))


class JobShrank(JobEvent, frozen=True):
    """A running attempt is to give up these hosts or slots."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    number: int
    parts: tuple[Placed, ...]
    command: str = ""
    forced: bool = False
    """Whatever the notification command answers: a host is lost, or another job gets the slots."""
    beneficiary: int = 0
    """The job that gets the slots (preemption); 0: none."""
    by: str = ""
    why: str = ""


@folds(JobShrank)
def _job_shrank(cluster: Cluster, event: JobShrank) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    cluster.jobs.put(job.key, replace(job, run=shrank(run, event)))


def shrank(run: Attempt, event: JobShrank) -> Attempt:
    """The attempt once a shrink has begun."""
    if event.forced:
        run = resize.shrunk(run, event.parts, event.at, event.beneficiary)
        run = resize.trimmed(run, (part.host for part in run.parts if part.leaving))
    if not event.forced or (event.command and run.resize is None):
        under_way = Resize(
            number=event.number, grow=False, parts=event.parts, at=event.at, command=event.command, done=event.forced
        )
        run = replace(run, resize=under_way)
    return replace(run, resizes=event.number)


class JobResized(JobEvent, frozen=True):
    """A resize is over. ``ok``: its notification command succeeded; otherwise the resize is undone."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    number: int
    ok: bool = True
    why: str = ""


@folds(JobResized)
def _job_resized(cluster: Cluster, event: JobResized) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    cluster.jobs.put(job.key, replace(job, run=resized(run, event)))


def resized(run: Attempt, event: JobResized) -> Attempt:
    """The attempt once its resize is over."""
    under_way = run.resize
    if under_way is None or under_way.number != event.number:
        raise IllegalMove(f"resize {event.number} is not under way in attempt {run.uid}")
    if (under_way.grow and not event.ok) or (not under_way.grow and event.ok and not under_way.done):
        run = resize.shrunk(run, under_way.parts, event.at)
    after = run.grow_after if event.ok else event.at + resize.RETRY
    return replace(run, resize=None, grow_after=after)


class PartLeft(JobEvent, frozen=True):
    """A host has left the attempt, which continues without it; nothing of the part is left there."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    host: str
    end: End | None = None
    why: str = ""


@folds(PartLeft)
def _part_left(cluster: Cluster, event: PartLeft) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    cluster.jobs.put(job.key, replace(job, run=left(run, event)))


def left(run: Attempt, event: PartLeft) -> Attempt:
    """The attempt without the host."""
    failed = any(part.host == event.host and not part.leaving for part in run.parts)
    run = resize.without(run, event.host, event.at, event.end)
    return replace(run, grow_after=event.at + resize.RETRY) if failed else run


class ResizeAsked(JobEvent, frozen=True):
    """bresize request: up to ``most`` slots in all, at least ``least`` at a time; bresize cancel: (0, 0)."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    least: int = 0
    most: int = 0
    command: str | None = None
    """Notification command of this request; None: the job's."""
    by: str = ""


@folds(ResizeAsked)
def _resize_asked(cluster: Cluster, event: ResizeAsked) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    run = replace(run, wanted=(event.least, event.most), command=event.command, grow_after=0.0)
    cluster.jobs.put(job.key, replace(job, run=run))
