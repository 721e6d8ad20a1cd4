"""The fast path for full hosts: a class of one plain job that no host has room for is answered from the roomiest host.

Rule: this answers only where ``ClassPlacer`` would come to the same answer for the same reason; all else it leaves to it.
"""

from __future__ import annotations

from lavad.core.plan.volatile import WhyClass
from lavad.sched.cycle.explain import host_reasons, why_never
from lavad.sched.needs.arrays import np
from lavad.sched.needs.eligibility import Eligibility, FullHosts
from lavad.sched.needs.needs import Need
from lavad.sched.policy.slot_reservations import reserves
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.eligible import get_eligible
from lavad.sched.state.scheduler_cache import PendingClass

SPARE = 1e-6
"""What an amount may be above the room for it, as both are sums of fractions."""


def find_why_no_room(state: CycleState, need: Need, entry: PendingClass) -> WhyClass | None:
    """Why no host has room for the one plain job of a class; None: one may have, or it is no such class."""
    if state.free_may_grow or not (_is_one_job(state, need, entry) and _is_plain(state, need)):
        return None
    eligible = get_eligible(state, need)
    known = eligible.full_hosts
    changes = (state.cache.cycle, state.changes)
    if known.changes != changes:
        known = eligible.full_hosts = FullHosts(changes)
    amounts = need.per_host or need.per_slot
    name, amount = amounts[0] if amounts else ("", 0.0)
    most = known.most.get(name)
    if most is None:
        most = known.most[name] = _most_room(state, eligible, name)
    if most + SPARE >= amount:
        return None
    key = (name, name in need.queue_rusage, why_never(state, need, eligible))
    why = known.why.get(key)
    if why is None:
        why = known.why[key] = host_reasons(state, need, eligible)
    return why


def _is_one_job(state: CycleState, need: Need, entry: PendingClass) -> bool:
    """Whether exactly one job waits in a class, and nothing of its own keeps it."""
    pending, cluster = entry.pending, state.cluster
    if pending is None or len(pending) != 1 or need.queue.new_job_sched_delay:
        return False
    if entry.alone:
        return True
    (key,) = pending
    return not key >> 32 and key in cluster.jobs.rows and key not in cluster.held_back and key not in cluster.promised


def _is_plain(state: CycleState, need: Need) -> bool:
    """Whether slots and one amount on any host are all that counts for it."""
    amounts = need.per_host or need.per_slot
    if not need.is_simple or need.ways or (amounts and state.ledger.is_shared(amounts[0][0])):
        return False
    rules = state.cache.rules
    makes_room = rules.has_guarantees or need.spec.queue in rules.preempts or need.spec.reservation or reserves(need)
    return not makes_room and not state.limits.has_host_limits(need.spec)


def _most_room(state: CycleState, eligible: Eligibility, name: str) -> float:
    """The most that any host with a free slot has of a resource ("": 0.0); -1.0: no host has a free slot."""
    columns = state.columns
    if columns is None:
        rows = (row for row, code in zip(state.rows, eligible.codes, strict=True) if not code and row.free)
        return max((state.room(row, name) if name else 0.0 for row in rows), default=-1.0)
    free = eligible.ok & (columns.free > 0)
    if not free.any():
        return -1.0
    return float(np.max(columns.room(name, lambda at: state.room(state.rows[at], name))[free])) if name else 0.0
