"""The place of a waiting job in line, and when it will start: at the earliest if no other job took what becomes free, at the
latest if all jobs before it go first and every job runs to its limit.

Rule: the future is simulated with the real scheduler on the cluster as it is, in a trial; only run limits tell when jobs end.
What jobs reserve for a part of their lives (rusage[duration=]) becomes free meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

import msgspec

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.chunk import end_by_limit
from lavad.core.job.job import Array
from lavad.core.job.run_time import expected_of
from lavad.core.lang.ids import index_of
from lavad.core.rules.cpu_factors import RunTimes
from lavad.sched.ask.trial import Moment, alone, decay_rusage, end_jobs, plan_of, row_key, start_jobs, trial
from lavad.sched.line.line import keys_in_order, renew_line
from lavad.sched.line.queue_iterator import order_now
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.scheduler_cache import Order, SchedulerCache

TRIES = 200
"""Cycles that are simulated for one answer on a small cluster; fewer on a large one, as each takes longer."""
SMALL = 2000
NAMED = 5


class QueuePosition(msgspec.Struct, frozen=True):
    """Numbers of jobs: ``ahead`` of it of ``waiting`` in its queue, ``before`` it in all queues; ``first``: keys of the first."""

    ahead: int
    waiting: int
    before: int
    first: tuple[int, ...]


def get_queue_position(moment: Moment, key: int) -> QueuePosition:
    """The place of a waiting job in line, in the scheduler's own order."""
    cluster = moment.cluster
    state = CycleState(*moment, SchedulerCache())
    renew_line(cluster, state.cache)
    row = cluster.get(key)
    mine = _place(state, row.spec, key)
    ahead = waiting = before = 0
    first: list[tuple[Order, int]] = []
    for number in cluster.pending:
        keys = list(keys_in_order(cluster, number, state.cache.classes[number]))
        count = bisect_left(keys, mine, key=lambda other, number=number: _place(state, number, other))  # type: ignore[misc]
        jobs = sum(_size(cluster, other) for other in keys[:count])
        if count < len(keys) and keys[count] == row_key(cluster, key) != key and number == row.spec:
            jobs += _elements_before(cluster, key)
        same = cluster.specs.rows[number].queue == cluster.specs.rows[row.spec].queue
        ahead += jobs * same
        waiting += sum(_size(cluster, other) for other in keys) * same
        before += jobs
        first += [(_place(state, number, other), other) for other in keys[: min(count, NAMED)]]
    return QueuePosition(ahead, waiting, before, tuple(other for _, other in sorted(first)[:NAMED]))


def _place(state: CycleState, number: int, key: int) -> Order:
    return order_now(state, number, row_key(state.cluster, key))


def _size(cluster: Cluster, key: int) -> int:
    row = cluster.get(key)
    return len(row.startable) if isinstance(row, Array) else 1


def _elements_before(cluster: Cluster, key: int) -> int:
    row = cluster.get(key)
    index = index_of(key)
    return sum(1 for other in row.startable if other < index) if isinstance(row, Array) else 0


class Estimate(msgspec.Struct, frozen=True):
    """Times of the start in seconds since the epoch; None: run limits do not tell."""

    soonest: float | None
    latest: float | None


def estimate(moment: Moment, key: int) -> Estimate:
    """When a waiting job starts, by the run limits of running jobs and of the jobs before it."""
    return Estimate(soonest(moment, key), latest(moment, key))


def soonest(moment: Moment, key: int) -> float | None:
    """When it starts if every job runs to its limit and no other waiting job takes anything."""
    with alone(moment.cluster, key), trial(moment.cluster):
        return _play(moment, key)


def latest(moment: Moment, key: int) -> float | None:
    """When it starts if every job runs to its limit and those before it go first."""
    with trial(moment.cluster):
        return _play(moment, key)


def _play(moment: Moment, key: int) -> float | None:
    cluster, at, cache = moment.cluster, moment.now, SchedulerCache()
    for _ in range(tries(cluster)):
        plan = plan_of(moment.later(at), cache)
        if any(placement.key == key for placement in plan.placements):
            return at
        start_jobs(cluster, plan, at)
        ends = dict(_ends(cluster, cache.run_times))
        opens = [plan.wake_at] if plan.wake_at > at else []
        changes = [*ends.values(), *cluster.use.decaying.values(), *opens]
        if not changes:
            return None
        at = max(at, min(changes))
        end_jobs(cluster, [other for other, end in ends.items() if end <= at], at)
        decay_rusage(cluster, at)
    return None


def _ends(cluster: Cluster, run_times: RunTimes) -> Iterator[tuple[int, float]]:
    """Started jobs with a run limit, and when it is up."""
    for key in cluster.started:
        job = cluster.jobs.rows[key]
        spec = cluster.specs.rows[job.spec]
        expected = expected_of(job, spec)
        if job.run is not None and expected:
            seconds = run_times.longest(spec, expected, (part.host for part in job.run.parts))
            yield key, end_by_limit(job.run, seconds)


def tries(cluster: Cluster) -> int:
    """How many cycles may be simulated."""
    size = len(cluster.hosts.rows) + len(cluster.pending)
    return max(10, TRIES * SMALL // max(SMALL, size))
