"""Blocked classes that need not be tried again, though some hosts have more room: it is of no use to them.

Rule: a class is passed over only where no job of it could start. Where some host that it may use has changed, its reasons may be
others by now; to learn these it is tried again, in turn with the others, so many in a cycle (LOOKS).
"""

from __future__ import annotations

from collections.abc import Iterator

from lavad.sched.cycle.plan_builder import PlanBuilder
from lavad.sched.hosts.candidates import may_fit
from lavad.sched.hosts.gates import reads_load
from lavad.sched.hosts.role_rooms import RoleRooms, needs_of
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.policy.slot_reservations import reserves
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.eligible import get_eligible
from lavad.sched.state.scheduler_cache import PendingClass

LOOKS = 20_000
"""Hosts that are asked in one cycle for new reasons of classes that cannot start."""
NOT_PLAIN = 10
"""How many hosts each of them counts for where a class is not plain or has roles, or there are pools: it takes longer."""


class StillBlocked:
    """Passes over such classes in one cycle."""

    def __init__(self, builder: PlanBuilder) -> None:
        self._builder = builder
        self._looks = LOOKS
        cache = builder.state.cache
        cache.turns.begin(cache.cycle)

    def passes(self, need: Need, entry: PendingClass) -> bool:
        """Whether a class that hosts blocked in an earlier cycle (``entry.blocked``) is so in this one; it is noted then."""
        cache = self._builder.state.cache
        if entry.blocked >= 0 and self._is_blocked(need, entry):
            entry.blocked = cache.cycle
            return True
        entry.tried, entry.stale = cache.cycle, False
        return False

    def _is_blocked(self, need: Need, entry: PendingClass) -> bool:
        state = self._builder.state
        cache = state.cache
        as_before = self._may_use_the_same(need, entry)
        if as_before and self._has_no_host(need, entry):
            return True
        if _may_take_from_others(self._builder, need):
            return False
        same = as_before and _hosts_alone_count(self._builder, need) and not self._have_changed(need, entry)
        if same and not entry.stale:
            return True
        if state.columns is None or state.free_may_grow:
            return False
        is_due = entry.tried <= cache.turns.due
        if is_due and self._looks > 0:
            is_plain = need.is_plain and not need.spec.roles and state.pools is None
            self._looks -= len(state.rows) * (1 if is_plain else NOT_PLAIN)
            return False
        if not same and any(self._may_fit(way) for way in need.ways or (need,)):
            return False
        entry.stale = True
        cache.turns.left_over |= is_due
        return True

    def _has_no_host(self, need: Need, entry: PendingClass) -> bool:
        """Whether it may use no host, or none that could ever hold it: then nothing that hosts give back is of use."""
        if need.spec.reservation:
            return False
        found = [one.any_ok for one in self._eligible(need)]
        return entry.never or not (all(found) if need.spec.roles else any(found))

    def _have_changed(self, need: Need, entry: PendingClass) -> bool:
        """Whether any of the hosts that a class may use may have changed since it was blocked."""
        rows = self._builder.state.cache.changed.rows_since(entry.blocked, reads_load(need))
        return rows is None or any(one.has_any_of(rows) for one in self._eligible(need))

    def _may_use_the_same(self, need: Need, entry: PendingClass) -> bool:
        """Whether the class may use the hosts that it might when it was blocked, and no others."""
        state = self._builder.state
        return all(get_eligible(state, one).since <= entry.blocked for one in _with_parts(state, need))

    def _eligible(self, need: Need) -> list[Eligibility]:
        """The hosts that a class, a term of its requirement, or each of its roles, may use."""
        state = self._builder.state
        if need.spec.roles:
            return [get_eligible(state, one) for one in needs_of(state, need)]
        return [get_eligible(state, one) for way in need.ways or (need,) for one in way.terms or (way,)]

    def _may_fit(self, need: Need) -> bool:
        """Whether a job may fit by this alternative of the requirement."""
        state = self._builder.state
        assert state.columns is not None
        if need.spec.roles:
            return RoleRooms(state, need).lacking() is None
        return all(may_fit(state, state.columns, one, get_eligible(state, one)) for one in need.terms or (need,))


def _with_parts(state: CycleState, need: Need) -> Iterator[Need]:
    """A need with the alternatives of its requirement, the terms of those that are compound, and its roles."""
    yield need
    if need.spec.roles:
        yield from needs_of(state, need)
    yield from need.ways
    for way in need.ways or (need,):
        yield from way.terms


def _may_take_from_others(builder: PlanBuilder, need: Need) -> bool:
    """Whether a class may start, or reserve, on more than the free slots of the hosts that it may use."""
    others = need.queue.interruptible_backfill or reserves(need) or need.spec.reservation
    return bool(others) or builder.may_preempt(need)


def _hosts_alone_count(builder: PlanBuilder, need: Need) -> bool:
    """Whether nothing but a change of the hosts that it may use can make room for a class, or say other reasons."""
    state, spec = builder.state, need.spec
    if builder.queue_shares is not None or state.pools is not None:
        return False
    book = state.limits.book
    if need.shape.cu is not None or need.shared or book.has_host_limits(spec):
        return False
    if any(at in book.over_hosts for at, *_ in book.applying(spec)):
        return False
    asked = (name for one in _with_parts(state, need) for name, _ in (*one.per_slot, *one.per_host, *one.shared))
    return not any(map(state.ledger.is_shared, asked))
