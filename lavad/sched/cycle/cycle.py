"""One scheduling cycle: ``schedule(cluster, soft, now, local, cache) -> Plan``. Pure: it changes but its own memory.

Classes of equal jobs are taken in line; the first job that does not fit blocks its class, and the next class may pass
(LSF without reservations). A blocked class is looked at again when hosts have more, or limits, time or jobs changed.
"""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.windows import Local
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import Soft
from lavad.core.site.pend_reason import PendReason
from lavad.sched.cycle.draft import Draft
from lavad.sched.cycle.full_hosts import why_no_host_has_room
from lavad.sched.cycle.place_class import ClassPlacer
from lavad.sched.hosts.gates import reads_load, why_not_class, why_not_limits
from lavad.sched.line.line import renew_line
from lavad.sched.line.queue_iterator import QueueIterator
from lavad.sched.policy.incremental_alloc import takes_parts
from lavad.sched.policy.queue_shares import QueueShares
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.scheduler_cache import SchedulerCache


def schedule(cluster: Cluster, soft: Soft, now: float, local: Local, cache: SchedulerCache) -> Plan:
    """What may start now, and why the rest waits. ``local`` is (weekday with Sunday 0, second of the day).

    ``Plan.why`` has the classes of which something new is known, ``Plan.why_job`` all single jobs.
    """
    state = CycleState(cluster, soft, now, local, cache)
    idle = cache.find_idle_wake_time(cluster, now, local)
    if idle is not None:
        return Plan(cluster.version, why_job=dict(cache.why_job), wake_at=idle)
    renew_line(cluster, cache)
    cycle = _Cycle(state)
    cycle.run()
    draft = cycle.draft
    cache.why.update(draft.why)
    plan = Plan(cluster.version, tuple(draft.placements), draft.why, dict(cache.why_job), state.wake_at)
    plan = draft.beyond.end(plan)
    cache.note_idle(plan, now, local)
    return plan


class _Cycle:
    """The state of one run down the line."""

    def __init__(self, state: CycleState) -> None:
        self.state = state
        self.draft = Draft(state)

    def run(self) -> None:
        """Visit the classes in line; one that may go on stands in line again with its next job."""
        queue_shares = self.draft.beyond.queue_shares
        classes_in_turn: QueueIterator[ClassPlacer] = QueueIterator(self.state)
        placers: dict[int, ClassPlacer] = {}
        while self.draft.left > 0 and (turn := classes_in_turn.pop()) is not None:
            number, placer = turn
            placer = placer or self._begin(number)
            if placer is None:
                continue
            if queue_shares is not None:
                placers[number] = placer
            place = placer.go(classes_in_turn.bound())
            if place is not None and placer.next_key is not None:
                classes_in_turn.push(place, number, placer.next_key, placer)
        if queue_shares is not None and queue_shares.waits:
            self._lend(queue_shares, placers)

    def _lend(self, queue_shares: QueueShares, placers: dict[int, ClassPlacer]) -> None:
        """Visit those again that waited for queues with less than they deserve: what these could not use is lent."""
        queue_shares.lends_idle = True
        cache = self.state.cache
        for _, number in sorted(place for line in (cache.line, *cache.streams.values()) for place in line):
            need = cache.need(self.state.cluster, number)
            if self.draft.left <= 0 or not self.state.free:
                break
            if need is not None and need.spec.queue in queue_shares.waits:
                placer = placers.get(number) or self._begin(number)
                if placer is not None and placer.next_key is not None:
                    self.draft.why.pop(number, None)
                    placer.go(None)

    def _begin(self, number: int) -> ClassPlacer | None:
        """Open a class, unless it is blocked by what is still the same or by something that is about no host."""
        state = self.state
        cache = state.cache
        entry = cache.classes[number]
        if not state.free and entry.blocked >= 0 and not (cache.retry_blocked or state.retry_blocked):
            return None
        need = cache.need(state.cluster, number)
        if need is None:
            self.draft.set_reason(number, PendReason.QUE_GONE)
            return None
        self.draft.beyond.before(need)
        parts = takes_parts(need)
        reason = why_not_class(state, need) or (0 if parts else why_not_limits(state, need.spec))
        if reason:
            entry.blocked = -1
            cache.set_job_reasons(entry, {})
            self.draft.set_reason(number, reason)
            return None
        if parts:
            state.retry_blocked = True
            self.draft.beyond.incremental.needs.append(need)
            self.draft.set_reason(number, PendReason.SLOTS_ONE_BY_ONE)
            return None
        if entry.blocked >= cache.improved and (entry.blocked >= cache.load_changed or not reads_load(need)):
            return None
        crowded = why_no_host_has_room(state, need, entry)
        if crowded is None:
            return ClassPlacer(self.draft, need, entry)
        entry.blocked = cache.cycle
        cache.set_job_reasons(entry, {})
        old = cache.why.get(number)
        if old is None or old.reasons != crowded.reasons:
            self.draft.why[number] = crowded
        return None
