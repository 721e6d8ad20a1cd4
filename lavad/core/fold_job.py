"""Folds of events about jobs, arrays and elements: submitted, held, changed, requeued, finished."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster import Cluster
from lavad.core.ids import index_of, job_of, show
from lavad.core.job import Array, Job, Outcome
from lavad.core.moves import IllegalMove, move
from lavad.core.ranges import EMPTY, Ranges
from lavad.core.states import JobState, PartState


def _job_submitted(cluster: Cluster, event: ev.JobSubmitted) -> None:
    cluster.next_job = event.key + 1
    if event.indices is None:
        state = JobState.PSUSP if event.held else JobState.PEND
        job = Job(
            key=event.key, spec=event.spec, name=event.name, submitted=event.at, state=state, since=event.at,
            checkpoint=event.restart,
        )  # fmt: skip
        cluster.jobs.put(event.key, job)
        return
    pending, held = (EMPTY, event.indices) if event.held else (event.indices, EMPTY)
    array = Array(
        job=event.key, spec=event.spec, name=event.name, spec_text=event.spec_text, submitted=event.at,
        indices=event.indices, pending=pending, held=held, limit=event.limit,
    )  # fmt: skip
    cluster.arrays.put(event.key, array)


def _array(cluster: Cluster, key: int) -> Array:
    array = cluster.arrays.rows.get(job_of(key))
    if array is None:
        raise IllegalMove(f"array {job_of(key)} is not live")
    return array


def live_job(cluster: Cluster, key: int) -> Job:
    """The job of a fact that only a started job can meet; raises IllegalMove."""
    job = cluster.jobs.rows.get(key)
    if job is None:
        raise IllegalMove(f"job {show(key)} is not live, or has not started")
    return job


def _elements_held(cluster: Cluster, event: ev.ElementsHeld) -> None:
    array = _array(cluster, event.key)
    elements = array.pending.intersect(event.elements)
    array = replace(array, pending=array.pending.minus(elements), held=array.held.union(elements))
    cluster.arrays.put(array.job, array)


def _elements_released(cluster: Cluster, event: ev.ElementsReleased) -> None:
    array = _array(cluster, event.key)
    elements = array.held.intersect(event.elements)
    array = replace(array, held=array.held.minus(elements), pending=array.pending.union(elements))
    cluster.arrays.put(array.job, array)


def _elements_killed(cluster: Cluster, event: ev.ElementsKilled) -> None:
    array = _array(cluster, event.key)
    killed = array.pending.union(array.held).intersect(event.elements)
    array = replace(
        array,
        pending=array.pending.minus(killed),
        held=array.held.minus(killed),
        exited=array.exited + len(killed),
    )
    cluster.arrays.put(array.job, array)
    _drop_finished_array(cluster, array.job)


def _drop_finished_array(cluster: Cluster, job: int) -> None:
    array = cluster.arrays.rows[job]
    if not array.pending and not array.held and job not in cluster.elements:
        cluster.finished_arrays[job] = array
        cluster.arrays.drop(job)


def record_of(cluster: Cluster, key: int) -> Job:
    """The job record of ``key``; of an untouched element the one that it would have. Raises IllegalMove; changes nothing."""
    job = cluster.jobs.rows.get(key)
    if job is not None:
        return job
    array = cluster.arrays.rows.get(job_of(key))
    index = index_of(key)
    held = array is not None and index in array.held
    if array is None or (not held and index not in array.pending):
        raise IllegalMove(f"job {show(key)} is not live")
    return Job(
        key=key, spec=array.spec, name=f"{array.name}[{index}]", submitted=array.submitted, since=array.submitted,
        state=JobState.PSUSP if held else JobState.PEND, position=array.position,
    )  # fmt: skip


def put(cluster: Cluster, job: Job) -> None:
    """Keep a job's new record; an element that was untouched leaves its array's ranges."""
    split = job.key not in cluster.jobs.rows
    cluster.jobs.put(job.key, job)
    if split:
        array = _array(cluster, job.key)
        one = Ranges.span(index_of(job.key), index_of(job.key))
        cluster.arrays.put(array.job, replace(array, pending=array.pending.minus(one), held=array.held.minus(one)))


def _element_split(cluster: Cluster, event: ev.ElementSplit) -> None:
    if event.key not in cluster.jobs.rows:
        put(cluster, record_of(cluster, event.key))


def _moved(cluster: Cluster, event: ev.JobEvent) -> None:
    """A plain change of state."""
    job = record_of(cluster, event.key)
    state = move(job, event)
    reason = 0 if state is JobState.PSUSP else job.reason
    put(cluster, replace(job, state=state, since=event.at, reason=reason))


def _job_lost(cluster: Cluster, event: ev.JobLost) -> None:
    job = live_job(cluster, event.key)
    cluster.jobs.put(job.key, replace(job, state=move(job, event), since=event.at, before=job.state))


def _job_modified(cluster: Cluster, event: ev.JobModified) -> None:
    array = cluster.arrays.rows.get(event.key)
    if array is not None:
        limit = array.limit if event.limit < 0 else event.limit
        cluster.arrays.put(array.job, replace(array, spec=event.spec, name=event.name, limit=limit))
        return
    job = record_of(cluster, event.key)
    move(job, event)
    put(cluster, replace(job, spec=event.spec, name=event.name))


def _job_switched(cluster: Cluster, event: ev.JobSwitched) -> None:
    array = cluster.arrays.rows.get(event.key)
    if array is not None:
        cluster.arrays.put(array.job, replace(array, spec=event.spec, position=0.0))
        return
    job = record_of(cluster, event.key)
    move(job, event)
    put(cluster, replace(job, spec=event.spec, position=0.0))


def _job_moved(cluster: Cluster, event: ev.JobMoved) -> None:
    array = cluster.arrays.rows.get(event.key)
    if array is not None:
        cluster.arrays.put(array.job, replace(array, position=event.position))
        return
    job = record_of(cluster, event.key)
    move(job, event)
    put(cluster, replace(job, position=event.position))


def _job_suspended(cluster: Cluster, event: ev.JobSuspended) -> None:
    job = live_job(cluster, event.key)
    state = move(job, event, event.state)
    cluster.jobs.put(job.key, replace(job, state=state, since=event.at))


def _job_requeued(cluster: Cluster, event: ev.JobRequeued) -> None:
    job = live_job(cluster, event.key)
    move(job, event, event.state)
    job = replace(
        job, state=event.state, since=event.at, run=None, reason=event.reason, avoid=event.avoid,
        failures=event.failures, not_before=event.not_before,
    )  # fmt: skip
    cluster.jobs.put(job.key, job)


def _job_finished(cluster: Cluster, event: ev.JobFinished) -> None:
    job = record_of(cluster, event.key)
    state = move(job, event, event.state)
    if job.key not in cluster.jobs.rows:
        put(cluster, job)
    outcome = Outcome(at=event.at, status=event.status, reason=event.reason, why=event.why)
    run = job.run
    if run is not None and event.end is not None:
        only = replace(run.parts[0], state=PartState.GONE, end=event.end)
        run = replace(run, verdict=event.end, parts=(only, *run.parts[1:]))
    cluster.finished[job.key] = replace(job, state=state, since=event.at, outcome=outcome, run=run)
    cluster.jobs.drop(job.key)
    if index_of(job.key):
        array = _array(cluster, job.key)
        done = state is JobState.DONE
        cluster.arrays.put(array.job, replace(array, done=array.done + done, exited=array.exited + (not done)))
        _drop_finished_array(cluster, array.job)


FOLDS: dict[type[ev.Event], Callable[[Cluster, Any], None]] = {
    ev.JobSubmitted: _job_submitted,
    ev.ElementsHeld: _elements_held,
    ev.ElementsReleased: _elements_released,
    ev.ElementsKilled: _elements_killed,
    ev.ElementSplit: _element_split,
    ev.JobHeld: _moved,
    ev.JobReleased: _moved,
    ev.JobModified: _job_modified,
    ev.JobSwitched: _job_switched,
    ev.JobMoved: _job_moved,
    ev.JobSuspended: _job_suspended,
    ev.JobResumed: _moved,
    ev.JobLost: _job_lost,
    ev.JobRequeued: _job_requeued,
    ev.JobFinished: _job_finished,
}
