"""Guaranteed resource pools as limits on the hosts of a class: what is kept for service classes is no one else's to take.

Rule: the scheduler alone holds it, as queue shares, and only where pools are configured. What is lent (LOAN_POLICIES) is lent
after all classes had their turn; jobs that start on it preempt nobody (LSF).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from lavad.core.job.job import Part, Placed
from lavad.core.job.spec import Spec
from lavad.core.rules.guarantees.pools import PoolUse, Use, ready_hosts, use_of
from lavad.core.rules.ledger import UNLIMITED
from lavad.core.rules.limits import Limits, Room
from lavad.core.site.pend_reason import POOL
from lavad.sched.state.pool_columns import PoolColumns, PoolLeft
from lavad.sched.state.why_waiting import wait_for_no_host

if TYPE_CHECKING:
    from lavad.sched.state.cycle_state import CycleState


class PoolLimits(Limits):
    """The limits of a cycle, and what guaranteed pools leave to each class."""

    def __init__(self, state: CycleState) -> None:
        cache = state.cache
        super().__init__(cache.book, state.ledger)
        self._state = state
        self.classes = cache.pools.classes
        members = cache.pools.members(state.cluster, cache.state_seen)
        self._pools = [
            PoolUse(pool, state.ledger, {host: cache.pools.standing(state.ledger, at, host) for host in self._ready(members[at])})
            for at, pool in enumerate(state.cluster.conf.pools)
        ]
        self.waits: set[str] = set()
        """Queues whose jobs may borrow, and were held back while others had not had their turn."""
        self.lends_idle = False
        """All classes had their turn: what guarantees leave idle is lent."""
        self._taken = 0
        self._counted_only = 0
        self._renewed = 0
        self._demand: frozenset[str] | None = None
        self._retry_where_guarantees_have_changed()

    def _ready(self, hosts: tuple[str, ...]) -> list[str]:
        return ready_hosts(self._state.cluster, hosts, self._state.now)

    def _retry_where_guarantees_have_changed(self) -> None:
        """What a class was refused may be free for it now, though no host has more than before."""
        cache = self._state.cache
        seen = tuple(
            (
                pool.total,
                tuple(map(pool.unused, pool.guaranteed)),
                pool.shared_hosts(),
                self._is_asked_for(pool) if pool.pool.loan is not None and pool.pool.loan.close_on_demand else False,
            )
            for pool in self._pools
        )
        if seen != cache.pools.seen:
            cache.pools.seen = seen
            cache.changed.note_all()
            cache.retry_blocked = True
            self._state.retry_blocked = True  # why a new class waits, which counts, is known in the next cycle

    # -- what jobs use ----------------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Count what the ledger took since, and what has changed on hosts."""
        placed, counted = self.ledger.placed, self.ledger.counted
        while self._taken < len(placed):
            self._take(*placed[self._taken])
            self._taken += 1
        while self._counted_only < len(counted):
            self._take(*counted[self._counted_only])
            self._counted_only += 1
        renewed, rows = self._state.renewed, self._state.rows
        for at in set(renewed[self._renewed :]):
            for pool in self._pools:
                pool.renew(rows[at].name)
        self._renewed = len(renewed)

    def _take(self, spec: Spec, parts: Sequence[Placed | Part], sign: int = 1, held: bool = False) -> None:
        service = self.classes.of(spec)
        for part in parts:
            for pool in self._pools:
                pool.take(part.host, use_of(part, service, part.slots), sign, held)

    def hold(self, spec: Spec, parts: Sequence[Placed | Part], sign: int) -> None:
        super().shift(spec, parts, sign)
        self._catch_up()
        self._take(spec, parts, sign, held=True)

    def shift(self, spec: Spec, parts: Sequence[Placed | Part], sign: int, jobs: int = 1) -> None:
        super().shift(spec, parts, sign, jobs)
        self._catch_up()
        self._take(spec, parts, sign)

    def shift_slots(self, spec: Spec, parts: Sequence[Placed | Part], sign: int) -> None:
        super().shift_slots(spec, parts, sign)
        self._catch_up()
        service = self.classes.of(spec)
        for part in parts:
            for pool in self._pools:  # it keeps its memory, and its place on the host
                pool.take(part.host, use_of(part, service, part.slots), sign)
                pool.take(part.host, use_of(part, service, 0), -sign)

    # -- what they may have -----------------------------------------------------------------------------------------------

    def _of(self, spec: Spec, host: str) -> Iterator[tuple[int, PoolUse]]:
        """The pools of a host that bind jobs of this spec, each with its place."""
        for at, pool in enumerate(self._binding(spec)):
            if host in pool:
                yield at, pool

    def _spare(self, pool: PoolUse, spec: Spec) -> int:
        return pool.spare(self.classes.of(spec), self.lends_idle and self._may_borrow(pool, spec))

    def _may_borrow(self, pool: PoolUse, spec: Spec) -> bool:
        """LOAN_POLICIES: by its queue, by how long it says that it takes, and by who waits."""
        loan = pool.pool.loan
        if loan is None or not ("all" in loan.queues or spec.queue in loan.queues):
            return False
        if loan.duration is not None and (spec.expected is None or spec.expected > loan.duration):
            return False
        return not (loan.close_on_demand and self._is_asked_for(pool))

    def _is_asked_for(self, pool: PoolUse) -> bool:
        """Whether a job waits for hosts to which this pool guarantees what is not used."""
        if self._demand is None:
            cluster, others = self._state.cluster, wait_for_no_host(self._state.cache.why)
            specs = (cluster.specs.rows[number] for number in cluster.pending if number not in others)
            self._demand = frozenset(map(self.classes.of, specs))
        return any(pool.unused(name) and name in self._demand for name in pool.guaranteed)

    def has_host_limits(self, spec: Spec) -> bool:
        return True

    def host_left(self, spec: Spec, host: str) -> Room:
        room = super().host_left(spec, host) if self.book.has_host_limits(spec) else (UNLIMITED, 0)
        for at, pool in self._of(spec, host):
            spare = self._spare(pool, spec)
            left = pool.slots_left(host, self.classes.of(spec), spare)
            if left < room[0]:
                room = left, POOL + at
                self.note_wait(pool, spec)
        return room

    def note_wait(self, pool: PoolUse, spec: Spec) -> None:
        """A pool holds back jobs of this spec, which may borrow of it once all others had their turn, if ever."""
        if not self.lends_idle and self._may_borrow(pool, spec):
            self.waits.add(spec.queue)

    def amounts_left(self, spec: Spec, host: str) -> Iterator[tuple[str, float, int]]:
        yield from super().amounts_left(spec, host)
        for at, pool in self._of(spec, host):
            left = pool.mem_left(host, self._spare(pool, spec))
            if left is not None:
                self.note_wait(pool, spec)
                yield "mem", left, POOL + at

    def why_not(self, spec: Spec, parts: tuple[Placed, ...]) -> int:
        reason = super().why_not(spec, parts)
        if reason:
            return reason
        service = self.classes.of(spec)
        costs: dict[int, int] = {}
        for part in parts:
            for at, pool in self._of(spec, part.host):
                costs[at] = costs.get(at, 0) + pool.cost(part.host, use_of(part, service, part.slots))
        over = [at for at, cost in costs.items() if cost > self._spare(self._pools[at], spec)]
        for at in over:  # what any of them lends may be enough
            self.note_wait(self._pools[at], spec)
        return POOL + over[0] if over else 0

    def _binding(self, spec: Spec) -> list[PoolUse]:
        """The pools that bind jobs of this spec, in their order: all or none."""
        self._catch_up()
        queue = self.book.queues.get(spec.queue)
        return [] if queue is not None and queue.sla_guarantees_ignore else self._pools

    def rooms(self, spec: Spec) -> list[PoolRoom]:
        """What each pool leaves to the parts of one job together."""
        return [PoolRoom(pool, self.classes.of(spec), self._spare(pool, spec)) for pool in self._binding(spec)]

    def columns(self, spec: Spec) -> list[PoolLeft]:
        """What each pool that binds jobs of this spec leaves to them, over all hosts."""
        service = self.classes.of(spec)
        return [
            PoolLeft(POOL + at, self._columns[at], service, self._spare(pool, spec), partial(self.note_wait, pool, spec))
            for at, pool in enumerate(self._binding(spec))
        ]

    @cached_property
    def _columns(self) -> list[PoolColumns]:
        return [PoolColumns(pool, self._state.cache.by_name) for pool in self._pools]

    def guards(self, queue: str, spec: Spec) -> bool:
        """Whether jobs of a queue may not preempt a job, as it belongs to a service class (LSF)."""
        conf = self.book.queues.get(queue)
        return not (conf is not None and conf.sla_guarantees_ignore) and bool(self.classes.of(spec))


class PoolRoom:
    """What a pool still leaves to one job while hosts are chosen for it."""

    def __init__(self, pool: PoolUse, service: str, spare: int) -> None:
        self._pool = pool
        self._service = service
        self._spare = spare
        self._mine: dict[str, tuple[int, float]] = {}
        """Host to the slots and MB that the job has got there."""

    def on_host(self, host: str) -> bool:
        return host in self._pool

    def count(self, host: str, once: dict[str, float], each: dict[str, float]) -> int:
        """Slots that one more host may give. ``once``: reserved on a host whatever its slots; ``each``: for each slot."""
        slots, taken = self._mine.get(host, (0, 0.0))
        spare = self._spare + self._cost(host, slots, taken)
        found = max(0, self._pool.slots_left(host, self._service, spare) - slots)
        mem = self._pool.mem_left(host, spare)
        if mem is None:
            return found
        mem -= taken + once.get("mem", 0.0)
        if each.get("mem"):
            return min(found, max(0, int((mem + 1e-6) // each["mem"])))
        return found if mem > -1e-6 or not once.get("mem") else 0

    def take(self, host: str, slots: int, once: dict[str, float], each: dict[str, float]) -> None:
        """So many slots of a host are the job's."""
        before = self._mine.get(host, (0, 0.0))
        mine = self._mine[host] = before[0] + slots, before[1] + once.get("mem", 0.0) + slots * each.get("mem", 0.0)
        self._spare -= self._cost(host, *mine) - self._cost(host, *before)

    def _cost(self, host: str, slots: int, mem: float) -> int:
        use: Use = self._service, slots, mem
        return self._pool.cost(host, use) if slots else 0
