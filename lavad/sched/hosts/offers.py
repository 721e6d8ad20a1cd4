"""What hosts will offer a class once running jobs have ended: for reservations and preemption.

Rule: the choice is made by ``over_hosts.find_parts`` over the same order of hosts as for a start now. A job without a run
limit, or a suspended one, gives back nothing; what is shifted on the ledger for a look into the future is put back before
anything is decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lavad.core.decide.placement.preempt import parts_of
from lavad.core.job.job import Part, Placed
from lavad.core.job.spec import Spec
from lavad.sched.hosts.compound import find_compound
from lavad.sched.hosts.ends import end_of
from lavad.sched.hosts.fit import units
from lavad.sched.hosts.over_hosts import find_parts
from lavad.sched.hosts.rank import ranked
from lavad.sched.hosts.roles import find_roles
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.state.cycle_state import CycleState

Shifted = tuple[Sequence[Placed | Part], Spec]
"""What a job has on its hosts, to be taken away from the ledger or put back."""


def releases(state: CycleState) -> list[tuple[float, int, Shifted]]:
    """(end, key, what comes back) of all jobs that run or start in this cycle, the first to end first."""
    rows, specs = state.cluster.jobs.rows, state.cluster.specs.rows
    found: list[tuple[float, int, Shifted]] = []
    for key in state.cluster.started:
        job = rows[key]
        if not job.preempted_for and key not in state.preempted:
            spec = specs[job.spec]
            found.append((end_of(state, job, spec), key, (parts_of(state.cluster, key), spec)))
    for at, (spec, parts) in enumerate(state.ledger.placed):
        found.append((state.end_from(state.now, spec, parts), -1 - at, (parts, spec)))
    found.sort(key=lambda release: release[:2])
    return found


def shift(state: CycleState, shifted: Iterable[Shifted], sign: int, held: bool = False) -> set[int]:
    """Take these off the ledger (-1) or put them back (1); the row numbers of their hosts. ``held``: they are only reserved."""
    count = state.limits.hold if held else state.limits.shift
    touched: set[int] = set()
    for parts, spec in shifted:
        state.ledger.shift(parts, spec, sign)
        count(spec, parts, sign)
        touched.update(state.cache.by_name[part.host].index for part in parts)
    for at in touched:
        state.renew(state.rows[at])
    return touched


class Offers:
    """How many slots each host offers one class, kept up to date while rows change one by one."""

    def __init__(self, state: CycleState, need: Need, eligible: Eligibility, avoid: Iterable[str] = ()) -> None:
        self.state = state
        self.need = need
        ranking = ranked(state, need)
        self.avoid = frozenset(avoid)
        out = {state.cache.by_name[name].index for name in self.avoid if name in state.cache.by_name}
        self.order: list[int] = [at for at in ranking if not eligible.codes[at] and at not in out]
        self.counts: dict[int, int] = {}
        self.total = 0
        self.known = set(self.order)
        self.first = state.cluster.conf.groups_of_hosts.first_hosts(need.preferred, state.cache.by_name) if need.first else None
        self.renew(self.order)

    def renew(self, numbers: Iterable[int]) -> bool:
        """Count these rows again; whether any offers more than before."""
        more = False
        for at in numbers:
            if at in self.known:
                old = self.counts.get(at, 0)
                row = self.state.rows[at]
                new = row.free if self.need.spec.roles else units(self.state, self.need, row)[0]
                self.counts[at] = new
                self.total += new - old
                more = more or new > old
        return more

    def choose(self, order: Iterable[int] | None = None) -> tuple[Placed, ...]:
        """The parts for the minimum of slots that the class needs; none: it does not fit."""
        need = self.need
        if self.total < need.slots:
            return ()
        rows = self.state.rows
        if need.spec.roles:
            with self.state.slots_coming_back():
                parts = find_roles(self.state, need, need.slots, self.avoid).parts
        elif need.terms:
            parts = find_compound(self.state, need, need.slots, self.avoid)
        else:
            offers = ((rows[at], self.counts[at]) for at in order or self.order if self.counts[at])
            parts = find_parts(self.state, need, offers, need.slots)
        if parts and self.first is not None and parts[0].host not in self.first:
            return ()
        return () if parts and self.state.limits.why_not(need.spec, parts) else parts
