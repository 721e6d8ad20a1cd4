"""Classes of one plain job that no host has room for: told in one step from what the roomiest host has.

Rule: this answers only where ``Visit`` would come to the same answer for the same reason; all else it leaves to it.
"""

from __future__ import annotations

import numpy as np

from lavad.core.plan.volatile import WhyClass
from lavad.sched.cycle.explain import host_reasons
from lavad.sched.needs.bases import Base, Crowd
from lavad.sched.needs.needs import Need
from lavad.sched.policy.slot_reservations import reserves
from lavad.sched.state.cycle_state import View
from lavad.sched.state.eligible import find_base
from lavad.sched.state.scheduler_cache import Known


def why_crowded(view: View, need: Need, known: Known) -> WhyClass | None:
    """Why no host has room for the one plain job of a class; None: one may have, or it is no such class."""
    if view.holds or not (_is_one_job(view, need, known) and _is_plain(view, need)):
        return None
    base = find_base(view, need)
    crowd = base.crowd
    changes = (view.memory.cycle, view.changes)
    if crowd.changes != changes:
        crowd = base.crowd = Crowd(changes)
    amounts = need.per_host or need.per_slot
    name, amount = amounts[0] if amounts else ("", 0.0)
    most = crowd.most.get(name)
    if most is None:
        most = crowd.most[name] = _most(view, base, name)
    if most + 1e-6 >= amount:
        return None
    key = (name, name in need.queue_rusage)
    why = crowd.why.get(key)
    if why is None:
        why = crowd.why[key] = host_reasons(view, need, base)
    return why


def _is_one_job(view: View, need: Need, known: Known) -> bool:
    """Whether one job is all that waits in a class, and nothing of its own keeps it."""
    pending = known.pending
    if pending is None or len(pending.keys) != 1 or need.queue.new_job_delay:
        return False
    (key,) = pending.keys
    job = None if key >> 32 else view.cluster.jobs.rows.get(key)
    return job is not None and not (job.not_before or job.promised or job.avoid)


def _is_plain(view: View, need: Need) -> bool:
    """Whether one slot, and of one resource some, on any host is all that is asked for."""
    spec = need.spec
    special = need.gpu or need.affinity or spec.exclusive or spec.roles or need.shared or need.accept_gap or need.first
    if special or not need.one_slot or not need.is_plain or len(need.per_host) + len(need.per_slot) > 1:
        return False
    amounts = need.per_host or need.per_slot
    if amounts and view.ledger.is_shared(amounts[0][0]):
        return False
    beyond = spec.queue in view.memory.rules.preempts or reserves(need)
    return not beyond and not view.limits.has_host_limits(spec)


def _most(view: View, base: Base, name: str) -> float:
    """The most that any host with a free slot has of a resource; of "" any amount; -1: no host has a free slot."""
    columns = view.columns
    if columns is None:
        rows = (row for row, code in zip(view.rows, base.codes, strict=True) if not code and row.free)
        return max((view.room(row, name) if name else 0.0 for row in rows), default=-1.0)
    free = base.ok & (columns.free > 0)
    if not free.any():
        return -1.0
    return float(np.max(columns.room(name, lambda at: view.room(view.rows[at], name))[free])) if name else 0.0
