"""Preemption: room for a job that does not fit, made by as few and as cheap victims as possible (``policy.victims``).

First it is tried how far suspension, or what the victims' queues say instead, goes; then with victims that give up all they have.

Rule: nobody is preempted unless that starts the job; a job is preempted as a whole, but for what a resizable job has beyond
its minimum; what victims free beyond the need stays unused in this cycle.
"""

from __future__ import annotations

from msgspec.structs import replace

from config.model.values import Limits
from lavad.core.decide.placement import preempt
from lavad.core.job.job import Placed
from lavad.core.lang.states import PreemptionAction
from lavad.core.plan.plan import Placement, Preemption
from lavad.sched.hosts.offers import Offers
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.policy.preempt_rules import preempt_rules
from lavad.sched.policy.queue_shares import QueueShares, Surplus
from lavad.sched.policy.victims import Victims
from lavad.sched.state.cycle_state import CycleState

MAX_VICTIMS = 1000
"""Victims looked at for one job."""
MAX_LOOKS = 200_000
"""Hosts looked at in one cycle to place jobs by preemption; the next cycle goes on."""


class Preemptor:
    """The preemptions of one cycle."""

    def __init__(self, state: CycleState, queue_shares: QueueShares | None) -> None:
        self.state = state
        self.queue_shares = queue_shares
        self.preemptions: list[Preemption] = []
        self._victims = Victims(state, queue_shares)
        self._tries = 0
        self._in_vain = InVain(state)

    def has_victims(self, need: Need) -> bool:
        """Whether anything runs that jobs of this class may perhaps preempt."""
        if need.spec.reservation:
            return True
        shares = self.queue_shares
        if shares is not None and shares.may_reclaim(need) and shares.has_surplus(need.spec.queue):
            return True
        lower = self.state.cache.rules.preempts.get(need.spec.queue, ())
        return any(sum(self.state.cluster.use.queues[name][2:3]) for name, _ in lower)

    def place(self, need: Need, eligible: Eligibility, key: int) -> Placement | None:
        """Preempt others for a job that does not fit; None: that would not start it, or not yet (PREEMPT_DELAY)."""
        with self.state.limits.preempting():
            return self._place(need, eligible, key)

    def _place(self, need: Need, eligible: Eligibility, key: int) -> Placement | None:
        state = self.state
        if state.limits.left(need.spec, jobs=False)[0] < need.slots or _is_too_early(state, need, key):
            return None
        if self._in_vain.covers(need, eligible):
            return None
        self._tries += 1
        if self._tries > max(10, MAX_LOOKS // max(1, len(state.rows))):
            return None
        offers = Offers(state, need, eligible)
        unit, parts = self._find(offers, key, frees=False)
        if not parts and self._victims.may_free(need):
            unit, parts = self._find(offers, key, frees=True)
        if not parts:
            if self.queue_shares is None:
                self._in_vain.note(need, eligible)
            return None
        must_end = any(one.how is not PreemptionAction.SUSPEND for one in unit)
        if state.limits.why_not(need.spec, parts):
            self._shift(unit, 1)
            return None
        placement = Placement(key, parts, need.number)
        self._shift(unit, 1)
        state.shares.charge(need.spec, parts)
        if must_end:
            preempt.hold(state.limits, unit, placement, need.spec)
        else:
            preempt.shift(state.limits, unit, -1)
            state.ledger.take(key, need.spec, parts)
            self._keep_rest(unit, placement)
        hosts = {part.host for part in parts} | {part.host for one in unit for part in preempt.parts_of(state.cluster, one.key)}
        for host in hosts:
            state.renew(state.cache.by_name[host])
        if self.queue_shares is not None:
            for one in unit:
                self.queue_shares.reclaimed(one)
        self.preemptions += unit
        state.preempted.update(one.key for one in unit)
        return placement

    def _keep_rest(self, unit: list[Preemption], placement: Placement) -> None:
        """What the victims free beyond the job's need is given to nobody in this cycle."""
        freed: dict[str, int] = {}
        for one in unit:
            for part in preempt.parts_of(self.state.cluster, one.key):
                freed[part.host] = freed.get(part.host, 0) + part.slots
        for placed in placement.parts:
            freed[placed.host] = freed.get(placed.host, 0) - placed.slots
        for host, rest in freed.items():
            self.state.ledger.host(host).taken += max(0, rest)
        for one in unit:
            spec = self.state.cluster.spec_of(one.key)
            for part in preempt.parts_of(self.state.cluster, one.key):
                kept = min(part.slots, max(0, freed[part.host]))
                freed[part.host] -= kept
                self.state.limits.keep_slots(spec, [Placed(host=part.host, slots=kept)])

    def _find(self, offers: Offers, key: int, frees: bool) -> tuple[list[Preemption], tuple[Placed, ...]]:
        """The victims that make room, and the parts that the job then gets; none: nothing helps.

        Victims are added from the cheapest on until the job fits, then left out again from the last but one on where the job
        fits without. The ledger is left without the victims found. ``frees``: as ``Victims.of``.
        """
        unit: list[Preemption] = []
        shrunk: set[int] = set()
        chosen: tuple[Placed, ...] = ()
        names = {self.state.rows[at].name for at in offers.order}
        surplus = Surplus(self.state, offers.need)
        # of a limit on jobs, in which a victim may be whatever its hosts are
        was_full = self._is_full(offers.need)
        for victim, share in self._victims.of(offers.need, frees):
            parts = preempt.given(self.state.cluster, victim)
            if victim.key in self.state.preempted or not (was_full or names.intersection(part.host for part in parts)):
                continue
            if share is not None and not surplus.count_in(share, victim.key):
                continue
            if victim.how is not PreemptionAction.SHRINK:
                # all of the job is taken, so what was to be taken of it alone is not
                if victim.key in shrunk:
                    before = [one for one in unit if one.key == victim.key]
                    offers.renew(self._shift(before, 1))
                    unit = [one for one in unit if one.key != victim.key]
            else:
                shrunk.add(victim.key)
            unit.append(Preemption(victim.key, victim.uid, victim.how, key, victim.parts))
            more = offers.renew(self._shift(unit[-1:], -1))
            if more or (was_full and not self._is_full(offers.need)):
                chosen = offers.choose()
            if chosen or len(unit) >= MAX_VICTIMS:
                break
        if not chosen:
            offers.renew(self._shift(unit, 1))
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

    def _is_full(self, need: Need) -> bool:
        """Whether a limit leaves too little to jobs of this class, the victims shifted."""
        return self.state.limits.left(need.spec)[0] < need.slots

    def _shift(self, unit: list[Preemption], sign: int) -> set[int]:
        """Take the victims' slots away on the ledger (-1) or put them back (1); the row numbers of their hosts."""
        state = self.state
        preempt.shift(state.limits, unit, sign)
        parts = (part for one in unit for part in preempt.given(state.cluster, one))
        touched = {state.cache.by_name[part.host].index for part in parts}
        for at in touched:
            state.renew(state.rows[at])
        return touched


class InVain:
    """Kinds of jobs for which preempting all that they may would make no room, in one cycle.

    Rule: a job of the same kind that takes no less of each resource is not tried. During a cycle hosts only fill up, and victims
    become fewer.
    """

    def __init__(self, state: CycleState) -> None:
        self._state = state
        self._found: dict[tuple[object, ...], list[tuple[float, ...]]] = {}

    def covers(self, need: Need, eligible: Eligibility) -> bool:
        """Whether a job that takes no more has been tried."""
        taken = _amounts(need)
        tried = self._found.get(self._kind(need, eligible), ()) if self._found and self._holds else ()
        return any(all(ours >= theirs for ours, theirs in zip(taken, one, strict=True)) for one in tried)

    def note(self, need: Need, eligible: Eligibility) -> None:
        """Nothing makes room for jobs of a class."""
        if self._holds:
            self._found.setdefault(self._kind(need, eligible), []).append(_amounts(need))

    @property
    def _holds(self) -> bool:
        """Whether hosts show every class the same."""
        state = self._state
        return not state.free_may_grow and state.advance is None and state.pools is None

    def _kind(self, need: Need, eligible: Eligibility) -> tuple[object, ...]:
        spec = need.spec
        user = spec.user if self._state.limits.book.counts_user(spec) else ""
        rest = replace(spec, user=user, resreq="", limits=Limits(), estimate=0, priority=-1)
        names = tuple(tuple(name for name, _ in amounts) for amounts in (need.per_slot, need.per_host, need.shared))
        simple = not (need.terms or need.ways)
        span = (need.one_host, need.ptile, need.shape)
        return id(eligible), rest, names, span, need.affinity, spec.resreq if not simple else ""


def _amounts(need: Need) -> tuple[float, ...]:
    return tuple(amount for _, amount in (*need.per_slot, *need.per_host, *need.shared))


def _is_too_early(state: CycleState, need: Need, key: int) -> bool:
    """Whether a waiting job may not preempt others, or not yet: PREEMPT_JOBTYPE, PREEMPT_DELAY."""
    if need.spec.reservation:
        return False
    if need.spec.exclusive and not state.cluster.conf.params.preempt_exclusive:
        return True
    ready = state.cluster.get(key).submitted + (preempt_rules(state.cluster, need.spec).delay or 0)
    if ready > state.now:
        state.wake(ready)
        return True
    return False
