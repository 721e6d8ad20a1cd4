"""The plan that a cycle is making: placements, pend reasons, and all that is done beyond giving out free slots.

That is suspension and resumption, preemption, slot reservations, growth of resizable jobs, and allocation slot by slot.

Rule: clusters that use none of it pay nothing; where anything is reserved, suspended or preempted, blocked classes are
looked at again in the next cycle (``CycleState.retry_blocked``).
"""

from __future__ import annotations

from lavad.core.decide.placement.preempt import holders, why_given_up
from lavad.core.job.job import Array, Job
from lavad.core.plan.plan import Chunks, Placement, Plan
from lavad.core.plan.volatile import WhyClass
from lavad.sched.cycle.explain import main_reason
from lavad.sched.hosts.gates import why_not_class
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.policy.elastic import ElasticGrowth
from lavad.sched.policy.incremental_alloc import IncrementalAllocation, is_whole
from lavad.sched.policy.preempt import Preemptor
from lavad.sched.policy.queue_shares import QueueShares
from lavad.sched.policy.service_goals import ServiceGoals
from lavad.sched.policy.slot_reservations import SlotReservations, reserves
from lavad.sched.policy.soft_limits import SoftLimits
from lavad.sched.policy.suspend import SuspendResume
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.scheduler_cache import PendingClass

MAX_PLACEMENTS = 10_000
"""Placements of one plan; more wait for the next cycle, so that a cycle stays short."""
MAX_PREEMPTED = 200
"""Jobs preempted in one cycle."""
_ALL = -1_000_000_000
"""A priority below that of every queue."""


class PlanBuilder:
    """What one cycle has decided so far."""

    def __init__(self, state: CycleState) -> None:
        self.state = state
        self.why: dict[int, WhyClass] = {}
        """Class to its new pend reasons."""
        self._main: dict[int, WhyClass] = {}
        """A reason that is about no host to what says so: one object, which is sent once."""
        self.queue_shares = QueueShares(state) if state.cache.rules.has_guarantees else None
        """What queues deserve, where any queue owns slots."""
        if self.queue_shares is not None:
            state.limits.policies.append(self.queue_shares.left)
        self.goals = ServiceGoals(state, state.cache.goals) if state.cache.goals is not None else None
        """What service classes with goals in time may start, where there are such."""
        if self.goals is not None:
            state.limits.policies.append(self.goals.left)
        self.suspend_resume = SuspendResume(state, self.queue_shares)
        self.preemptor = Preemptor(state, self.queue_shares)
        self.slot_reservations = SlotReservations(state)
        self.soft_limits = SoftLimits(state)
        self.growth = ElasticGrowth(state)
        self.incremental = IncrementalAllocation(state)
        self.releases: list[int] = []
        """Waiting jobs that can no longer start on what is held for them, or not now."""
        self.suspend_resume.begin()
        self.placements = self._start_held()
        self.chunks: list[Chunks] = []
        self.run_limits: dict[int, int] = {}
        """Of jobs that start in what is held for others."""
        self._borrows: tuple[Need, int] | None = None
        """A class whose turn goes on in what is held for others, and the number of its first placement there."""
        self._in_chunks = 0

    def _start_held(self) -> list[Placement]:
        """Start the jobs that only waited until the jobs preempted for them were gone."""
        found = []
        cluster = self.state.cluster
        for key in sorted(cluster.promised):
            job = cluster.jobs.rows[key]
            need = self.state.cache.need(cluster, job.spec)
            if need is None or why_not_class(self.state, need) or why_given_up(self.state.ledger, key, job.promised):
                self.releases.append(key)
            elif not holders(cluster, key) and is_whole(self.state, key):
                found.append(Placement(key, job.promised, job.spec))
        return found

    @property
    def left(self) -> int:
        """How many placements the plan still takes."""
        return MAX_PLACEMENTS - len(self.placements) - self._in_chunks

    def add_chunks(self, chunks: Chunks) -> None:
        """Jobs start on a host, several in a slot."""
        self.chunks.append(chunks)
        self._in_chunks += len(chunks.keys)

    def set_reason(self, number: int, reason: int) -> None:
        """A class waits for a reason that is about no host."""
        why = self._main.get(reason)
        if why is None:
            why = self._main[reason] = main_reason(reason, self.state.now)
        self._set_why(number, why)

    def block(self, number: int, entry: PendingClass, why: WhyClass) -> None:
        """No host has room for the one job of a class."""
        entry.blocked, entry.never, entry.stale = self.state.cache.cycle, False, False
        self.state.cache.forget_job_reasons(entry)
        self._set_why(number, why)

    def _set_why(self, number: int, why: WhyClass) -> None:
        """Only new reasons go into the plan."""
        old = self.state.cache.why.get(number)
        if old is None or (old is not why and old.reasons != why.reasons):
            self.why[number] = why

    @property
    def is_quiet(self) -> bool:
        """Whether the turn of a class changes nothing for others: nothing is suspended, grows, or is reserved."""
        waiting = self.suspend_resume.waiting or self.growth.waiting or self.slot_reservations.rows or self.soft_limits.due
        return not waiting and self.state.advance is None

    def begin_class(self, need: Need) -> None:
        """A class's turn begins: suspended and growing jobs that come before it are served first."""
        priority = need.queue.priority if self.goals is None else self.goals.cache.rank(need.spec, need.queue.priority)
        if self.suspend_resume.waiting:
            self.suspend_resume.resume(priority)
        for growing in self.growth.before(priority):
            self.set_turn(growing)
        self.set_turn(need)

    def set_turn(self, need: Need) -> None:
        """From now on hosts show the slots that this class may use: without what is reserved for others."""
        self._end_borrowing()
        if self.slot_reservations.rows:
            self.slot_reservations.set_turn(need)
        if self.state.advance is not None:
            self.state.advance.set_turn(need)

    def preempt(self, need: Need, eligible: Eligibility, key: int) -> Placement | None:
        """Make room for a job by preemption; None where that does not start it now."""
        pools = self.state.pools
        if not self._may_preempt(need) or (pools is not None and pools.lends_idle):
            return None
        self.state.retry_blocked = True
        if len(self.preemptor.preemptions) >= MAX_PREEMPTED or not self.preemptor.has_victims(need):
            return None
        return self.preemptor.place(need, eligible, key)

    def may_preempt(self, need: Need) -> bool:
        """Whether jobs of a class may preempt others, and such may be there."""
        return self._may_preempt(need) and self.preemptor.has_victims(need)

    def _may_preempt(self, need: Need) -> bool:
        """By PREEMPTION of the queues or by what they deserve; a job in an advance reservation by that alone."""
        if need.spec.reservation:
            row = self.state.cluster.reservations.rows.get(need.spec.reservation)
            return row is not None and not row.no_suspend
        shares = self.queue_shares
        return need.spec.queue in self.state.cache.rules.preempts or (shares is not None and shares.may_reclaim(need))

    def reserve_slots(self, need: Need, eligible: Eligibility, row: Job | Array, key: int) -> bool:
        """Reserve slots for a job that does not fit, if its queue does so; True: further jobs of its class may reserve too."""
        reservations = self.slot_reservations
        if reserves(need):
            self.state.retry_blocked = True
            reservations.reserve(need, eligible, row, key)
        if self.soft_limits.due:
            if key in reservations.promises:
                self.soft_limits.claim_for(reservations.rows[-1])
            else:
                self.soft_limits.claim(need, eligible)
        return key in reservations.promises and len(reservations.rows) < reservations.most

    def borrow(self, need: Need) -> bool:
        """INTERRUPTIBLE_BACKFILL: hosts now show the class in turn what is held for others, too; False: no more than before."""
        if self._borrows is not None or not self.slot_reservations.lend(need):
            return False
        self._borrows = need, len(self.placements)
        self.why.pop(need.number, None)
        return True

    def _end_borrowing(self) -> None:
        """Jobs that were placed in what is held for others end when that is needed."""
        if self._borrows is None:
            return
        need, first = self._borrows
        self._borrows = None
        for placement in self.placements[first:]:
            if seconds := self.slot_reservations.lent_for(need, placement.parts):
                self.run_limits[placement.key] = seconds

    def finish(self) -> Plan:
        """Serve what comes after all waiting classes, and make the plan."""
        self._end_borrowing()
        state = self.state
        self.suspend_resume.resume(_ALL)
        if self.queue_shares is not None:
            self.queue_shares.lends_idle = True
            self.suspend_resume.resume_lent()
        if state.pools is not None:
            state.pools.lends_idle = True
        for growing in self.growth.rest():
            self.set_turn(growing)
        self.slot_reservations.withdraw()
        holds = self.incremental.run()
        state.cache.retry_blocked = state.retry_blocked
        return Plan(
            state.cluster.version,
            tuple(self.placements),
            tuple(self.chunks),
            self.why,
            state.cache.job_reasons(state.cluster),
            state.wake_at,
            preemptions=tuple(self.preemptor.preemptions),
            resumes=tuple(self.suspend_resume.resumes),
            suspensions=tuple(self.suspend_resume.suspensions),
            releases=tuple(self.releases),
            holds=holds,
            deadlocked=self.incremental.deadlocked,
            promises=self.slot_reservations.promises,
            growths=tuple(self.growth.found),
            run_limits=self.run_limits,
            extensions=self.soft_limits.decided(),
        )
