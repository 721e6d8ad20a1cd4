"""What keeps a whole class waiting before any host is looked at: queue, begin time, deadline, limits.

Rule: each check gives a pend reason, 0 for none; what time alone will change is noted as the cycle's time to wake.
"""

from __future__ import annotations

from config.model.queue import QueueConfig
from lavad.core.job.spec import Spec
from lavad.core.site.pend_reason import PendReason
from lavad.sched.needs.needs import Need
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.in_time import why_late


def why_not_queue(state: CycleState, queue: QueueConfig) -> int:
    """Why no job of a queue may start now."""
    found = state.queues.get(queue.name)
    if found is None:
        found = state.queues[queue.name] = _why_not_queue(state, queue)
    return found


def _why_not_queue(state: CycleState, queue: QueueConfig) -> int:
    if not state.cluster.queue_state(queue.name).active:
        return PendReason.QUE_INACT
    reason = 0
    for text in (queue.dispatch_window, queue.run_window):
        if not text:
            continue
        state.wake_at_change(text)
        if not state.cache.windows.is_open(text, state.local):
            reason = PendReason.QUE_WINDOW
    return reason


def why_not_class(state: CycleState, need: Need) -> int:
    """Why no job of a class may start now, whatever the hosts are."""
    spec = need.spec
    reason = why_not_queue(state, need.queue)
    if reason:
        return reason
    if spec.reservation:
        reason = _why_not_reservation(state, spec)
        if reason:
            return reason
    if spec.begin > state.now:
        state.wake(spec.begin)
        return PendReason.JOB_START_TIME
    return why_late(state, need)


def _why_not_reservation(state: CycleState, spec: Spec) -> int:
    return PendReason.HOST_NO_RSVID if state.advance is None else state.advance.reserved.why_not_job(spec)


def why_not_limits(state: CycleState, spec: Spec, jobs: bool = True) -> int:
    """Why the cluster-wide limits leave no room for a job of this spec; ``jobs`` as of ``Limits.left``."""
    left, reason = state.limits.left(spec, jobs)
    return reason if left < spec.slots else 0


def reads_load(need: Need) -> bool:
    """Whether a change of a host's load may make room for a class."""
    return need.depends_on_load or bool(need.per_host or need.per_slot or need.spec.roles) or not need.is_plain
