"""Incremental allocation (GANG=N queues): a job takes its slots one by one as they come free, and starts when it has all.

Two such jobs may wait for each other for ever, each with a part of what there is (deadlock); that is found here.

Rule: such jobs take turns, a slot at a time; what they hold is theirs until they start, are killed or may not start for now. It
is a deadlock when at least two hold something, none got anything more in this cycle, and nothing runs that could give back what
they may use.
"""

from __future__ import annotations

from itertools import islice

from lavad.core.job.job import Array, Job, Placed
from lavad.core.lang.ids import key_of
from lavad.core.lang.rusage_decay import merge_decays
from lavad.core.plan.plan import Placement
from lavad.core.site.pend_reason import PendReason
from lavad.sched.hosts.fit import place_on, units
from lavad.sched.hosts.rank import ranked
from lavad.sched.line.line import keys_in_order
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.eligible import get_eligible

MAX_JOBS = 100
"""Jobs that may hold slots at one time."""


def takes_parts(need: Need) -> bool:
    """Whether jobs of a class take their slots one by one."""
    spec = need.spec
    return not need.queue.gang and need.slots > 1 and need.is_plain and not spec.exclusive and not spec.roles


class PartialAllocation:
    """A job that takes its slots one by one, and the parts that it has."""

    def __init__(self, state: CycleState, need: Need, key: int, parts: tuple[Placed, ...]) -> None:
        self.need = need
        self.key = key
        self.parts = {part.host: part for part in parts}
        self.grew = False
        self._further = need.further(False), need.further(True)
        self.eligible: Eligibility = get_eligible(state, need)
        rows = ranked(state, need)
        self.hosts = [at for at in rows if not self.eligible.codes[at]]

    @property
    def missing(self) -> int:
        """Slots that it still lacks."""
        return self.need.slots - sum(part.slots for part in self.parts.values())

    def take_one(self, state: CycleState) -> bool:
        """Take one slot more on the first host that has one for it; False: there is none."""
        tile = self.need.ptile or (self.need.slots if self.need.one_host else 0)
        for at in self.hosts:
            row = state.rows[at]
            old = self.parts.get(row.name)
            if (self.need.one_host and self.parts and old is None) or (tile and old is not None and old.slots >= tile):
                continue
            with state.limits.of_started(self.parts):
                more = self._one_more(state, row)
                if more is None:
                    continue
                state.limits.shift(self.need.spec, [more], 1)
            state.ledger.shift([more], self.need.spec, 1)
            state.ledger.count_slots(self.need.spec, (more,))
            state.renew(row)
            self.parts[row.name] = more if old is None else _joined(old, more)
            self.grew = True
            return True
        return False

    def _one_more(self, state: CycleState, row: Row) -> Placed | None:
        """What one slot more on a host takes there; None: there is none, or a limit forbids it."""
        need = self._further[row.name in self.parts] if self.parts else self.need
        if not units(state, need, row)[0]:
            return None
        more = place_on(state, need, row, 1, not self.parts)
        return None if state.limits.why_not(need.spec, (more,)) else more


def _joined(old: Placed, more: Placed) -> Placed:
    amounts = dict(old.reserved)
    for name, amount in more.reserved:
        amounts[name] = amounts.get(name, 0.0) + amount
    return Placed(
        host=old.host,
        slots=old.slots + more.slots,
        gpus=old.gpus + more.gpus,
        reserved=tuple(amounts.items()),
        decays=merge_decays(old.decays, more.decays),
        binds=old.binds + more.binds,
    )


class IncrementalAllocation:
    """One cycle's. ``needs``: the classes in the order of the line; ``deadlocked``: keys of jobs that wait for each other."""

    def __init__(self, state: CycleState) -> None:
        self.state = state
        self.needs: list[Need] = []
        self.deadlocked: tuple[int, ...] = ()

    def run(self) -> tuple[Placement, ...]:
        """Give out slots in turns; all that a job holds now, for each job that got more."""
        if not self.needs:
            return ()
        partials = self._jobs()
        turn = [partial for partial in partials if partial.missing > 0]
        while turn:
            turn = [partial for partial in turn if partial.take_one(self.state) and partial.missing > 0]
        self.deadlocked = self._find_deadlock(partials)
        self._set_reasons(partials)
        return tuple(Placement(h.key, tuple(h.parts.values()), h.need.number) for h in partials if h.grew)

    def _set_reasons(self, partials: list[PartialAllocation]) -> None:
        cache = self.state.cache
        found: dict[int, dict[int, int]] = {need.number: {} for need in self.needs}
        for partial in partials:
            is_stuck = partial.key in self.deadlocked
            found[partial.need.number][partial.key] = PendReason.JOB_DEADLOCK if is_stuck else PendReason.SLOTS_ONE_BY_ONE
        for number, reasons in found.items():
            cache.set_job_reasons(cache.classes[number], reasons)

    def _jobs(self) -> list[PartialAllocation]:
        """The jobs that hold something already, then those in line that the limits have room for."""
        cluster = self.state.cluster
        by_number = {need.number: need for need in self.needs}
        found = []
        for key in sorted(cluster.promised):
            job = cluster.jobs.rows[key]
            need = by_number.get(job.spec)
            if need is not None:
                found.append(PartialAllocation(self.state, need, key, job.promised))
        limits = self.state.limits
        for need in self.needs:
            with limits.of_started(()):  # limits on slots: the jobs that have begun count against those on jobs already
                left, _ = limits.left(need.spec)
            left -= sum(partial.missing for partial in found if partial.need.spec.queue == need.spec.queue)
            for key in keys_in_order(cluster, need.number, self.state.cache.classes[need.number]):
                row = cluster.get(key)
                most = min(MAX_JOBS - len(found), left // need.slots)
                if most <= 0:
                    break
                if isinstance(row, Job) and (row.promised or row.not_before > self.state.now):
                    continue
                for one in _elements(row, most):
                    if self.state.ledger.why_not_array(one) or limits.left(need.spec)[0] < need.slots:
                        break
                    self.state.ledger.count_job(one, need.spec)
                    found.append(PartialAllocation(self.state, need, one, ()))
                    left -= need.slots
        return found

    def _find_deadlock(self, partials: list[PartialAllocation]) -> tuple[int, ...]:
        stuck = [partial for partial in partials if partial.parts and partial.missing > 0]
        if len(stuck) < 2 or any(partial.grew or not partial.missing for partial in partials):
            return ()
        hosts = self.state.cluster.use.hosts
        for partial in stuck:
            names = (self.state.rows[at].name for at in partial.hosts)
            if any(name in hosts and hosts[name].jobs for name in names):
                return ()
        return tuple(partial.key for partial in stuck)


def _elements(row: Job | Array, most: int) -> list[int]:
    if isinstance(row, Job):
        return [row.key]
    return [key_of(row.job, index) for index in islice(row.startable, most)]


def is_whole(state: CycleState, key: int) -> bool:
    """Whether a job holds all its slots; what is held for it is then its placement."""
    job = state.cluster.jobs.rows[key]
    return sum(part.slots for part in job.promised) >= state.cluster.specs.rows[job.spec].slots
