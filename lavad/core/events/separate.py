"""Separate jobs of one class that are submitted, start or end together: the same cluster as one by one, for less.

Whoever submits many jobs alike submits them in a row, and what fits on a host starts at once: what such events have in common is
made once, and the sums of the indexes move once. Rule: as for ``elements``; any other event ends the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lavad.core.cluster.alike import add_submitted, drop_separate, start_separate
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.job_rows import JobRows
from lavad.core.events.attempt import JobDispatched, dispatched
from lavad.core.events.base import Event
from lavad.core.events.elements import ends_as, is_plain, leaves_others, only_part, starts_as
from lavad.core.events.ending import JobFinished, finish
from lavad.core.events.submission import JobSubmitted
from lavad.core.job.job import Job, Part
from lavad.core.lang.ids import index_of


def fold_separate(cluster: Cluster, events: Sequence[Event], at: int) -> int:
    """Fold as many events from number ``at`` on as can be folded together; returns how many, 0: none was."""
    first = events[at]
    if at + 1 == len(events) or type(events[at + 1]) is not type(first):
        return 0
    if isinstance(first, JobSubmitted):
        return _submit(cluster, first, events, at)
    if isinstance(first, JobDispatched):
        return _start(cluster, first, events, at)
    if isinstance(first, JobFinished):
        return _finish(cluster, first, events, at)
    return 0


def _submit(cluster: Cluster, first: JobSubmitted, events: Sequence[Event], at: int) -> int:
    rows = cluster.jobs.rows
    jobs: list[tuple[int, str, float]] = []
    last = 0
    for number in range(at, len(events)):
        event = events[number]
        if not isinstance(event, JobSubmitted) or event.spec != first.spec or not _only_waits(event):
            break
        if event.key <= last or event.key in rows:
            break
        last = event.key
        jobs.append((event.key, event.name, event.at))
    if len(jobs) < 2:
        return 0
    add_submitted(cluster, first.spec, jobs)
    cluster.next_job = last + 1
    return len(jobs)


def _only_waits(event: JobSubmitted) -> bool:
    return event.indices is None and not event.held and event.restart == -1 and event.depend is None and not event.ended


def _start(cluster: Cluster, first: JobDispatched, events: Sequence[Event], at: int) -> int:
    rows = cluster.jobs.rows
    assert isinstance(rows, JobRows)
    if rows.submitted(first.key) is None or len(first.parts) != 1 or not is_plain(first.parts[0]) or first.alone:
        return 0
    number = rows[first.key].spec
    spec = cluster.specs.rows[number]
    if spec.resizable or spec.roles:
        return 0
    alike: dict[int, tuple[Job, JobDispatched]] = {}
    for place in range(at, len(events)):
        event = events[place]
        if not isinstance(event, JobDispatched) or not starts_as(event, first) or event.key in alike:
            break
        if rows.submitted(event.key) is None or (job := rows[event.key]).spec != number:
            break
        alike[event.key] = job, event
    if len(alike) < 2:
        return 0
    model = dispatched(cluster, first)
    run = model.run
    assert run is not None
    start_separate(
        cluster,
        [
            replace(
                model,
                key=key,
                name=job.name,
                submitted=job.submitted,
                run=replace(run, uid=event.uid, chunk=event.chunk, ahead=event.ahead),
            )
            for key, (job, event) in alike.items()
        ],
    )
    return len(alike)


def _finish(cluster: Cluster, first: JobFinished, events: Sequence[Event], at: int) -> int:
    rows = cluster.jobs.rows
    known = rows.get(first.key)
    if known is None or index_of(first.key) or cluster.conditions.named:
        return 0
    alike: dict[int, tuple[Job, JobFinished]] = {}
    parts: dict[int, Part] = {}
    for place in range(at, len(events)):
        event = events[place]
        if not isinstance(event, JobFinished) or index_of(event.key) or event.key in alike:
            break
        job = rows.get(event.key)
        own = only_part(known.spec, job)
        if job is None or own is None or event.end is None or not ends_as(own, parts) or leaves_others(cluster, job, alike):
            break
        alike[event.key] = job, event
    if len(alike) < 2:
        return 0
    for job, event in alike.values():
        finish(cluster, job, event)
    drop_separate(cluster, [job for job, _ in alike.values()])
    return len(alike)
