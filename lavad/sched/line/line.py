"""The line of waiting classes: by queue priority, fair share, user priority, btop/bbot, submission of the class's first job.

Rule: only classes whose pending jobs changed are put in place again; the others cost nothing. Classes of queues with fair
share stand in streams, one for each user: within a stream the order is fixed, and streams move against each other.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.job_rows import JobRows
from lavad.core.cluster.versioned_table import Pending
from lavad.core.job.job import Job
from lavad.core.job.spec import Spec
from lavad.sched.order.ranking import Stream, score
from lavad.sched.state.scheduler_cache import Order, PendingClass, SchedulerCache

SLACK = 100
"""Jobs that may stay in a class's list though they have left, in addition to a quarter of it."""


def renew_line(cluster: Cluster, cache: SchedulerCache) -> None:
    """Bring the line up to the cluster's pending jobs."""
    classes, pending = cache.classes, cluster.pending
    come: dict[Stream | None, list[tuple[Order, int]]] = {}
    for number, jobs in pending.items():
        entry = classes.get(number)
        if entry is None:
            entry = classes[number] = PendingClass(cache.needs.kind_of(cluster, number))
            entry.stream = cache.ranking.stream(cluster.specs.rows[number])
            if cache.goals is not None:
                cache.goals.join(number, cluster.specs.rows[number])
        if entry.touched != jobs.touched or entry.pending is not jobs:
            head = entry.head
            _renew(cluster, cache, number, entry, jobs)
            if entry.head is not None and entry.head is not head:
                come.setdefault(entry.stream, []).append((entry.head, number))
    for stream, places in come.items():
        _enter(_line_of(cache, stream), places)
    if len(classes) > len(pending):
        for number in [number for number in classes if number not in pending]:
            _leave(cache, number, classes[number])
            cache.forget(number)


def _line_of(cache: SchedulerCache, stream: Stream | None) -> list[tuple[Order, int]]:
    return cache.line if stream is None else cache.streams.setdefault(stream, [])


def _enter(line: list[tuple[Order, int]], come: list[tuple[Order, int]]) -> None:
    if len(come) * 100 < len(line):
        for place in come:
            insort(line, place)
    else:
        line += come
        line.sort()


def _leave(cache: SchedulerCache, number: int, entry: PendingClass) -> None:
    if entry.head is not None:
        line = _line_of(cache, entry.stream)
        at = bisect_left(line, (entry.head, number))
        del line[at]
        if not line and entry.stream is not None:
            del cache.streams[entry.stream]
        entry.head = None


def _renew(cluster: Cluster, cache: SchedulerCache, number: int, entry: PendingClass, jobs: Pending) -> None:
    """Bring a class up to its jobs. Where another is its first now, it leaves the line, and is to come into it again."""
    if entry.pending is not jobs:
        entry.pending, entry.placed = jobs, 0
        entry.places = None
    entry.touched = jobs.touched
    only = jobs.only()
    head = None if only is None else _order_alone(cluster, cache, number, only)
    entry.alone = head is not None
    if head is None:
        head = order_at(cluster, cache, number, next(iter(keys_in_order(cluster, number, entry))))
    if head != entry.head:
        _leave(cache, number, entry)
        entry.head = head


def _order_alone(cluster: Cluster, cache: SchedulerCache, number: int, key: int) -> Order | None:
    """The same as ``order_at`` of a job of which nothing but its submission is known; None: it is no such job."""
    rows, spec = cluster.jobs.rows, cluster.specs.rows[number]
    assert isinstance(rows, JobRows)
    submitted = rows.submitted(key)
    if submitted is None or spec.queue in cache.ranking.policy_names:
        return None
    return _order(cache, spec, submitted, (0.0, 0.0, submitted, key, 0))


def order_at(cluster: Cluster, cache: SchedulerCache, number: int, key: int) -> Order:
    """The place in line of a pending job, element or array of a class, without fair share and absolute priority."""
    spec, row = cluster.specs.rows[number], cluster.get(key)
    policy = cache.ranking.policy_names.get(spec.queue, "")
    own = score(policy, spec, row, cache.scorer, cache.run_times) if policy else 0.0
    job = row.key & 0xFFFFFFFF if isinstance(row, Job) else row.job
    return _order(cache, spec, row.submitted, (row.position, own, row.queue_time or row.submitted, job, key >> 32))


def _order(cache: SchedulerCache, spec: Spec, submitted: float, rest: tuple[float, float, float, int, int]) -> Order:
    ranking, goals = cache.ranking, cache.goals
    rank = ranking.ranks.get(spec.queue, 0)
    if goals is not None:
        rank = goals.rank(spec, rank)
    # JOB_PRIORITY_OVER_TIME: all priorities grow at one rate, so that only the difference of submission times counts
    priority = ranking.growth * submitted - max(0, spec.priority)
    return (-rank, (), -ranking.priorities.get(spec.queue, 0), priority, *rest)


def keys_in_order(cluster: Cluster, number: int, entry: PendingClass) -> Iterator[int]:
    """Keys of a class's pending jobs, the first to run first."""
    jobs = cluster.pending[number]
    if jobs.ordered:
        return iter(jobs)
    if entry.placed != jobs.touched:
        _put_in_place(cluster, entry, jobs)
    return (key for _, key, came in entry.places or () if jobs.came(key) == came)


def _put_in_place(cluster: Cluster, entry: PendingClass, jobs: Pending) -> None:
    """Put the jobs that became pending since the last time among the others."""
    places = entry.places = [] if entry.places is None else entry.places
    if len(places) > SLACK + len(jobs) + len(jobs) // 4:
        places[:] = [place for place in places if jobs.came(place[1]) == place[2]]
    new = []
    for key, came in jobs.came_after(entry.placed):
        row = cluster.get(key)
        new.append(((row.position, row.queue_time or row.submitted, key & 0xFFFFFFFF, key >> 32), key, came))
    if len(new) * 100 < len(places):
        for place in new:
            insort(places, place)
    else:
        places += new
        places.sort()
    entry.placed = jobs.touched
