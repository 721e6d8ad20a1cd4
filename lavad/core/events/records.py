"""How folds find the record of the job, element or array that an event is about, and store its new record."""

from __future__ import annotations

from itertools import chain

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.events.base import IllegalMove, JobEvent, move
from lavad.core.job.depend import BLOCKED, MET, NEVER, Ended, EndedAlike
from lavad.core.job.job import Array, Attempt, Job
from lavad.core.lang.ids import index_of, job_of, show
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState


def live_job(cluster: Cluster, key: int) -> Job:
    """The record of a job that must have one (not an untouched element); raises IllegalMove."""
    job = cluster.jobs.rows.get(key)
    if job is None:
        raise IllegalMove(f"job {show(key)} is not live, or has not started")
    return job


def staying(cluster: Cluster, event: JobEvent) -> Job:
    """The record of the job of an event that leaves its state as it is, and may meet it; raises IllegalMove."""
    job = live_job(cluster, event.key)
    move(job, event)
    return job


def attempt_of(job: Job, number: int) -> Attempt:
    """The current attempt; raises IllegalMove where ``number`` is another."""
    if job.run is None or job.run.number != number:
        raise IllegalMove(f"attempt {number} is not the current one of {job}")
    return job.run


def staying_attempt(cluster: Cluster, event: JobEvent, number: int) -> tuple[Job, Attempt]:
    """The record of the job as ``staying``, and its current attempt, which ``number`` has to be; raises IllegalMove."""
    job = staying(cluster, event)
    return job, attempt_of(job, number)


def array_of(cluster: Cluster, key: int) -> Array:
    array = cluster.arrays.rows.get(job_of(key))
    if array is None:
        raise IllegalMove(f"array {job_of(key)} is not live")
    return array


def record_of(cluster: Cluster, key: int) -> Job:
    """The record of a job, or the record that an untouched element would have. Raises IllegalMove; changes nothing."""
    job = cluster.jobs.rows.get(key)
    if job is not None:
        return job
    array = cluster.arrays.rows.get(job_of(key))
    index = index_of(key)
    held = array is not None and index in array.held
    if array is None or (not held and index not in array.pending):
        raise IllegalMove(f"job {show(key)} is not live")
    return Job(
        key=key,
        spec=array.spec,
        name=f"{array.name}[{index}]",
        submitted=array.submitted,
        since=array.submitted,
        state=JobState.PSUSP if held else JobState.PEND,
        position=array.position,
        queue_time=array.queue_time,
        checkpoint=array.restart,
        depend=array.depend,
        blocked=stands(array, index),
        messages=array.messages,
        stopper=array.stopper if held else "",
    )


def is_live(cluster: Cluster, key: int) -> bool:
    """Whether ``record_of`` finds the job or element."""
    array = cluster.arrays.rows.get(job_of(key)) if index_of(key) else None
    untouched = array is not None and (index_of(key) in array.pending or index_of(key) in array.held)
    return untouched or key in cluster.jobs.rows


def stands(array: Array, index: int) -> int:
    """Whether an untouched element is blocked by its array's condition: MET, BLOCKED or NEVER."""
    if index not in array.waiting:
        return MET
    return NEVER if index in array.never else BLOCKED


def put(cluster: Cluster, job: Job) -> None:
    """Store a job's new record; an untouched element is removed from its array's ranges."""
    split = job.key not in cluster.jobs.rows
    cluster.jobs.put(job.key, job)
    if split:
        array = array_of(cluster, job.key)
        one = Ranges.span(index_of(job.key), index_of(job.key))
        array = replace(array, pending=array.pending.minus(one), held=array.held.minus(one))
        if array.waiting:
            array = replace(array, waiting=array.waiting.minus(one), never=array.never.minus(one))
        cluster.arrays.put(array.job, array)


def note_ended(cluster: Cluster, ended: tuple[tuple[int, Ended], ...], alike: EndedAlike = ()) -> None:
    """Keep the summaries of finished jobs that a new condition names."""
    named, rows = cluster.conditions.named, cluster.ended.rows
    for job, value in chain(ended, ((job, value) for those, value in alike for job in those)):
        known = rows.get(job)
        if job in named and known != value:
            cluster.ended.put(job, value if known is None else known.joined(value))


def drop_finished_array(cluster: Cluster, job: int) -> None:
    array = cluster.arrays.rows[job]
    if not array.pending and not array.held and job not in cluster.elements:
        if job in cluster.conditions.named:
            known = cluster.ended.rows.get(job) or Ended()
            cluster.ended.put(job, replace(known, indices=array.indices, totals=(array.done, array.exited)))
        cluster.finished_arrays[job] = array
        cluster.arrays.drop(job)
