"""order[binpack] and order[spread]: the fullest host first, or the emptiest, counted over slots, memory and GPUs.

Rule: a host counts by how full a job of the class would make it, the mean over what the job asks for, each with the weight
of LAVA_PACK_WEIGHTS; unlike other
orders this one follows each placement. Hosts that are as full go by the rest of order[].
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from lavad.core.rules.gpus import wanted
from lavad.core.rules.ledger import UNLIMITED
from lavad.core.site.host_names import first_hosts, preferences
from lavad.sched.hosts.rank import ranked_array, ranked_rows
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row
from lavad.sched.state.cycle_state import CycleState

Entry = tuple[bool, int, float, int, int]
"""(not one that must be first, less preferred by -m, how full, rank, row number): the smallest first."""


class Packed:
    """A class's hosts in this order, brought up to what was placed whenever they are asked for."""

    def __init__(self, state: CycleState, need: Need, eligible: Eligibility) -> None:
        self._state = state
        self._need = need
        self._sign = -1.0 if need.packing == "binpack" else 1.0
        rank = ranked_rows(state, need) if state.columns is None else ranked_array(state, state.columns, need).tolist()
        self._rank = {at: place for place, at in enumerate(rank) if not eligible.codes[at]}
        conf = state.cluster.conf
        self._weights = dict(conf.params.pack_weights)
        self._first = first_hosts(conf, need.preferred)
        self._levels = preferences(conf, need.spec.hosts, state.cache.by_name) if need.spec.hosts else {}
        self._seen = len(state.renewed)
        self._known = {at: self._entry(state.rows[at]) for at in self._rank}
        self._entries = sorted(self._known.values())

    def __iter__(self) -> Iterator[Row]:
        state = self._state
        for at in dict.fromkeys(state.renewed[self._seen :]):
            if at in self._known:
                del self._entries[bisect_left(self._entries, self._known[at])]
                self._known[at] = entry = self._entry(state.rows[at])
                insort(self._entries, entry)
        self._seen = len(state.renewed)
        for *_, at in tuple(self._entries):
            if state.rows[at].free:
                yield state.rows[at]

    def _entry(self, row: Row) -> Entry:
        first = row.name not in self._first
        return first, -self._levels.get(row.name, 0), self._sign * self._full(row), self._rank[row.index], row.index

    def _full(self, row: Row) -> float:
        need, mine = self._need, self._state.ledger.host(row.name)
        parts: list[tuple[str, float, int]] = []
        if mine.slots < UNLIMITED:
            parts.append(("slots", mine.taken + min(need.slots, mine.slots), mine.slots))
        mem = dict((*need.per_host, *need.per_slot)).get("mem")
        if mem:
            parts.append(("mem", mine.reserved.get("mem", 0.0) + mem, row.host.facts.max_mem))
        if need.gpu is not None:
            held = sum(1 for card in mine.gpus if mine.gpus_taken.get(card.uuid))
            parts.append(("gpus", held + wanted(need.gpu, 1), len(mine.gpus)))
        weights = [self._weights.get(name, 1.0) for name, _, _ in parts]
        shares = (min(2.0, used / most) if most else 2.0 for _, used, most in parts)
        total = sum(share * weight for share, weight in zip(shares, weights, strict=True))
        return round(total / sum(weights), 9) if any(weights) else 0.0
