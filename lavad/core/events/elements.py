"""Starts and ends of many elements of an array, folded together: the same cluster as one by one, for less.

The scheduler starts what fits on a host at once, and a host tells of many ends in one message: what such events have in common is
made once, and the sums of the indexes move once. Rule: only plain elements, with one part that has slots and amounts of resources
and nothing else; an event about any other job ends the run, and is folded by itself.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import takewhile

from msgspec.structs import replace

from lavad.core.cluster.alike import add_started, drop_started
from lavad.core.cluster.cluster import Cluster
from lavad.core.events.attempt import JobDispatched, dispatched
from lavad.core.events.base import Event
from lavad.core.events.ending import JobFinished, count_finished, finish
from lavad.core.job.chunk import RUNS
from lavad.core.job.job import Array, Job, Part, Placed
from lavad.core.lang.ids import index_of, job_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import OVER, JobState


def fold_alike(cluster: Cluster, events: Sequence[Event], at: int) -> int:
    """Fold as many events from number ``at`` on as can be folded together; returns how many, 0: none was."""
    first = events[at]
    if at + 1 == len(events) or type(events[at + 1]) is not type(first):
        return 0
    if isinstance(first, JobDispatched):
        return _start(cluster, first, events, at)
    if isinstance(first, JobFinished):
        return _finish(cluster, first, events, at)
    return 0


def _array_of(cluster: Cluster, key: int) -> Array | None:
    """The array of an element that no dependency condition asks about."""
    array = cluster.arrays.rows.get(job_of(key)) if index_of(key) else None
    return None if array is None or array.waiting or cluster.conditions.named else array


def is_plain(part: Part | Placed) -> bool:
    """Whether it has slots and amounts of resources, and nothing else."""
    return not (part.gpus or part.decays or part.roles or part.binds)


def _start(cluster: Cluster, first: JobDispatched, events: Sequence[Event], at: int) -> int:
    array = _array_of(cluster, first.key)
    if array is None or len(first.parts) != 1 or not is_plain(first.parts[0]) or first.alone:
        return 0
    spec = cluster.specs.rows[array.spec]
    if spec.resizable or spec.roles:
        return 0
    alike: dict[int, JobDispatched] = {}
    for number in range(at, len(events)):
        event = events[number]
        if not isinstance(event, JobDispatched) or not starts_as(event, first) or event.key in alike:
            break
        if job_of(event.key) != array.job:
            break
        alike[event.key] = event
    started = Ranges.from_indices(map(index_of, alike))
    if not started.is_within(array.pending):
        # up to the first that is not pending, which an element with a record never is
        alike = dict(takewhile(lambda one: index_of(one[0]) in array.pending, alike.items()))
        started = Ranges.from_indices(map(index_of, alike))
    if len(alike) < 2:
        return 0
    model = dispatched(cluster, first)
    run = model.run
    assert run is not None
    jobs = [
        replace(
            model,
            key=key,
            name=f"{array.name}[{index_of(key)}]",
            run=replace(run, uid=event.uid, chunk=event.chunk, ahead=event.ahead),
        )
        for key, event in alike.items()
    ]
    add_started(cluster, jobs)
    cluster.arrays.put(array.job, replace(array, pending=array.pending.minus(started)))
    return len(jobs)


def starts_as(event: JobDispatched, first: JobDispatched) -> bool:
    """Whether the two say the same of two jobs."""
    return (
        event.parts == first.parts
        and event.at == first.at
        and event.attempt == first.attempt
        and event.way == first.way
        and not event.alone
        and event.waits == first.waits
        and event.forced == first.forced
        and event.afresh == first.afresh
        and event.run_limit == first.run_limit
    )


def _finish(cluster: Cluster, first: JobFinished, events: Sequence[Event], at: int) -> int:
    array = _array_of(cluster, first.key)
    if array is None:
        return 0
    alike: dict[int, tuple[Job, JobFinished]] = {}
    parts: dict[int, Part] = {}
    done = 0
    for number in range(at, len(events)):
        event = events[number]
        if not isinstance(event, JobFinished) or job_of(event.key) != array.job or event.key in alike:
            break
        job = cluster.jobs.rows.get(event.key)
        own = only_part(array.spec, job)
        if job is None or own is None or event.end is None or not ends_as(own, parts) or leaves_others(cluster, job, alike):
            break
        alike[event.key] = job, event
        done += event.state is JobState.DONE
    if len(alike) < 2:
        return 0
    for job, event in alike.values():
        finish(cluster, job, event)
    drop_started(cluster, [job for job, _ in alike.values()])
    count_finished(cluster, array, done, len(alike))
    return len(alike)


def only_part(spec: int, job: Job | None) -> Part | None:
    """The part of a plain job of a class that runs, or waits in a chunk."""
    if job is None or job.state not in RUNS or job.spec != spec or job.preempted_for:
        return None
    run = job.run
    if run is None or len(run.parts) != 1 or run.elastic or run.alone or job.checkpoints is not None:
        return None
    part = run.parts[0]
    return part if part.state not in OVER and is_plain(part) else None


def ends_as(part: Part, others: dict[int, Part]) -> bool:
    """Whether a part is on the host of others, and has what those with as many slots have; then it is one of them.

    ``others``: one for each number of slots. A chunk has jobs with its slot and without.
    """
    other = others.setdefault(part.slots, part)
    if other is not part and (part.host != other.host or part.reserved != other.reserved):
        return False
    return len(others) == 1 or next(iter(others.values())).host == part.host


def leaves_others(cluster: Cluster, job: Job, gone: Container[int]) -> bool:
    """Whether the slot of its chunk may pass to others as it ends; ``gone``: keys of those that have ended before it."""
    ahead = job.run.ahead if job.run is not None else ()
    return any(key not in gone and key in cluster.jobs.rows for key in ahead)
