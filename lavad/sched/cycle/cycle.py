"""One scheduling cycle: ``schedule(cluster, soft, now, local, memory) -> Plan``. Pure: it changes but its own memory.

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
from lavad.sched.cycle.full_hosts import why_crowded
from lavad.sched.cycle.place_class import Visit
from lavad.sched.hosts.gates import reads_load, why_not_class, why_not_limits
from lavad.sched.line.line import renew_line
from lavad.sched.line.queue_iterator import Walk
from lavad.sched.policy.incremental_alloc import takes_parts
from lavad.sched.policy.queue_shares import Owners
from lavad.sched.state.cycle_state import View
from lavad.sched.state.scheduler_cache import Memory


def schedule(cluster: Cluster, soft: Soft, now: float, local: Local, memory: Memory) -> Plan:
    """What may start now, and why the rest waits. ``local`` is (weekday with Sunday 0, second of the day).

    ``Plan.why`` has the classes of which something new is known, ``Plan.why_job`` all single jobs.
    """
    view = View(cluster, soft, now, local, memory)
    quiet = memory.find_quiet(cluster, now, local)
    if quiet is not None:
        return Plan(cluster.version, why_job=dict(memory.why_job), wake_at=quiet)
    renew_line(cluster, memory)
    cycle = _Cycle(view)
    cycle.run()
    draft = cycle.draft
    memory.why.update(draft.why)
    plan = Plan(cluster.version, tuple(draft.placements), draft.why, dict(memory.why_job), view.wake_at)
    plan = draft.beyond.end(plan)
    memory.note_quiet(plan, now, local)
    return plan


class _Cycle:
    """The state of one run down the line."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.draft = Draft(view)

    def run(self) -> None:
        """Visit the classes in line; one that may go on stands in line again with its next job."""
        owners = self.draft.beyond.owners
        walk: Walk[Visit] = Walk(self.view)
        visits: dict[int, Visit] = {}
        while self.draft.left > 0 and (turn := walk.pop()) is not None:
            number, visit = turn
            visit = visit or self._begin(number)
            if visit is None:
                continue
            if owners is not None:
                visits[number] = visit
            place = visit.go(walk.bound())
            if place is not None and visit.next_key is not None:
                walk.push(place, number, visit.next_key, visit)
        if owners is not None and owners.waits:
            self._lend(owners, visits)

    def _lend(self, owners: Owners, visits: dict[int, Visit]) -> None:
        """Visit those again that waited for queues with less than they deserve: what these could not use is lent."""
        owners.lends = True
        memory = self.view.memory
        for _, number in sorted(place for line in (memory.line, *memory.streams.values()) for place in line):
            need = memory.need(self.view.cluster, number)
            if self.draft.left <= 0 or not self.view.free:
                break
            if need is not None and need.spec.queue in owners.waits:
                visit = visits.get(number) or self._begin(number)
                if visit is not None and visit.next_key is not None:
                    self.draft.why.pop(number, None)
                    visit.go(None)

    def _begin(self, number: int) -> Visit | None:
        """Open a class, unless it is blocked by what is still the same or by something that is about no host."""
        view = self.view
        memory = view.memory
        known = memory.known[number]
        if not view.free and known.blocked >= 0 and not (memory.restless or view.restless):
            return None
        need = memory.need(view.cluster, number)
        if need is None:
            self.draft.say(number, PendReason.QUE_GONE)
            return None
        self.draft.beyond.before(need)
        parts = takes_parts(need)
        reason = why_not_class(view, need) or (0 if parts else why_not_limits(view, need.spec))
        if reason:
            known.blocked = -1
            memory.say_jobs(known, {})
            self.draft.say(number, reason)
            return None
        if parts:
            view.restless = True
            self.draft.beyond.piecemeal.needs.append(need)
            self.draft.say(number, PendReason.SLOTS_ONE_BY_ONE)
            return None
        if known.blocked >= memory.improved and (known.blocked >= memory.load_changed or not reads_load(need)):
            return None
        crowded = why_crowded(view, need, known)
        if crowded is None:
            return Visit(self.draft, need, known)
        known.blocked = memory.cycle
        memory.say_jobs(known, {})
        old = memory.why.get(number)
        if old is None or old.reasons != crowded.reasons:
            self.draft.why[number] = crowded
        return None
