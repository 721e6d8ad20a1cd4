"""Preemption: whose place a job takes that does not fit, by PREEMPTION of the queues; the cheapest victims first.

Rule: nobody is preempted unless that starts the job; a job is preempted whole; one that was resumed is left alone for a
while; what victims give up beyond the need stays unused in this cycle.
"""

from __future__ import annotations

import re

from lavad.core.decide.placement import preempt
from lavad.core.job.job import Job, Placed
from lavad.core.job.resize import by_hosts
from lavad.core.job.resize import surplus as beyond
from lavad.core.job.spec import Spec
from lavad.core.lang.states import JobState
from lavad.core.plan.plan import Placement, Preemption
from lavad.core.rules.per_slot import taken
from lavad.core.site.conf import QueueConf
from lavad.sched.hosts.offers import Offers
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.policy.preemption_guards import is_guarded, is_too_early
from lavad.sched.policy.queue_shares import QueueShares, Surplus, slots_of
from lavad.sched.state.cycle_state import CycleState

_SUSPEND = re.compile(r"SUSPEND\[(.*?)\](?= (?:RESUME|TERMINATE)\[|$)", re.DOTALL)
GRACE = 300.0
"""Seconds for which a job that was resumed is not preempted again."""
MOST = 1000
"""Victims looked at for one job."""
TRIES = 200_000
"""Hosts looked at in one cycle to place jobs by preemption; the next cycle goes on."""


def how_of(queue: QueueConf | None, spec: Spec) -> str:
    """How a job of this queue is preempted: JOB_CONTROLS=SUSPEND[…] and TERMINATE_WHEN=PREEMPT decide."""
    if queue is None:
        return preempt.SUSPEND
    if "PREEMPT" in queue.terminate_when:
        return "kill"
    found = _SUSPEND.search(queue.job_controls)
    what = found[1] if found else ""
    if "brequeue" in what:
        return "requeue"
    if ("CHKPNT" in what or "bmig" in what) and (spec.checkpoint is not None or spec.rerunnable):
        return "migrate"
    return preempt.SUSPEND


class Preemptor:
    """The preemptions of one cycle."""

    def __init__(self, state: CycleState, queue_shares: QueueShares | None) -> None:
        self.state = state
        self.queue_shares = queue_shares
        self.preemptions: list[Preemption] = []
        self._victims: dict[str, list[Preemption]] = {}
        self._tries = 0
        self._by_reclaim: set[tuple[str, int]] = set()
        """(queue, job) where the queue may have the job's place only as far as the other queue has more than it deserves."""

    def has_victims(self, need: Need) -> bool:
        """Whether jobs of this class may preempt any that run."""
        queue_shares = self.queue_shares
        if need.spec.reservation or (
            queue_shares is not None and queue_shares.may_reclaim(need) and queue_shares.has_surplus(need.spec.queue)
        ):
            return True
        lower = self.state.cache.rules.preempts.get(need.spec.queue, ())
        return any(sum(self.state.cluster.use.queues[name][2:3]) for name, _ in lower)

    def place(self, need: Need, eligible: Eligibility, key: int) -> Placement | None:
        """Preempt for a job that does not fit; None if that does not start it."""
        state = self.state
        if state.limits.left(need.spec)[0] < need.slots or is_too_early(state, need, key):
            return None
        self._tries += 1
        if self._tries > max(10, TRIES // max(1, len(state.rows))):
            return None
        offers = Offers(state, need, eligible)
        unit, parts = self._find(offers, key)
        if not parts:
            return None
        for_good = any(one.how != preempt.SUSPEND for one in unit)
        if state.limits.why_not(need.spec, parts):
            self._shift(unit, 1)
            return None
        placement = Placement(key, parts, need.number)
        self._shift(unit, 1)
        state.shares.charge(need.spec, parts)
        if for_good:
            preempt.hold(state.ledger, unit, placement, need.spec)
            state.ledger.count(key, need.spec, parts)
        else:
            preempt.shift(state.ledger, unit, -1)
            state.ledger.take(key, need.spec, parts)
            self._keep_rest(unit, placement)
        hosts = {part.host for part in parts} | {part.host for one in unit for part in preempt.parts_of(state.cluster, one.key)}
        for host in hosts:
            state.renew(state.cache.by_name[host])
        self._note_reclaimed(unit)
        self.preemptions += unit
        state.preempted.update(one.key for one in unit)
        return placement

    def _note_reclaimed(self, unit: list[Preemption]) -> None:
        queue_shares = self.queue_shares
        for one in unit if queue_shares is not None else ():
            queue, slots = slots_of(self.state, one.key)
            if queue_shares is not None:
                queue_shares.reclaimed(queue, slots)

    def _keep_rest(self, unit: list[Preemption], placement: Placement) -> None:
        """What the victims give up and the job does not take stays out of this cycle."""
        freed: dict[str, int] = {}
        for one in unit:
            for part in preempt.parts_of(self.state.cluster, one.key):
                freed[part.host] = freed.get(part.host, 0) + part.slots
        for placed in placement.parts:
            freed[placed.host] = freed.get(placed.host, 0) - placed.slots
        for host, rest in freed.items():
            self.state.ledger.host(host).taken += max(0, rest)

    def _find(self, offers: Offers, key: int) -> tuple[list[Preemption], tuple[Placed, ...]]:
        """The fewest victims, the cheapest first, that make room; they are taken away in the ledger."""
        unit: list[Preemption] = []
        chosen: tuple[Placed, ...] = ()
        names = {self.state.rows[at].name for at in offers.order}
        surplus = Surplus(self.state, self.queue_shares)
        for victim in self._cheapest(offers.need):
            parts = preempt.given(self.state.cluster, victim)
            if victim.key in self.state.preempted or not names.intersection(part.host for part in parts):
                continue
            if (offers.need.spec.queue, victim.key) in self._by_reclaim and not surplus.take(victim.key):
                continue
            if victim.how != preempt.SHRINK:
                # it gives up all, so nothing of it by itself
                before = [one for one in unit if one.key == victim.key]
                offers.renew(self._shift(before, 1))
                unit = [one for one in unit if one.key != victim.key]
            unit.append(Preemption(victim.key, victim.uid, victim.how, key, victim.parts))
            if offers.renew(self._shift(unit[-1:], -1)):
                chosen = offers.choose()
            if chosen or len(unit) >= MOST:
                break
        if not chosen:
            self._shift(unit, 1)
            return [], ()
        for victim in unit[-2::-1]:
            offers.renew(self._shift([victim], 1))
            fewer = offers.choose()
            if fewer:
                unit.remove(victim)
                chosen = fewer
            else:
                offers.renew(self._shift([victim], -1))
        return unit, chosen

    def _shift(self, unit: list[Preemption], sign: int) -> set[int]:
        state = self.state
        preempt.shift(state.ledger, unit, sign)
        parts = (part for one in unit for part in preempt.given(state.cluster, one))
        touched = {state.cache.by_name[part.host].index for part in parts}
        for at in touched:
            state.renew(state.rows[at])
        return touched

    def _cheapest(self, need: Need) -> list[Preemption]:
        """All that jobs of this queue may preempt: by preference, priority, run time and slots."""
        queue = need.spec.queue
        found = self._victims.get(need.spec.reservation + "#" if need.spec.reservation else queue)
        if found is None and need.spec.reservation:
            found = self._victims[need.spec.reservation + "#"] = self._outsiders(need.spec.reservation)
        if found is None:
            state = self.state
            levels = dict(state.cache.rules.preempts.get(queue, ()))
            costs = []
            for key in state.cluster.started:
                job = state.cluster.jobs.rows[key]
                spec = state.cluster.specs.rows[job.spec]
                if spec.queue in levels and job.run is not None and self._may_be(job) and not is_guarded(state, job, spec):
                    conf = state.cluster.queue_conf[spec.queue]
                    ran = state.now - (job.run.started or job.run.dispatched)
                    slots = sum(part.slots for part in job.run.parts)
                    place = (-levels[spec.queue], conf.priority)
                    for at, parts in enumerate(self._beyond_minimum(job, spec)):
                        shrink = Preemption(key, job.run.uid, preempt.SHRINK, 0, (parts,))
                        costs.append(((*place, 0, ran, at, key), shrink))
                    one = Preemption(key, job.run.uid, how_of(conf, spec), 0)
                    costs.append(((*place, 1, ran, slots, key), one))
            costs.sort(key=lambda cost: cost[0])
            found = self._victims[queue] = [one for _, one in costs] + self._reclaimable(queue, levels)
        return found

    def _reclaimable(self, queue: str, levels: dict[str, int]) -> list[Preemption]:
        """Jobs of queues that have more than they deserve, the largest surplus first, then the newest and smallest."""
        state, queue_shares = self.state, self.queue_shares
        costs = []
        for key in state.cluster.started if queue_shares is not None else ():
            job = state.cluster.jobs.rows[key]
            spec = state.cluster.specs.rows[job.spec]
            surplus = queue_shares.surplus(spec.queue) if queue_shares is not None else 0
            if spec.queue != queue and spec.queue not in levels and surplus and job.run is not None and self._may_be(job):
                if is_guarded(state, job, spec):
                    continue
                ran = state.now - (job.run.started or job.run.dispatched)
                one = Preemption(key, job.run.uid, how_of(state.cluster.queue_conf.get(spec.queue), spec), 0)
                costs.append(((-surplus, spec.queue, ran, slots_of(state, key)[1], key), one))
        costs.sort(key=lambda cost: cost[0])
        self._by_reclaim.update((queue, one.key) for _, one in costs)
        return [one for _, one in costs]

    def _outsiders(self, name: str) -> list[Preemption]:
        """Jobs that run in no advance reservation on the hosts of one: LSF suspends them for its jobs, the newest first."""
        state = self.state
        hosts = state.cluster.use.hosts
        keys = {key for host, _ in state.cluster.reservations.rows[name].hosts if host in hosts for key in hosts[host].jobs}
        jobs = [state.cluster.jobs.rows[key] for key in sorted(keys, reverse=True)]
        outside = (job for job in jobs if not state.cluster.specs.rows[job.spec].reservation and self._may_be(job))
        return [Preemption(job.key, job.run.uid, preempt.SUSPEND, 0) for job in outside if job.run is not None]

    def _beyond_minimum(self, job: Job, spec: Spec) -> list[Placed]:
        """What a resizable job can do without, the newest first; giving it up is cheaper than any stop."""
        run = job.run
        if run is None or not run.elastic:
            return []
        found = beyond(run, spec.slots, by_hosts(spec))
        return [taken(part, slots, spec, self.state.cluster.conf) for part, slots in found]

    def _may_be(self, job: Job) -> bool:
        """Whether a job may be preempted now at all."""
        state = self.state
        run = job.run
        if job.state is not JobState.RUN or job.lent or run is None or run.verdict is not None or run.refused:
            return False
        if any(wish.kind in ("kill", "requeue", "migrate") for wish in run.wishes):
            return False
        if run.paused and state.now < job.since + GRACE:
            state.wake(job.since + GRACE)
            return False
        return True
