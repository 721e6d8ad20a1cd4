"""Folds of events about jobs, arrays and elements: submitted, held, changed, requeued, finished."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from lavad.core.cluster.charge import account_of, charged
from lavad.core.cluster.cluster import Cluster
from lavad.core.events import job as ev
from lavad.core.events.moves import IllegalMove, move
from lavad.core.job.depend import BLOCKED, MET, NEVER, Ended, exit_code
from lavad.core.job.job import Array, Attempt, End, Job, Outcome
from lavad.core.lang.ids import index_of, job_of, show
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.core.lang.states import JobState, PartState


def _job_submitted(cluster: Cluster, event: ev.JobSubmitted) -> None:
    cluster.next_job = event.key + 1
    if event.indices is None:
        state = JobState.PSUSP if event.held else JobState.PEND
        job = Job(
            key=event.key, spec=event.spec, name=event.name, submitted=event.at, state=state, since=event.at,
            checkpoint=event.restart, depend=event.depend, blocked=MET if event.depend is None else BLOCKED,
        )  # fmt: skip
        cluster.jobs.put(event.key, job)
        note_ended(cluster, event.ended)
        return
    pending, held = (EMPTY, event.indices) if event.held else (event.indices, EMPTY)
    array = Array(
        job=event.key, spec=event.spec, name=event.name, spec_text=event.spec_text, submitted=event.at,
        indices=event.indices, pending=pending, held=held, limit=event.limit, depend=event.depend,
        waiting=EMPTY if event.depend is None else event.indices,
    )  # fmt: skip
    cluster.arrays.put(event.key, array)
    note_ended(cluster, event.ended)


def note_ended(cluster: Cluster, ended: tuple[tuple[int, Ended], ...]) -> None:
    """Keep what a new condition has to know of finished jobs."""
    for job, value in ended:
        if job in cluster.conditions.named:
            known = cluster.ended.rows.get(job)
            cluster.ended.put(job, value if known is None else known.joined(value))


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
    array = replace(array, pending=array.pending.minus(elements), held=array.held.union(elements), stopper=event.by)
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
        waiting=array.waiting.minus(killed),
        never=array.never.minus(killed),
        exited=array.exited + len(killed),
    )
    if array.job in cluster.conditions.named:
        known = cluster.ended.rows.get(array.job) or Ended()
        cluster.ended.put(array.job, known.with_elements(killed, 0))
    cluster.arrays.put(array.job, array)
    _drop_finished_array(cluster, array.job)


def _drop_finished_array(cluster: Cluster, job: int) -> None:
    array = cluster.arrays.rows[job]
    if not array.pending and not array.held and job not in cluster.elements:
        if job in cluster.conditions.named:
            known = cluster.ended.rows.get(job) or Ended()
            cluster.ended.put(job, replace(known, indices=array.indices))
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
        state=JobState.PSUSP if held else JobState.PEND, position=array.position, stand=array.stand, depend=array.depend,
        blocked=stands(array, index), messages=array.messages, stopper=array.stopper if held else "",
    )  # fmt: skip


def stands(array: Array, index: int) -> int:
    """How an untouched element stands to its array's condition."""
    if index not in array.waiting:
        return MET
    return NEVER if index in array.never else BLOCKED


def put(cluster: Cluster, job: Job) -> None:
    """Keep a job's new record; an element that was untouched leaves its array's ranges."""
    split = job.key not in cluster.jobs.rows
    cluster.jobs.put(job.key, job)
    if split:
        array = _array(cluster, job.key)
        one = Ranges.span(index_of(job.key), index_of(job.key))
        array = replace(array, pending=array.pending.minus(one), held=array.held.minus(one))
        if array.waiting:
            array = replace(array, waiting=array.waiting.minus(one), never=array.never.minus(one))
        cluster.arrays.put(array.job, array)


def _element_split(cluster: Cluster, event: ev.ElementSplit) -> None:
    if event.key not in cluster.jobs.rows:
        put(cluster, record_of(cluster, event.key))


def _moved(cluster: Cluster, event: ev.JobEvent) -> None:
    """A plain change of state."""
    job = record_of(cluster, event.key)
    state = move(job, event)
    reason = 0 if state is JobState.PSUSP else job.reason
    stopper = event.by if isinstance(event, ev.JobHeld) else job.stopper
    why = event.why if isinstance(event, ev.JobHeld | ev.JobReleased) else ""
    remarks = (why, "") if isinstance(event, ev.JobHeld) else (job.remarks[0], why)
    put(cluster, replace(job, state=state, since=event.at, reason=reason, promised=(), stopper=stopper, remarks=remarks))


def _job_lost(cluster: Cluster, event: ev.JobLost) -> None:
    job = live_job(cluster, event.key)
    cluster.jobs.put(job.key, replace(job, state=move(job, event), since=event.at, before=job.state))


def _job_modified(cluster: Cluster, event: ev.JobModified) -> None:
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
    job = replace(job, spec=event.spec, name=event.name, promised=())
    if event.depends:
        job = replace(job, depend=event.depend, blocked=MET if event.depend is None else BLOCKED)
    put(cluster, job)
    note_ended(cluster, event.ended)


def _changed(cluster: Cluster, job: Job, run: Attempt, event: ev.JobModified) -> Attempt:
    """The attempt of a job that is changed while it runs: its limits, and what it reserves."""
    limits = cluster.specs.rows[event.spec].limits
    if limits != cluster.specs.rows[job.spec].limits:
        run = replace(run, limits=limits)
    if event.amended:
        run = replace(run, amended=tuple(sorted({**dict(run.amended), **dict(event.amended)}.items())))
    if not event.reserved:
        return run
    amounts = dict(event.reserved)
    parts = tuple(replace(part, reserved=amounts[part.host], fades=()) if part.host in amounts else part for part in run.parts)
    return replace(run, parts=parts)


def _dependency_judged(cluster: Cluster, event: ev.DependencyJudged) -> None:
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


def _job_revived(cluster: Cluster, event: ev.JobRevived) -> None:
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
        array = replace(array, done=array.done - event.done, exited=array.exited - (not event.done))
        cluster.arrays.put(number, array)


def _message_posted(cluster: Cluster, event: ev.MessagePosted) -> None:
    array = cluster.arrays.rows.get(event.key)
    if array is not None:
        kept = tuple(old for old in array.messages if old.number != event.message.number)
        cluster.arrays.put(array.job, replace(array, messages=(*kept, event.message)))
        return
    job = record_of(cluster, event.key)
    move(job, event)
    kept = tuple(old for old in job.messages if old.number != event.message.number)
    put(cluster, replace(job, messages=(*kept, event.message)))


def _job_switched(cluster: Cluster, event: ev.JobSwitched) -> None:
    array = cluster.arrays.rows.get(event.key)
    if array is not None:
        cluster.arrays.put(array.job, replace(array, spec=event.spec, position=0.0, stand=0.0))
        return
    job = record_of(cluster, event.key)
    move(job, event)
    put(cluster, replace(job, spec=event.spec, position=0.0, stand=0.0, promised=()))


def _job_moved(cluster: Cluster, event: ev.JobMoved) -> None:
    array = cluster.arrays.rows.get(event.key)
    if array is not None:
        cluster.arrays.put(array.job, replace(array, position=event.position, stand=event.stand))
        return
    job = record_of(cluster, event.key)
    move(job, event)
    put(cluster, replace(job, position=event.position, stand=event.stand))


def _job_suspended(cluster: Cluster, event: ev.JobSuspended) -> None:
    job = live_job(cluster, event.key)
    state = move(job, event, event.state)
    count = job.preempted + (event.beneficiary not in (0, job.key))
    lent = event.beneficiary or job.lent
    remarks = (event.why if state is JobState.USUSP else "", "")
    job = replace(job, state=state, since=event.at, lent=lent, preempted=count, stopper=event.by, remarks=remarks)
    cluster.jobs.put(job.key, job)


def _job_resumed(cluster: Cluster, event: ev.JobResumed) -> None:
    job = live_job(cluster, event.key)
    run = job.run
    if run is not None:
        run = replace(run, paused=run.paused + max(0.0, event.at - job.since))
    remarks = (job.remarks[0], event.why)
    cluster.jobs.put(job.key, replace(job, state=move(job, event), since=event.at, lent=0, run=run, remarks=remarks))


def _slots_reserved(cluster: Cluster, event: ev.SlotsReserved) -> None:
    job = record_of(cluster, event.key)
    move(job, event)
    put(cluster, replace(job, promised=event.parts, deadlocked=False))


def _job_deadlocked(cluster: Cluster, event: ev.JobDeadlocked) -> None:
    job = live_job(cluster, event.key)
    move(job, event)
    put(cluster, replace(job, deadlocked=True))


def _slots_released(cluster: Cluster, event: ev.SlotsReleased) -> None:
    job = live_job(cluster, event.key)
    move(job, event)
    cluster.jobs.put(job.key, replace(job, promised=(), deadlocked=False))


def _charge(cluster: Cluster, spec: int, run: Attempt | None, at: float) -> None:
    """An attempt is over: what it used goes into the history of its account."""
    if run is None or not cluster.hist_hours:
        return
    value = cluster.specs.rows[spec]
    hours = cluster.hist_hours.get(value.queue)
    if hours is not None:
        account = account_of(value)
        charge = charged(cluster.charges.rows.get(account), run, value, at, hours)
        if charge is not None:
            cluster.charges.put(account, charge)


def _with_end(run: Attempt, end: End) -> Attempt:
    """The attempt whose only part ended without an event of its own."""
    only = replace(run.parts[0], state=PartState.GONE, end=end)
    verdict = replace(run.verdict, output=end.output) if run.judged and run.verdict is not None else end
    return replace(run, verdict=verdict, parts=(only, *run.parts[1:]))


def _job_requeued(cluster: Cluster, event: ev.JobRequeued) -> None:
    job = live_job(cluster, event.key)
    move(job, event, event.state)
    run = job.run
    _charge(cluster, job.spec, _with_end(run, event.end) if run is not None and event.end is not None else run, event.at)
    job = replace(
        job, state=event.state, since=event.at, run=None, reason=event.reason, avoid=event.avoid,
        failures=event.failures, not_before=event.not_before, lent=0, lent_all=False,
        requeues=event.requeues or job.requeues,
        barred=(*job.barred, *(host for host in event.barred if host not in job.barred)),
    )  # fmt: skip
    cluster.jobs.put(job.key, job)


def _job_finished(cluster: Cluster, event: ev.JobFinished) -> None:
    job = record_of(cluster, event.key)
    state = move(job, event, event.state)
    if job.key not in cluster.jobs.rows:
        put(cluster, job)
    outcome = Outcome(at=event.at, status=event.status, reason=event.reason, why=event.why, post=event.post)
    run = job.run
    if run is not None and event.end is not None:
        run = _with_end(run, event.end)
    _charge(cluster, job.spec, run, event.at)
    cluster.finished[job.key] = replace(job, state=state, since=event.at, outcome=outcome, run=run)
    if job_of(job.key) in cluster.conditions.named:
        known = cluster.ended.rows.get(job_of(job.key)) or Ended()
        code = None if state is JobState.DONE else exit_code(event.status)
        cluster.ended.put(job_of(job.key), known.with_element(index_of(job.key) or 1, code, bool(event.post)))
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
    ev.JobResumed: _job_resumed,
    ev.SlotsReserved: _slots_reserved,
    ev.SlotsReleased: _slots_released,
    ev.JobDeadlocked: _job_deadlocked,
    ev.DependencyJudged: _dependency_judged,
    ev.MessagePosted: _message_posted,
    ev.JobRevived: _job_revived,
    ev.JobLost: _job_lost,
    ev.JobRequeued: _job_requeued,
    ev.JobFinished: _job_finished,
}
