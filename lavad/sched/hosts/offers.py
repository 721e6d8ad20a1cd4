"""What all hosts together offer a class, kept up while hosts change one by one: for looks into the future.

Rule: the choice is made by ``choose.find_parts`` over the same order of hosts as for a start now.
"""

from __future__ import annotations

from collections.abc import Iterable

from lavad.core.job.job import Placed
from lavad.core.site.host_names import first_hosts
from lavad.sched.hosts.choose import find_parts
from lavad.sched.hosts.compound import find_compound
from lavad.sched.hosts.fit import units
from lavad.sched.hosts.rank import ranked_array, ranked_rows
from lavad.sched.hosts.roles import find_roles
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.state.cycle_state import CycleState


class Offers:
    """Slots by row number, for one class."""

    def __init__(self, state: CycleState, need: Need, eligible: Eligibility, avoid: Iterable[str] = ()) -> None:
        self.state = state
        self.need = need
        ranking = ranked_rows(state, need) if state.columns is None else ranked_array(state, state.columns, need).tolist()
        self.avoid = frozenset(avoid)
        out = {state.cache.by_name[name].index for name in self.avoid if name in state.cache.by_name}
        self.order: list[int] = [at for at in ranking if not eligible.codes[at] and at not in out]
        self.counts: dict[int, int] = {}
        self.total = 0
        self.known = set(self.order)
        self.first = first_hosts(state.cluster.conf, need.preferred) if need.first else None
        self.renew(self.order)

    def renew(self, numbers: Iterable[int]) -> bool:
        """Ask these rows anew; whether any offers more than before."""
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
        """The parts for the least that the class needs; none if it does not fit."""
        need = self.need
        if self.total < need.slots:
            return ()
        rows = self.state.rows
        if need.spec.roles:
            with self.state.slots_coming_back():
                parts = find_roles(self.state, need, need.slots, self.avoid)[0]
        elif need.terms:
            parts = find_compound(self.state, need, need.slots, self.avoid)
        else:
            offers = ((rows[at], self.counts[at]) for at in order or self.order if self.counts[at])
            parts = find_parts(self.state, need, offers, need.slots)
        if parts and self.first is not None and parts[0].host not in self.first:
            return ()
        return parts
