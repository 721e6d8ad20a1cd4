"""Submission of jobs and arrays, untouched elements (held, released, killed, split off), and brequeue of finished jobs."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.events.base import IllegalMove, JobEvent, folds
from lavad.core.events.records import array_of, drop_finished_array, note_ended, put, record_of
from lavad.core.job.depend import BLOCKED, MET, Depend, Ended, EndedAlike
from lavad.core.job.job import Array, Job
from lavad.core.lang.ids import index_of, job_of, show
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.core.lang.states import JobState, TermReason


class JobSubmitted(JobEvent, frozen=True):
    """A job or (with ``indices``) an array was accepted. ``key`` has no index."""

    external: ClassVar[bool] = True

    spec: int
    name: str
    held: bool = False
    indices: Ranges | None = None
    limit: int = 0
    spec_text: str = ""
    by: str = ""
    restart: int = -1
    """Checkpoint generation to start from (brestart)."""
    depend: Depend | None = None
    ended: tuple[tuple[int, Ended], ...] = ()
    """Jobs that its condition names, with what of them has finished."""
    alike: EndedAlike = ()
    """Others of them."""
    met: bool = False
    """Whether its condition was met already."""


@folds(JobSubmitted)
def _job_submitted(cluster: Cluster, event: JobSubmitted) -> None:
    cluster.next_job = event.key + 1
    if event.indices is None:
        state = JobState.PSUSP if event.held else JobState.PEND
        job = Job(
            key=event.key,
            spec=event.spec,
            name=event.name,
            submitted=event.at,
            state=state,
            since=event.at,
            checkpoint=event.restart,
            depend=event.depend,
            blocked=MET if event.depend is None or event.met else BLOCKED,
        )
        cluster.jobs.put(event.key, job)
        note_ended(cluster, event.ended, event.alike)
        return
    pending, held = (EMPTY, event.indices) if event.held else (event.indices, EMPTY)
    array = Array(
        job=event.key,
        spec=event.spec,
        name=event.name,
        spec_text=event.spec_text,
        submitted=event.at,
        indices=event.indices,
        pending=pending,
        held=held,
        limit=event.limit,
        restart=event.restart,
        depend=event.depend,
        waiting=EMPTY if event.depend is None or event.met else event.indices,
    )
    cluster.arrays.put(event.key, array)
    note_ended(cluster, event.ended, event.alike)


class ElementsHeld(JobEvent, frozen=True):
    """Untouched elements of an array: PEND to PSUSP. ``why``: what bstop -C says."""

    external: ClassVar[bool] = True

    elements: Ranges
    by: str = ""
    why: str = ""


@folds(ElementsHeld)
def _elements_held(cluster: Cluster, event: ElementsHeld) -> None:
    array = array_of(cluster, event.key)
    elements = array.pending.intersect(event.elements)
    owner = cluster.specs.rows[array.spec].user
    # an owner who holds more elements does not get those that an administrator holds
    stays = bool(array.held) and event.by == owner and array.stopper not in ("", owner)
    stopper = array.stopper if stays else event.by
    array = replace(array, pending=array.pending.minus(elements), held=array.held.union(elements), stopper=stopper)
    cluster.arrays.put(array.job, array)


class ElementsReleased(JobEvent, frozen=True):
    """Untouched elements of an array: PSUSP to PEND. ``why``: what bresume -C says."""

    external: ClassVar[bool] = True

    elements: Ranges
    by: str = ""
    why: str = ""


@folds(ElementsReleased)
def _elements_released(cluster: Cluster, event: ElementsReleased) -> None:
    array = array_of(cluster, event.key)
    elements = array.held.intersect(event.elements)
    array = replace(array, held=array.held.minus(elements), pending=array.pending.union(elements))
    cluster.arrays.put(array.job, array)


class ElementsKilled(JobEvent, frozen=True):
    """Untouched elements of an array ended before they ever ran."""

    external: ClassVar[bool] = True

    elements: Ranges
    by: str = ""
    reason: TermReason = TermReason.TERM_OWNER
    state: JobState = JobState.EXIT
    """DONE: of an array that has succeeded without them."""
    why: str = ""


@folds(ElementsKilled)
def _elements_killed(cluster: Cluster, event: ElementsKilled) -> None:
    array = array_of(cluster, event.key)
    killed = array.pending.union(array.held).intersect(event.elements)
    array = replace(
        array,
        pending=array.pending.minus(killed),
        held=array.held.minus(killed),
        waiting=array.waiting.minus(killed),
        never=array.never.minus(killed),
        done=array.done + (len(killed) if event.state is JobState.DONE else 0),
        exited=array.exited + (0 if event.state is JobState.DONE else len(killed)),
    )
    if array.job in cluster.conditions.named:
        known = cluster.ended.rows.get(array.job) or Ended()
        cluster.ended.put(array.job, known.with_elements(killed, None if event.state is JobState.DONE else 0))
    cluster.arrays.put(array.job, array)
    drop_finished_array(cluster, array.job)


class ElementSplit(JobEvent, frozen=True):
    """An untouched element becomes a separate job (``key`` has its index) in the same state."""

    external: ClassVar[bool] = True


@folds(ElementSplit)
def _element_split(cluster: Cluster, event: ElementSplit) -> None:
    if event.key not in cluster.jobs.rows:
        put(cluster, record_of(cluster, event.key))


class JobRevived(JobEvent, frozen=True):
    """brequeue of a finished job: it is pending again. ``array``: last record of the element's array, if no longer live."""

    external: ClassVar[bool] = True

    job: Job
    array: Array | None = None
    done: bool = False
    """Whether it had ended as DONE."""
    by: str = ""


@folds(JobRevived)
def _job_revived(cluster: Cluster, event: JobRevived) -> None:
    if event.key in cluster.jobs.rows:
        raise IllegalMove(f"job {show(event.key)} is live")
    number, index = job_of(event.key), index_of(event.key)
    if number in cluster.ended.rows:
        cluster.ended.put(number, cluster.ended.rows[number].without(index or 1))
    cluster.jobs.put(event.key, event.job)
    if index:
        array = cluster.arrays.rows.get(number) or event.array
        if array is None:
            raise IllegalMove(f"array {number} of {show(event.key)} is not live")
        this = Ranges.span(index, index)
        array = replace(array, done=array.done - event.done, exited=array.exited - (not event.done))
        array = replace(array, well=array.well.minus(this), failed=array.failed.minus(this))
        cluster.arrays.put(number, array)
