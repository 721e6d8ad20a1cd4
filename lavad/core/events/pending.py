"""Events of pending jobs: held, released, dependency judged, slots reserved."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.events.base import STAY_PEND, STAY_WAITING, JobEvent, Moves, folds, move
from lavad.core.events.records import put, record_of, staying
from lavad.core.job.depend import MET, NEVER
from lavad.core.job.job import Placed
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState
from lavad.core.lang.states import JobState as S


class JobHeld(JobEvent, frozen=True):
    """PEND to PSUSP. An administrator may hold what its owner has held."""

    external: ClassVar[bool] = True
    moves: ClassVar[Moves] = {S.PEND: S.PSUSP, S.PSUSP: S.PSUSP}

    by: str = ""
    why: str = ""


class JobReleased(JobEvent, frozen=True):
    """PSUSP to PEND."""

    external: ClassVar[bool] = True
    moves: ClassVar[Moves] = {S.PSUSP: S.PEND}

    by: str = ""
    why: str = ""


@folds(JobHeld, JobReleased)
def _moved(cluster: Cluster, event: JobEvent) -> None:
    """A plain change of state."""
    job = record_of(cluster, event.key)
    state = move(job, event)
    reason = 0 if state is JobState.PSUSP else job.reason
    stopper = event.by if isinstance(event, JobHeld) else job.stopper
    why = event.why if isinstance(event, JobHeld | JobReleased) else ""
    remarks = (why, "") if isinstance(event, JobHeld) else (job.remarks[0], why)
    since = job.since if state is job.state else event.at
    put(cluster, replace(job, state=state, since=since, reason=reason, promised=(), stopper=stopper, remarks=remarks))


class DependencyJudged(JobEvent, frozen=True):
    """The state of the condition of a pending job, or of untouched elements of an array (None: all), has changed."""

    moves: ClassVar[Moves] = STAY_WAITING

    stands: int
    """MET, BLOCKED or NEVER of ``core.job.depend``."""
    elements: Ranges | None = None


@folds(DependencyJudged)
def _dependency_judged(cluster: Cluster, event: DependencyJudged) -> None:
    array = cluster.arrays.rows.get(event.key)
    if array is None:
        job = record_of(cluster, event.key)
        move(job, event)
        put(cluster, replace(job, blocked=event.stands))
        return
    elements = array.waiting if event.elements is None else array.waiting.intersect(event.elements)
    waiting = array.waiting.minus(elements) if event.stands == MET else array.waiting
    never = array.never.union(elements) if event.stands == NEVER else array.never.minus(elements)
    cluster.arrays.put(array.job, replace(array, waiting=waiting, never=never))


class SlotsReserved(JobEvent, frozen=True):
    """The slots of victims are reserved for a pending job until the victims are gone. ``key`` may be an untouched element."""

    moves: ClassVar[Moves] = STAY_PEND

    parts: tuple[Placed, ...]


@folds(SlotsReserved)
def _slots_reserved(cluster: Cluster, event: SlotsReserved) -> None:
    job = record_of(cluster, event.key)
    move(job, event)
    put(cluster, replace(job, promised=event.parts, deadlocked=False))


class SlotsReleased(JobEvent, frozen=True):
    """The reserved slots of a pending job are released."""

    moves: ClassVar[Moves] = STAY_PEND

    why: str = ""


@folds(SlotsReleased)
def _slots_released(cluster: Cluster, event: SlotsReleased) -> None:
    job = staying(cluster, event)
    cluster.jobs.put(job.key, replace(job, promised=(), deadlocked=False))


class JobDeadlocked(JobEvent, frozen=True):
    """The job and ``others`` (keys) hold slots and wait for each other's (GANG=N)."""

    moves: ClassVar[Moves] = STAY_PEND

    others: tuple[int, ...] = ()


@folds(JobDeadlocked)
def _job_deadlocked(cluster: Cluster, event: JobDeadlocked) -> None:
    job = staying(cluster, event)
    put(cluster, replace(job, deadlocked=True))
