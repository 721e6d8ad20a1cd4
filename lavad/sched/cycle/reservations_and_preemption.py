"""What a cycle does beyond giving out what is free: stops and resumes, preemption, reservations.

Rule: clusters that use none of it pay nothing; where something is held, stopped or preempted, all that is blocked is
looked at again in the next cycle (``CycleState.retry_blocked``).
"""

from __future__ import annotations

from lavad.core.decide.placement.preempt import holders
from lavad.core.job.job import Array, Job
from lavad.core.plan.plan import Placement, Plan
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.policy.elastic import ElasticGrowth
from lavad.sched.policy.incremental_alloc import IncrementalAllocation, is_whole
from lavad.sched.policy.preempt import Preemptor
from lavad.sched.policy.queue_shares import QueueShares
from lavad.sched.policy.slot_reservations import SlotReservations, reserves
from lavad.sched.policy.suspend import SuspendResume
from lavad.sched.state.cycle_state import CycleState

MOST = 200
"""Jobs preempted in one cycle."""


class Beyond:
    """One cycle's."""

    def __init__(self, state: CycleState) -> None:
        self.state = state
        self.queue_shares = QueueShares(state) if state.cache.rules.has_guarantees else None
        """What queues deserve, where they own anything."""
        if self.queue_shares is not None:
            state.limits.policy = self.queue_shares.left
        self.suspend_resume = SuspendResume(state, self.queue_shares)
        self.preemptor = Preemptor(state, self.queue_shares)
        self.slot_reservations = SlotReservations(state)
        self.growths = ElasticGrowth(state)
        self.releases: list[int] = []
        self.incremental = IncrementalAllocation(state)

    def begin(self) -> list[Placement]:
        """Stop what must stop; start what only waited for the jobs preempted for it to be gone."""
        self.suspend_resume.begin()
        found = []
        cluster = self.state.cluster
        for key in sorted(cluster.promised):
            job = cluster.jobs.rows[key]
            if any(self.state.ledger.why_not_host(part.host) for part in job.promised):
                self.releases.append(key)
            elif not holders(cluster, key) and is_whole(self.state, key):
                found.append(Placement(key, job.promised, job.spec))
        return found

    def before(self, need: Need) -> None:
        """It is a class's turn: what is suspended and stands before it goes on; it sees what it may use."""
        if self.suspend_resume.waiting:
            self.suspend_resume.resume(need.queue.priority)
        for growing in self.growths.before(need.queue.priority):
            self.show(growing)
        self.show(need)

    def show(self, need: Need) -> None:
        """Make the hosts look as a class may see them."""
        if self.slot_reservations.rows:
            self.slot_reservations.show(need)
        if self.state.advance is not None:
            self.state.advance.show(need)

    def preempt(self, need: Need, eligible: Eligibility, key: int) -> Placement | None:
        """Room for a job by preemption."""
        if not self._may_preempt(need):
            return None
        self.state.retry_blocked = True
        if len(self.preemptor.preemptions) >= MOST or not self.preemptor.may(need):
            return None
        return self.preemptor.place(need, eligible, key)

    def _may_preempt(self, need: Need) -> bool:
        """By PREEMPTION of the queues; in an advance reservation by that alone."""
        if need.spec.reservation:
            row = self.state.cluster.reservations.rows.get(need.spec.reservation)
            return row is not None and not row.no_suspend
        queue_shares = self.queue_shares
        return need.spec.queue in self.state.cache.rules.preempts or (queue_shares is not None and queue_shares.may_reclaim(need))

    def promise(self, need: Need, eligible: Eligibility, row: Job | Array, key: int) -> bool:
        """A job does not fit: hold for it what there is, if its queue does so; whether others of its class may ask too."""
        if not reserves(need):
            return False
        self.state.retry_blocked = True
        self.slot_reservations.reserve(need, eligible, row, key)
        return key in self.slot_reservations.promises and len(self.slot_reservations.rows) < self.slot_reservations.most

    def end(self, plan: Plan) -> Plan:
        """The plan with all this in it."""
        state = self.state
        self.suspend_resume.resume(-1_000_000_000)
        if self.queue_shares is not None:
            self.queue_shares.lends_idle = True
            self.suspend_resume.lend()
        for growing in self.growths.rest():
            self.show(growing)
        self.slot_reservations.hide()
        slot_reservations = self.incremental.run()
        state.cache.retry_blocked = state.retry_blocked
        plan.why_job.update(state.cache.why_job)
        return Plan(
            plan.version,
            plan.placements,
            plan.why,
            plan.why_job,
            state.wake_at,
            tuple(self.preemptor.preemptions),
            tuple(self.suspend_resume.resumes),
            tuple(self.suspend_resume.suspensions),
            tuple(self.releases),
            slot_reservations,
            self.incremental.deadlocked,
            self.slot_reservations.promises,
            growths=tuple(self.growths.found),
        )
