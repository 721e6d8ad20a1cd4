"""Trials: events are folded into the cluster, the real scheduler runs on it, and all is undone again.

Rule: a trial may only be made while the cluster has no uncommitted change (in a replica, between two frames), and leaves it as
it was. Nothing here places jobs by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.versioned_table import Pending
from lavad.core.events.apply import apply
from lavad.core.job.job import Array, End
from lavad.core.job.spec import Spec
from lavad.core.lang.states import OVER, JobState
from lavad.core.lang.windows import Local
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import Soft
from lavad.sched.cycle.cycle import schedule
from lavad.sched.state.scheduler_cache import SchedulerCache


class Moment(NamedTuple):
    """The cluster with its load, and the time that a question is about: seconds since the epoch; (weekday, second of the day)."""

    cluster: Cluster
    soft: Soft
    now: float
    local: Local

    def later(self, at: float) -> Moment:
        """The same at another time."""
        second = self.local[1] + int(at - self.now)
        return self._replace(now=at, local=((self.local[0] + second // 86_400) % 7, second % 86_400))


@contextmanager
def trial(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, free to be changed inside of the ``with``; afterwards it is as before. Raises ValueError, see Rule."""
    if cluster.jobs.changed or cluster.arrays.changed or cluster.specs.changed:
        raise ValueError("a trial needs a cluster whose changes are committed")
    waiting = {number: (jobs, jobs.touched, jobs.copied()) for number, jobs in cluster.pending.items()}
    try:
        yield cluster
    finally:
        cluster.undo_changes()
        for number, (jobs, touched, before) in waiting.items():
            if cluster.pending[number] is not jobs or jobs.touched != touched:
                # jobs that come back are last: without this every later plan puts the class in order again
                cluster.pending[number] = before


@contextmanager
def alone(cluster: Cluster, key: int) -> Iterator[None]:
    """No other job waits; an element waits with the others of its array."""
    waiting, mine = cluster.pending, Pending()
    mine.add(row_key(cluster, key), True)
    cluster.pending = {cluster.get(key).spec: mine}
    try:
        yield
    finally:
        cluster.pending = waiting


def row_key(cluster: Cluster, key: int) -> int:
    """The key under which a job waits: an untouched element's is its array's."""
    row = cluster.get(key)
    return row.job if isinstance(row, Array) else row.key


def with_spec(cluster: Cluster, key: int, spec: Spec, now: float) -> None:
    """Give a waiting job or element another spec."""
    number = cluster.spec_numbers.get(spec)
    if number is None:
        number = cluster.next_spec
        apply(cluster, ev.SpecAdded(at=now, spec=number, value=spec))
    job = cluster.find_job(key)
    name = job.name if job is not None else f"{cluster.get(key).name}[{key >> 32}]"
    apply(cluster, ev.JobModified(at=now, key=key, spec=number, name=name))


def end_jobs(cluster: Cluster, keys: Iterable[int], at: float) -> None:
    """End running jobs as DONE at this time."""
    for key in keys:
        job = cluster.jobs.rows[key]
        for part in job.run.parts if job.run is not None else ():
            if part.state not in OVER:
                apply(cluster, ev.PartGone(at=at, key=key, attempt=job.attempt, host=part.host))
        apply(cluster, ev.JobFinished(at=at, key=key, state=JobState.DONE, end=End(at=at)))


def decay_rusage(cluster: Cluster, at: float) -> None:
    """What started jobs reserve decays, where it is due by this time."""
    for key in [key for key, due in cluster.use.decaying.items() if due <= at]:
        apply(cluster, ev.RusageDecayed(at=at, key=key, attempt=cluster.jobs.rows[key].attempt))


def start_jobs(cluster: Cluster, plan: Plan, at: float) -> None:
    """Dispatch the placements of a plan."""
    for placement in plan.placements:
        job = cluster.find_job(placement.key)
        attempt = 1 if job is None else job.attempt + 1
        limit = plan.run_limits.get(placement.key, 0)
        parts = placement.parts
        apply(cluster, ev.JobDispatched(at=at, key=placement.key, attempt=attempt, uid="?", parts=parts, run_limit=limit))


def plan_of(moment: Moment, cache: SchedulerCache | None = None) -> Plan:
    """The plan of a cycle of the real scheduler; ``cache``: of the cycle before it, where one follows another."""
    return schedule(*moment, cache or SchedulerCache())


def starts(moment: Moment, key: int, spec: Spec | None = None, cache: SchedulerCache | None = None) -> bool:
    """Whether a waiting job would start now, perhaps with another spec: one that would not if it waited alone does not.

    ``cache``: what several such questions about one moment know of its hosts.
    """
    cache = cache or SchedulerCache()
    with alone(moment.cluster, key):
        if not _starts(moment, key, spec, cache):
            return False
    return _starts(moment, key, spec, cache)


def _starts(moment: Moment, key: int, spec: Spec | None, cache: SchedulerCache) -> bool:
    with trial(moment.cluster):
        cache.forget_classes(moment.cluster.conf)  # those of a trial are undone, and their numbers given to others
        if spec is not None:
            with_spec(moment.cluster, key, spec, moment.now)
        return any(placement.key == key for placement in plan_of(moment, cache).placements)
