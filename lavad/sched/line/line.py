"""The line of waiting classes: queue priority, fair share, user priority, btop/bbot, submission; a class stands by its
first job.

Rule: only classes whose pending jobs changed are put in place anew, so that the others cost nothing. Classes of queues
with fair share stand in streams, one a user, each in an order that does not move; what moves is the streams.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.versioned_table import Pending
from lavad.core.job.job import Job
from lavad.sched.order.ranking import Stream, score
from lavad.sched.state.scheduler_cache import Order, PendingClass, SchedulerCache

SLACK = 100
"""Jobs that have left and are still in a class's list, beside a quarter of it."""


def order_of(
    cluster: Cluster, key: int, rank: int, queue_priority: int, user_priority: float, growth: float, score: float = 0.0
) -> Order:
    """The place of a pending job, element or array, as far as it does not move."""
    row = cluster.get(key)
    job = row.key & 0xFFFFFFFF if isinstance(row, Job) else row.job
    # all priorities grow alike, so that what counts is how much sooner one began to
    priority = growth * row.submitted - user_priority
    return (-rank, (), -queue_priority, priority, row.position, score, row.stand or row.submitted, job, key >> 32)


def renew_line(cluster: Cluster, cache: SchedulerCache) -> None:
    """Bring the line up to the cluster's pending jobs."""
    classes, pending = cache.classes, cluster.pending
    for number, jobs in pending.items():
        entry = classes.get(number)
        if entry is None:
            entry = classes[number] = PendingClass()
            entry.stream = cache.ranking.stream(cluster.specs.rows[number])
        if entry.touched != jobs.touched or entry.pending is not jobs:
            _renew(cluster, cache, number, entry, jobs)
    if len(classes) > len(pending):
        for number in [number for number in classes if number not in pending]:
            _leave(cache, number, classes[number])
            cache.forget(number)


def _line_of(cache: SchedulerCache, stream: Stream | None) -> list[tuple[Order, int]]:
    return cache.line if stream is None else cache.streams.setdefault(stream, [])


def _leave(cache: SchedulerCache, number: int, entry: PendingClass) -> None:
    if entry.head is not None:
        line = _line_of(cache, entry.stream)
        at = bisect_left(line, (entry.head, number))
        del line[at]
        if not line and entry.stream is not None:
            del cache.streams[entry.stream]
        entry.head = None


def _renew(cluster: Cluster, cache: SchedulerCache, number: int, entry: PendingClass, jobs: Pending) -> None:
    if entry.pending is not jobs:
        entry.pending, entry.placed = jobs, 0
        entry.places.clear()
    entry.touched = jobs.touched
    head = order_at(cluster, cache, number, next(iter(keys_in_order(cluster, number, entry))))
    if head != entry.head:
        _leave(cache, number, entry)
        entry.head = head
        insort(_line_of(cache, entry.stream), (head, number))


def order_at(cluster: Cluster, cache: SchedulerCache, number: int, key: int) -> Order:
    """The place of a job of a class, without what moves."""
    spec = cluster.specs.rows[number]
    ranking = cache.ranking
    rank, priority = ranking.ranks.get(spec.queue, 0), ranking.priorities.get(spec.queue, 0)
    policy = ranking.policy_names.get(spec.queue, "")
    own = score(policy, spec, cluster.get(key), cache.scorer) if policy else 0.0
    return order_of(cluster, key, rank, priority, max(0, spec.priority), ranking.growth, own)


def keys_in_order(cluster: Cluster, number: int, entry: PendingClass) -> Iterator[int]:
    """A class's pending jobs, first to run first."""
    jobs = cluster.pending[number]
    if jobs.ordered:
        return iter(jobs.keys)
    if entry.placed != jobs.touched:
        _put_in_place(cluster, entry, jobs)
    keys = jobs.keys
    return (key for _, key, came in entry.places if keys.get(key) == came)


def _put_in_place(cluster: Cluster, entry: PendingClass, jobs: Pending) -> None:
    """Put the jobs that came since the last time among the others."""
    places, keys = entry.places, jobs.keys
    if len(places) > SLACK + len(keys) + len(keys) // 4:
        places[:] = [place for place in places if keys.get(place[1]) == place[2]]
    new = []
    for key in reversed(keys):
        if keys[key] <= entry.placed:
            break
        row = cluster.get(key)
        new.append(((row.position, row.stand or row.submitted, key & 0xFFFFFFFF, key >> 32), key, keys[key]))
    if len(new) * 100 < len(places):
        for place in new:
            insort(places, place)
    else:
        places += new
        places.sort()
    entry.placed = jobs.touched
