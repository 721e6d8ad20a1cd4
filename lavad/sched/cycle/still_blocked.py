"""Blocked classes that need not be tried again, though some hosts have more room: it is of no use to them.

Rule: a class is passed over only where no job of it could start. Where some host that it may use has changed, its reasons may be
others by now; for these it is tried again, in turn with the others, as far as there is time for it in a cycle.
"""

from __future__ import annotations

from collections.abc import Iterator

from lavad.sched.cycle.plan_builder import PlanBuilder
from lavad.sched.hosts.candidates import may_fit
from lavad.sched.hosts.gates import reads_load
from lavad.sched.needs.needs import Need
from lavad.sched.policy.slot_reservations import reserves
from lavad.sched.state.eligible import get_eligible
from lavad.sched.state.scheduler_cache import PendingClass

LOOKS = 20_000
"""Hosts that are asked in one cycle for new reasons of classes that cannot start."""
DEAR = 10
"""How many times as much it takes to ask them for a class that is not plain."""


class StillBlocked:
    """Passes over such classes in one cycle."""

    def __init__(self, builder: PlanBuilder) -> None:
        self._builder = builder
        self._looks = LOOKS
        cache = builder.state.cache
        if not cache.turns.left_over:
            cache.turns.due = cache.cycle - 1
        cache.turns.left_over = False

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
        if not _hosts_alone_count(self._builder, need):
            return False
        same = self._has_same_hosts(need, entry)
        if same and not entry.stale:
            return True
        if state.columns is None or state.free_may_grow:
            return False
        is_due = entry.tried <= cache.turns.due
        if is_due and self._looks > 0:
            self._looks -= len(state.rows) * (1 if need.is_plain else DEAR)
            return False
        if not same and all(self._may_fit(way) for way in need.ways or (need,)):
            return False
        entry.stale = True
        cache.turns.left_over |= is_due
        return True

    def _has_same_hosts(self, need: Need, entry: PendingClass) -> bool:
        """Whether none of the hosts that a class may use has changed since it was blocked."""
        state = self._builder.state
        rows = state.cache.changed.rows_since(entry.blocked, reads_load(need))
        if rows is None:
            return False
        leaves = [one for way in need.ways or (need,) for one in way.terms or (way,)]
        if not entry.never and any(get_eligible(state, one).ok[rows].any() for one in leaves):
            return False
        return all(get_eligible(state, one).since <= entry.blocked for one in _with_parts(need))

    def _may_fit(self, need: Need) -> bool:
        """Whether a job may fit by this alternative of the requirement."""
        state = self._builder.state
        assert state.columns is not None
        return all(may_fit(state, state.columns, one, get_eligible(state, one)) for one in need.terms or (need,))


def _with_parts(need: Need) -> Iterator[Need]:
    """A need with the alternatives of its requirement, and the terms of those that are compound."""
    yield need
    yield from need.ways
    for way in need.ways or (need,):
        yield from way.terms


def _hosts_alone_count(builder: PlanBuilder, need: Need) -> bool:
    """Whether nothing but a change of the hosts that it may use can make room for a class, or say other reasons."""
    state, spec = builder.state, need.spec
    if builder.queue_shares is not None or state.pools is not None or need.queue.interruptible_backfill or reserves(need):
        return False
    if spec.roles or spec.reservation or need.shape.cu is not None or need.shared or builder.may_preempt(need):
        return False
    book = state.limits.book
    if book.has_host_limits(spec) or any(at in book.over_hosts for at, *_ in book.applying(spec)):
        return False
    asked = (name for one in _with_parts(need) for name, _ in (*one.per_slot, *one.per_host, *one.shared))
    return not any(map(state.ledger.is_shared, asked))
