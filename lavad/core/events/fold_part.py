"""Folds of events about attempts and their parts: dispatched, prepared, started, ended, gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import job as ev
from lavad.core.events.fold_job import live_job, put, record_of
from lavad.core.events.moves import IllegalMove, move
from lavad.core.job.job import Attempt, End, Job, Part, TaskRun
from lavad.core.job.roles import tasks_of
from lavad.core.lang.rusage_decay import faded
from lavad.core.lang.states import JobState, PartState, TaskState


def _job_dispatched(cluster: Cluster, event: ev.JobDispatched) -> None:
    job = record_of(cluster, event.key)
    state = move(job, event)
    elastic = cluster.specs.rows[job.spec].resizable
    parts = tuple(
        Part(
            host=one.host,
            slots=one.slots,
            gpus=one.gpus,
            reserved=one.reserved,
            fades=one.fades,
            roles=one.roles,
            binds=one.binds,
            seat=seat if elastic else 0,
        )
        for seat, one in enumerate(event.parts)
    )
    spec = cluster.specs.rows[job.spec]
    known = -1 if event.afresh else job.checkpoint
    run = Attempt(
        number=event.attempt,
        uid=event.uid,
        dispatched=event.at,
        parts=parts,
        checkpoint=known,
        way=event.way,
        alone=event.alone,
        forced=event.forced,
        tasks=tasks_of(spec, event.parts) if spec.roles else (),
        elastic=elastic,
        seats=len(parts) if elastic else 0,
    )
    job = replace(
        job, state=state, since=event.at, attempt=event.attempt, run=run, reason=0, not_before=0.0, promised=(), checkpoint=known
    )
    put(cluster, job)


def _reservation_faded(cluster: Cluster, event: ev.ReservationFaded) -> None:
    job = live_job(cluster, event.key)
    move(job, event)
    run = attempt_of(job, event.attempt)
    changes = [faded(part.reserved, part.fades, event.at - run.dispatched) for part in run.parts]
    parts = tuple(
        replace(part, reserved=reserved, fades=fades) for part, (reserved, fades) in zip(run.parts, changes, strict=True)
    )
    cluster.jobs.put(job.key, replace(job, run=replace(run, parts=parts)))


def attempt_of(job: Job, number: int) -> Attempt:
    """The attempt of a fact about it; raises IllegalMove for another than the current."""
    if job.run is None or job.run.number != number:
        raise IllegalMove(f"attempt {number} is not the current one of {job}")
    return job.run


def with_part(run: Attempt, host: str, **changes: Any) -> Attempt:
    """The attempt with one part changed."""
    return replace(run, parts=tuple(replace(part, **changes) if part.host == host else part for part in run.parts))


def _part(cluster: Cluster, event: Any, **changes: Any) -> Job:
    job = live_job(cluster, event.key)
    move(job, event)
    return replace(job, run=with_part(attempt_of(job, event.attempt), event.host, **changes))


def _part_prepared(cluster: Cluster, event: ev.PartPrepared) -> None:
    cluster.jobs.put(event.key, _part(cluster, event, state=PartState.PREPARED, address=event.address, door=event.door))


def _gang_released(cluster: Cluster, event: ev.GangReleased) -> None:
    job = live_job(cluster, event.key)
    move(job, event)
    run = attempt_of(job, event.attempt)
    parts = tuple(replace(p, state=PartState.STARTING) if p.state is PartState.PREPARED else p for p in run.parts)
    cluster.jobs.put(job.key, replace(job, run=replace(run, parts=parts)))


def _part_started(cluster: Cluster, event: ev.PartStarted) -> None:
    job = _part(cluster, event, state=PartState.RUNNING, pid=event.pid)
    run = attempt_of(job, event.attempt)
    if run.parts[0].host == event.host:
        run = replace(run, started=event.started or event.at, cwd=event.cwd)
    if run.tasks:
        run = _with_tasks_begun(run, event.host, event.at)
    cluster.jobs.put(job.key, replace(job, run=run, failures=0))


def _with_tasks_begun(run: Attempt, host: str, at: float) -> Attempt:
    """The tasks that start with their part run."""
    tasks = tuple(
        replace(task, state=TaskState.RUNNING, at=at) if run.parts[task.place].host == host and _begins(task) else task
        for task in run.tasks
    )
    return replace(run, tasks=tasks)


def _begins(task: TaskRun) -> bool:
    return task.state is TaskState.WAITING and task.number == 1 and not task.late


def _part_stopped(cluster: Cluster, event: ev.PartStopped) -> None:
    cluster.jobs.put(event.key, _part(cluster, event, stopped=event.stopped))


def with_end(run: Attempt, host: str, end: End) -> Attempt:
    """The attempt once a part's process ended. The first part's end is the job's, and so is a failure elsewhere before it;
    but a failure of the first part after a host was lost comes of that loss.
    """
    leaving = any(part.leaving for part in run.parts if part.host == host)
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


def with_fence(run: Attempt, host: str, at: float) -> Attempt:
    """The attempt once a part's host is lost for good; a part that had ended before is only gone."""
    ended = any(part.host == host and part.end is not None for part in run.parts)
    run = with_part(run, host, state=PartState.FENCED)
    if ended or run.verdict is not None:
        return run
    return replace(run, verdict=End(at=at, lost=f"host {host} was lost"))


def _part_ended(cluster: Cluster, event: ev.PartEnded) -> None:
    job = live_job(cluster, event.key)
    move(job, event)
    cluster.jobs.put(job.key, replace(job, run=with_end(attempt_of(job, event.attempt), event.host, event.end)))


def _part_refused(cluster: Cluster, event: ev.PartRefused) -> None:
    job = _part(cluster, event, state=PartState.GONE)
    run = replace(attempt_of(job, event.attempt), refused=event.why, refused_code=event.code)
    cluster.jobs.put(job.key, replace(job, run=run, avoid=(*job.avoid, event.host)))


def _part_gone(cluster: Cluster, event: ev.PartGone) -> None:
    cluster.jobs.put(event.key, _part(cluster, event, state=PartState.GONE, post=event.post))


def _part_fenced(cluster: Cluster, event: ev.PartFenced) -> None:
    job = live_job(cluster, event.key)
    move(job, event)
    cluster.jobs.put(job.key, replace(job, run=with_fence(attempt_of(job, event.attempt), event.host, event.at)))


def _job_wished(cluster: Cluster, event: ev.JobWished) -> None:
    job = live_job(cluster, event.key)
    kill = event.wish.kind == "kill"
    state = move(job, event, JobState.ZOMBI if kill else job.state)
    run = job.run
    if run is None:
        raise IllegalMove(f"a wish needs an attempt: {job}")
    wish = replace(event.wish, number=run.next_wish)
    kept = tuple(old for old in run.wishes if not (kill and old.kind == "kill"))
    run = replace(run, wishes=(*kept, wish), next_wish=run.next_wish + 1)
    if event.beneficiary:
        job = replace(job, lent=event.beneficiary, lent_all=True, preempted=job.preempted + 1)
    cluster.jobs.put(job.key, replace(job, state=state, run=run))


def _wish_granted(cluster: Cluster, event: ev.WishGranted) -> None:
    job = live_job(cluster, event.key)
    move(job, event)
    run = attempt_of(job, event.attempt)
    wishes = tuple(wish for wish in run.wishes if wish.number != event.number)
    cluster.jobs.put(job.key, replace(job, run=replace(run, wishes=wishes)))


def _job_found(cluster: Cluster, event: ev.JobFound) -> None:
    job = live_job(cluster, event.key)
    state = move(job, event, event.state)
    cluster.jobs.put(job.key, replace(job, state=state, since=event.at))


def _checkpoint_made(cluster: Cluster, event: ev.CheckpointMade) -> None:
    job = live_job(cluster, event.key)
    move(job, event)
    run = replace(attempt_of(job, event.attempt), checkpoint=event.generation)
    cluster.jobs.put(job.key, replace(job, run=run, checkpoint=event.generation))


def _ranks_suspected(cluster: Cluster, event: ev.RanksSuspected) -> None:
    job = live_job(cluster, event.key)
    move(job, event)
    run = replace(attempt_of(job, event.attempt), suspects=event.suspects)
    cluster.jobs.put(job.key, replace(job, run=run))


FOLDS: dict[type[ev.Event], Callable[[Cluster, Any], None]] = {
    ev.JobDispatched: _job_dispatched,
    ev.PartPrepared: _part_prepared,
    ev.GangReleased: _gang_released,
    ev.PartStarted: _part_started,
    ev.PartStopped: _part_stopped,
    ev.PartEnded: _part_ended,
    ev.PartRefused: _part_refused,
    ev.PartGone: _part_gone,
    ev.PartFenced: _part_fenced,
    ev.JobWished: _job_wished,
    ev.WishGranted: _wish_granted,
    ev.JobFound: _job_found,
    ev.CheckpointMade: _checkpoint_made,
    ev.ReservationFaded: _reservation_faded,
    ev.RanksSuspected: _ranks_suspected,
}
