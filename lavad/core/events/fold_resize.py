"""Folds of events about running jobs that grow and shrink."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import job as ev
from lavad.core.events.fold_job import live_job
from lavad.core.events.moves import IllegalMove, move
from lavad.core.job import resize
from lavad.core.job.job import Attempt, Job, Resize


def _found(cluster: Cluster, event: Any) -> tuple[Job, Attempt]:
    job = live_job(cluster, event.key)
    move(job, event)
    if job.run is None or job.run.number != event.attempt:
        raise IllegalMove(f"attempt {event.attempt} is not the current one of {job}")
    return job, job.run


def _job_grew(cluster: Cluster, event: ev.JobGrew) -> None:
    job, run = _found(cluster, event)
    run = resize.grown(run, event.parts, event.at)
    under_way = Resize(number=event.number, grow=True, parts=event.parts, at=event.at, command=event.command)
    cluster.jobs.put(job.key, replace(job, run=replace(run, resize=under_way, resizes=event.number)))


def _job_shrank(cluster: Cluster, event: ev.JobShrank) -> None:
    job, run = _found(cluster, event)
    cluster.jobs.put(job.key, replace(job, run=shrank(run, event)))


def shrank(run: Attempt, event: ev.JobShrank) -> Attempt:
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


def _job_resized(cluster: Cluster, event: ev.JobResized) -> None:
    job, run = _found(cluster, event)
    cluster.jobs.put(job.key, replace(job, run=resized(run, event)))


def resized(run: Attempt, event: ev.JobResized) -> Attempt:
    """The attempt once its resize is over."""
    under_way = run.resize
    if under_way is None or under_way.number != event.number:
        raise IllegalMove(f"resize {event.number} is not under way in attempt {run.uid}")
    if (under_way.grow and not event.ok) or (not under_way.grow and event.ok and not under_way.done):
        run = resize.shrunk(run, under_way.parts, event.at)
    after = run.grow_after if event.ok else event.at + resize.RETRY
    return replace(run, resize=None, grow_after=after)


def _part_left(cluster: Cluster, event: ev.PartLeft) -> None:
    job, run = _found(cluster, event)
    cluster.jobs.put(job.key, replace(job, run=left(run, event)))


def left(run: Attempt, event: ev.PartLeft) -> Attempt:
    """The attempt without the host."""
    cpu = 0.0 if event.end is None else event.end.utime + event.end.stime
    failed = any(part.host == event.host and not part.leaving for part in run.parts)
    run = resize.without(run, event.host, event.at, cpu)
    return replace(run, grow_after=event.at + resize.RETRY) if failed else run


def _resize_asked(cluster: Cluster, event: ev.ResizeAsked) -> None:
    job, run = _found(cluster, event)
    run = replace(run, wanted=(event.least, event.most), command=event.command, grow_after=0.0)
    cluster.jobs.put(job.key, replace(job, run=run))


FOLDS: dict[type[ev.Event], Callable[[Cluster, Any], None]] = {
    ev.JobGrew: _job_grew,
    ev.JobShrank: _job_shrank,
    ev.JobResized: _job_resized,
    ev.PartLeft: _part_left,
    ev.ResizeAsked: _resize_asked,
}
