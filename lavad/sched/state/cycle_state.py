"""What one cycle works on: the cluster, load and usage, the time, and this cycle's ledger, limits, host rows and reservations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Placed
from lavad.core.job.spec import Spec
from lavad.core.lang.windows import Local
from lavad.core.plan.volatile import Soft
from lavad.core.rules.ledger import Ledger
from lavad.core.rules.limits import Limits
from lavad.sched.needs.arrays import Floats, Ints, np
from lavad.sched.needs.columns import Columns
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.rows import Row
from lavad.sched.needs.sorted_rows import Packings
from lavad.sched.order.fairshare import Shares
from lavad.sched.state.advance_reservations import AdvanceReservations
from lavad.sched.state.pool_limits import PoolLimits
from lavad.sched.state.scheduler_cache import SchedulerCache
from lavad.sched.state.spent_hosts import SpentHosts


class CycleState:
    """The state of one cycle. ``columns`` is None for few hosts."""

    def __init__(  # noqa: PLR0915 - fields only
        self, cluster: Cluster, soft: Soft, now: float, local: Local, cache: SchedulerCache
    ) -> None:
        self.cluster = cluster
        self.soft = soft
        self.now = now
        self.local = local
        self.cache = cache
        self.ledger = Ledger(cluster)
        cache.renew(self.ledger, soft, local)
        self.run_times = cache.run_times
        self.clock = cache.windows.clock(local)
        self.rows: list[Row] = cache.rows
        self.columns: Columns | None = cache.columns
        self.shares = Shares(cache.ranking.policies, cluster, soft, now)
        self.queues: dict[str, int] = {}
        """Queue to why it dispatches nothing now; 0: it does."""
        self.rankings: dict[tuple[object, ...], list[int]] = {}
        self.ranked_arrays: dict[tuple[object, ...], Ints] = {}
        """The same where the cycle works with columns."""
        self.packings = Packings()
        self.rank_starts: dict[tuple[object, ...], int] = {}
        """Ranking to the place of its first host that is not full."""
        self.free = _free(self.rows, cache.codes) if self.columns is None else self.columns.sum_free()
        """Free slots of all hosts that take jobs."""
        self.changes = 0
        """Grows with every row that is renewed in this cycle."""
        self.wake_at = 0.0
        self.renewed: list[int] = []
        """Numbers of the rows that were brought up to the ledger, in that order."""
        self.preempted: set[int] = set()
        """Running jobs that this cycle preempts or suspends."""
        self.free_may_grow = False
        """Whether hosts may have more free slots for one class than for the one before it, as slots are reserved."""
        self.in_time: dict[tuple[object, ...], Eligibility] = {}
        """Class of jobs (as far as it counts) to the hosts on which these would not end too late (``state.in_time``)."""
        self.retry_blocked = False
        """Whether the next cycle must look at blocked classes again."""
        has_advance = bool(cluster.reservations.rows or cache.reservations)
        self.advance = AdvanceReservations(self.ledger, cache, now) if has_advance else None
        """None: there are none."""
        self.pools = PoolLimits(self) if cluster.conf.pools else None
        """What guaranteed resource pools leave to each class, where there are any."""
        self.limits = self.pools or Limits(cache.book, self.ledger)
        self.spent = SpentHosts(self)
        self._instances: dict[str, Ints] = {}
        self._starts: dict[str, float] = {}
        self._wake_at_changes()

    def _wake_at_changes(self) -> None:
        for edge in self.advance.edges[:1] if self.advance is not None else ():
            self.wake(edge)
        goals = self.cache.goals.windows if self.cache.goals is not None else ()
        for text in {text for texts in self.cache.host_windows.values() for text in texts}.union(goals):
            self.wake_at_change(text)

    def wake(self, at: float) -> None:
        """Wake the scheduler at this time (seconds since the epoch): time alone may change something then."""
        if at > self.now and (not self.wake_at or at < self.wake_at):
            self.wake_at = at

    def wake_at_change(self, text: str) -> None:
        """Wake the scheduler when this time window opens or closes."""
        seconds = self.cache.windows.next_change(text, self.local)
        if seconds is not None:
            self.wake(self.now + seconds)

    @contextmanager
    def slots_coming_back(self) -> Iterator[None]:
        """Meanwhile slots are given back on the ledger, so that a host that was full may have some again."""
        before, self.free_may_grow = self.free_may_grow, True
        try:
            yield
        finally:
            self.free_may_grow = before

    def start_job(self, key: int, spec: Spec, parts: tuple[Placed, ...], alone: tuple[str, ...] = ()) -> None:
        """Start a job of ``spec`` on these hosts; ``alone``: hosts without a part of it that no other job may use."""
        self.ledger.take(key, spec, parts, alone)
        for name in alone:
            self.renew(self.cache.by_name[name])
        self.shares.charge(spec, parts)
        for part in parts:
            self._starts[part.host] = self.now
            if part.gpus:
                end = self.end_from(self.now, spec, parts)
                self.packings.started[part.host] = max(end, self.packings.started.get(part.host, 0.0))
            self.renew(self.cache.by_name[part.host])

    def end_from(self, start: float, spec: Spec, parts: Iterable[Placed]) -> float:
        """When a job that starts then on these hosts is over at the latest, by its estimate or run limit; inf: unknown."""
        seconds = spec.expected
        return inf if seconds is None else start + self.run_times.longest(spec, seconds, (part.host for part in parts))

    def renew(self, row: Row) -> None:
        """Bring a row up to the ledger."""
        before = row.free
        row.refresh(self.ledger)
        if not self.cache.codes[row.index]:
            self.free += row.free - before
        self.changes += 1
        self.renewed.append(row.index)
        if self.columns is not None:
            self.columns.refresh(row)
            self.spent.forget(row)

    def free_slots(self, columns: Columns) -> Ints:
        """Free slots of all hosts, less what the class in turn must leave to advance reservations. Shape: (hosts,)."""
        return columns.free if self.advance is None else self.advance.column(columns.free)

    def last_start(self, row: Row) -> float:
        """When the last job was started on a host, of those still there; 0.0: there is none."""
        found = self._starts.get(row.name)
        if found is None:
            use = self.cluster.use.hosts.get(row.name)
            runs = [self.cluster.jobs.rows[key].run for key in use.jobs] if use is not None else []
            found = max((run.dispatched for run in runs if run is not None), default=0.0)
            self._starts[row.name] = found
        return found

    def shared_rooms(self, name: str) -> Floats:
        """How much of a resource that hosts share a new job may reserve on each host. Shape: (hosts,)."""
        numbers = self._instances.get(name)
        if numbers is None:
            numbers = self._instances[name] = np.array([self.ledger.instance(row.name, name) for row in self.rows])
        left = [self.ledger.shared_room(name, at) for at in range(-1, int(numbers.max(initial=-1)) + 1)]
        return np.array(left)[numbers + 1]

    def room(self, row: Row, name: str) -> float:
        """How much of a resource a new job may reserve on a host."""
        return row.room(self.ledger, self.soft, name)


def _free(rows: Sequence[Row], codes: Sequence[int]) -> int:
    return sum(row.free for row, code in zip(rows, codes, strict=True) if not code)
