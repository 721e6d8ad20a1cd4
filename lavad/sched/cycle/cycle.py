"""One scheduling cycle: ``schedule(cluster, soft, now, local, cache) -> Plan``. Pure: it changes nothing but its own cache.

The table of contents of the scheduler, in the order in which a cycle goes:

1. ``state.CycleState``: hosts, limits and fair share are brought up to the cluster. Where nothing has changed since a
   cycle that decided nothing, it ends here.
2. ``line.renew_line``: waiting classes of equal jobs get their places: queue priority, fair share, user priority, btop,
   submission.
3. ``cycle.plan_builder``: jobs outside their run windows or on overloaded hosts are suspended (``policy.suspend``).
4. Each class in turn (``line.queue_iterator``):
   ``hosts.gates``: what keeps the whole class waiting: queue, begin time, deadline, limits.
   ``cycle.full_hosts``: a fast path for classes that no host has room for; ``cycle.same_kind``: for those like one before.
   ``cycle.place_class``: its jobs are placed one after the other (``hosts.candidates``, ``hosts.fit``, ``hosts.choose``);
   for the first that does not fit, others are preempted (``policy.preempt``) or slots reserved
   (``policy.slot_reservations``); else ``cycle.explain`` says why it waits.
5. ``policy.queue_shares``, ``state.pool_limits``: what queues cannot use of what they deserve, and service classes of what
   is guaranteed to them, is lent to others.
6. ``PlanBuilder.finish``: suspended jobs resume, resizable jobs grow (``policy.elastic``), jobs of GANG=N queues get their
   slots one by one (``policy.incremental_alloc``).

Rule: the first job that does not fit blocks its class, and the next class may pass it (LSF without reservations). A blocked
class is looked at again when hosts that it may use have more (``cycle.still_blocked``), or limits, time or its jobs have
changed.
"""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.windows import Local
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import Soft
from lavad.core.site.pend_reason import PendReason
from lavad.sched.cycle.full_hosts import find_why_no_room
from lavad.sched.cycle.place_class import ClassPlacer
from lavad.sched.cycle.plan_builder import PlanBuilder
from lavad.sched.cycle.same_kind import SameKind
from lavad.sched.cycle.still_blocked import StillBlocked
from lavad.sched.hosts.gates import reads_load, why_not_class, why_not_limits
from lavad.sched.line.line import renew_line
from lavad.sched.line.queue_iterator import QueueIterator
from lavad.sched.needs.needs import Need
from lavad.sched.policy.incremental_alloc import takes_parts
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.scheduler_cache import PendingClass, SchedulerCache


def schedule(cluster: Cluster, soft: Soft, now: float, local: Local, cache: SchedulerCache) -> Plan:
    """What may start now, and why the rest waits.

    ``now`` is in seconds since the epoch, ``local`` is (weekday with Sunday 0, second of the day). ``Plan.why`` has the
    classes of which something new is known, ``Plan.why_job`` all single jobs with a reason of their own.
    """
    state = CycleState(cluster, soft, now, local, cache)
    wake_at = cache.find_idle_wake_time(cluster, now, local)
    if wake_at is not None:
        return Plan(cluster.version, why_job=cache.job_reasons(cluster), wake_at=wake_at)
    renew_line(cluster, cache)
    cycle = _Cycle(state)
    cycle.run()
    cache.why.update(cycle.builder.why)
    plan = cycle.builder.finish()
    cache.note_idle(plan, now, local)
    return plan


class _Cycle:
    """One run down the line of waiting classes."""

    def __init__(self, state: CycleState) -> None:
        self.state = state
        self.builder = PlanBuilder(state)
        self.same_kind = SameKind(self.builder)
        self.still_blocked = StillBlocked(self.builder)

    def run(self) -> None:
        """Place the classes in turn; one that has jobs left after its turn stands in line again with its next job."""
        lenders = [one for one in (self.builder.queue_shares, self.state.pools) if one is not None]
        line: QueueIterator[ClassPlacer] = QueueIterator(self.state)
        placers: dict[int, ClassPlacer] = {}
        while self.builder.left > 0 and (turn := line.pop()) is not None:
            number, placer = turn
            placer = placer or self._find_placer(number)
            if placer is None:
                continue
            if lenders:
                placers[number] = placer
            place = placer.place_jobs(line.bound())
            self.same_kind.forget()
            if place is not None and placer.next_key is not None:
                line.push(place, number, placer.next_key, placer)
        waits = {queue for one in lenders for queue in one.waits}
        if waits:
            for one in lenders:
                one.lends_idle = True
            self._lend(waits, placers)

    def _lend(self, queues: set[str], placers: dict[int, ClassPlacer]) -> None:
        """Place again the classes of queues that waited for the sake of others, on what these could not use."""
        self.same_kind.forget()
        cache = self.state.cache
        for _, number in sorted(place for line in (cache.line, *cache.streams.values()) for place in line):
            need = cache.need(self.state.cluster, number)
            if self.builder.left <= 0 or not self.state.free:
                break
            if need is not None and need.spec.queue in queues:
                placer = placers.get(number) or self._find_placer(number)
                if placer is not None and placer.next_key is not None:
                    placer.look_again()
                    self.builder.why.pop(number, None)
                    placer.place_jobs(None)
                    self.same_kind.forget()

    def _find_placer(self, number: int) -> ClassPlacer | None:
        """Begin a class; None where it waits for a reason that is no host's, or is blocked and nothing has changed."""
        state, cache = self.state, self.state.cache
        entry = cache.classes[number]
        if not state.free and not (cache.retry_blocked or state.retry_blocked) and cache.is_passed_over(entry):
            return None
        if self.builder.goals is not None and self.builder.goals.is_full(number):
            self._wait(number, entry, PendReason.SLA_OPTIMUM)
            return None
        if self.same_kind.waits(number, entry):
            return None
        need = cache.need(state.cluster, number)
        if need is None:
            self.builder.set_reason(number, PendReason.QUE_GONE)
            return None
        self.builder.begin_class(need)
        if self._is_kept(need, entry):
            return None
        unchanged = entry.blocked >= cache.changed.improved and (
            entry.blocked >= cache.changed.load_changed or not reads_load(need)
        )
        if unchanged and not entry.stale:
            return None
        if self.still_blocked.passes(need, entry):
            return None
        why = find_why_no_room(state, need, entry)
        if why is None:
            return ClassPlacer(self.builder, need, entry)
        self.builder.block(number, entry, why)
        self.same_kind.note_full(entry, need, why)
        return None

    def _is_kept(self, need: Need, entry: PendingClass) -> bool:
        """Whether the class waits whatever the hosts are, or gets its slots one by one at the end of the cycle."""
        by_slot = takes_parts(need)
        reason = why_not_class(self.state, need) or (0 if by_slot else self._why_not_limits(need))
        if reason:
            self._wait(need.number, entry, reason)
            self.same_kind.note_reason(entry.kind, reason)
        elif by_slot:
            self.state.retry_blocked = True
            self.builder.incremental.needs.append(need)
            self.builder.set_reason(need.number, PendReason.SLOTS_ONE_BY_ONE)
        return bool(reason) or by_slot

    def _wait(self, number: int, entry: PendingClass, reason: int) -> None:
        """A class waits for a reason that is about no host."""
        entry.blocked = -1
        self.state.cache.forget_job_reasons(entry)
        self.builder.set_reason(number, reason)

    def _why_not_limits(self, need: Need) -> int:
        """As ``why_not_limits``; a limit on jobs alone does not keep a class that may preempt others (LSF)."""
        reason = why_not_limits(self.state, need.spec)
        if reason and not why_not_limits(self.state, need.spec, jobs=False) and self.builder.may_preempt(need):
            return 0
        return reason
