"""What a cycle does beyond giving out what is free: stops and resumes, preemption, reservations.

Rule: clusters that use none of it pay nothing; where something is held, stopped or preempted, all that is blocked is
looked at again in the next cycle (``View.restless``).
"""

from __future__ import annotations

from lavad.core.decide.placement.preempt import holders
from lavad.core.job.job import Array, Job
from lavad.core.plan.plan import Placement, Plan
from lavad.sched.needs.bases import Base
from lavad.sched.needs.needs import Need
from lavad.sched.policy.elastic import Growths
from lavad.sched.policy.incremental_alloc import Piecemeal, is_whole
from lavad.sched.policy.preempt import Preemptor
from lavad.sched.policy.queue_shares import Owners
from lavad.sched.policy.slot_reservations import Holds, reserves
from lavad.sched.policy.suspend import Controls
from lavad.sched.state.cycle_state import View

MOST = 200
"""Jobs preempted in one cycle."""


class Beyond:
    """One cycle's."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.owners = Owners(view) if view.memory.rules.owned else None
        """What queues deserve, where they own anything."""
        if self.owners is not None:
            view.limits.policy = self.owners.left
        self.controls = Controls(view, self.owners)
        self.preemptor = Preemptor(view, self.owners)
        self.holds = Holds(view)
        self.growths = Growths(view)
        self.releases: list[int] = []
        self.piecemeal = Piecemeal(view)

    def begin(self) -> list[Placement]:
        """Stop what must stop; start what only waited for the jobs preempted for it to be gone."""
        self.controls.begin()
        found = []
        cluster = self.view.cluster
        for key in sorted(cluster.promised):
            job = cluster.jobs.rows[key]
            if any(self.view.ledger.why_not_host(part.host) for part in job.promised):
                self.releases.append(key)
            elif not holders(cluster, key) and is_whole(self.view, key):
                found.append(Placement(key, job.promised, job.spec))
        return found

    def before(self, need: Need) -> None:
        """It is a class's turn: what is suspended and stands before it goes on; it sees what it may use."""
        if self.controls.waiting:
            self.controls.resume(need.queue.priority)
        for growing in self.growths.before(need.queue.priority):
            self.show(growing)
        self.show(need)

    def show(self, need: Need) -> None:
        """Make the hosts look as a class may see them."""
        if self.holds.rows:
            self.holds.show(need)
        if self.view.advance is not None:
            self.view.advance.show(need)

    def preempt(self, need: Need, base: Base, key: int) -> Placement | None:
        """Room for a job by preemption."""
        if not self._may_preempt(need):
            return None
        self.view.restless = True
        if len(self.preemptor.preemptions) >= MOST or not self.preemptor.may(need):
            return None
        return self.preemptor.place(need, base, key)

    def _may_preempt(self, need: Need) -> bool:
        """By PREEMPTION of the queues; in an advance reservation by that alone."""
        if need.spec.reservation:
            row = self.view.cluster.reservations.rows.get(need.spec.reservation)
            return row is not None and not row.no_suspend
        owners = self.owners
        return need.spec.queue in self.view.memory.rules.preempts or (owners is not None and owners.may_reclaim(need))

    def promise(self, need: Need, base: Base, row: Job | Array, key: int) -> bool:
        """A job does not fit: hold for it what there is, if its queue does so; whether others of its class may ask too."""
        if not reserves(need):
            return False
        self.view.restless = True
        self.holds.promise(need, base, row, key)
        return key in self.holds.promises and len(self.holds.rows) < self.holds.most

    def end(self, plan: Plan) -> Plan:
        """The plan with all this in it."""
        view = self.view
        self.controls.resume(-1_000_000_000)
        if self.owners is not None:
            self.owners.lends = True
            self.controls.lend()
        for growing in self.growths.rest():
            self.show(growing)
        self.holds.hide()
        holds = self.piecemeal.run()
        view.memory.restless = view.restless
        plan.why_job.update(view.memory.why_job)
        return Plan(
            plan.version,
            plan.placements,
            plan.why,
            plan.why_job,
            view.wake_at,
            tuple(self.preemptor.preemptions),
            tuple(self.controls.resumes),
            tuple(self.controls.suspensions),
            tuple(self.releases),
            holds,
            self.piecemeal.deadlocked,
            self.holds.promises,
            growths=tuple(self.growths.found),
        )
