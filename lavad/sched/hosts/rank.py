"""In which order a class tries hosts: preference (host+n of -m, else of HOSTS) first, then order[], then as configured.

Rule: a ranking is made once a cycle, from hosts as they were at its beginning. order[binpack] and order[spread] (lava's own)
alone follow each placement: they take the fullest or the emptiest host first. How full a host is: the mean, over what the
class asks for (slots, memory, GPUs), of the fraction in use after one more job, weighted by LAVA_PACK_WEIGHTS.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lavad.core.lang.resreq.sections import Order
from lavad.core.rules.gpus import wanted
from lavad.core.rules.ledger import UNLIMITED
from lavad.core.site.host_names import first_hosts, preferences
from lavad.sched.needs.columns import Columns
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row, read_values
from lavad.sched.state.cycle_state import CycleState

DEFAULT: Order = (("r15s", False), ("pg", False))
_STEPS = {"r15s": 0.2, "r1m": 0.2, "r15m": 0.2, "pg": 1.0, "io": 1.0}
"""Loads are rounded to these steps: else noise alone would scatter jobs over idle hosts."""

Ranks = npt.NDArray[np.int64]


def ranked_rows(state: CycleState, need: Need) -> list[int]:
    """Row numbers, the best host first; for few hosts."""
    found = state.rankings.get(need.order_key)
    if found is None:
        columns = [_column(state, name, back) for name, back in need.order or DEFAULT]
        if need.preferred:
            columns = [*_preference(state, need), *columns]
        keys = list(zip(*columns, strict=True))
        found = state.rankings[need.order_key] = sorted(range(len(state.rows)), key=keys.__getitem__)
    return found


def ranked_array(state: CycleState, columns: Columns, need: Need) -> Ranks:
    """The same for many hosts, as an array of shape (hosts,)."""
    found = state.ranked_arrays.get(need.order_key)
    if found is None:
        keys = []
        for name, back in need.order or DEFAULT:

            def read(at: int, name: str = name) -> float:
                return _number(state, state.rows[at], name)

            keys.append(columns.value(f"rank {name}", read) * (1.0 if _is_up(state, name, back) else -1.0))
        if need.preferred:
            keys = [*(np.asarray(key, dtype=np.float64) for key in _preference(state, need)), *keys]
        # nan (no such number) sorts last whichever way the key counts
        found = state.ranked_arrays[need.order_key] = np.lexsort(keys[::-1])
    array: Ranks = found
    return array


def ranked(state: CycleState, need: Need) -> list[int]:
    """Row numbers, the best host first."""
    return ranked_rows(state, need) if state.columns is None else ranked_array(state, state.columns, need).tolist()


def _preference(state: CycleState, need: Need) -> list[list[float]]:
    """Two sort keys by row: whether a host is not marked as first (`host!`), and minus its preference (`host+n`)."""
    levels = preferences(state.cluster.conf, need.preferred, state.cache.by_name)
    first = first_hosts(state.cluster.conf, need.preferred)
    return [[float(row.name not in first) for row in state.rows], [-float(levels.get(row.name, 0)) for row in state.rows]]


def _column(state: CycleState, name: str, back: bool) -> list[float]:
    sign = 1.0 if _is_up(state, name, back) else -1.0
    numbers = (_number(state, row, name) * sign for row in state.rows)
    return [float("inf") if number != number else number for number in numbers]


def _is_up(state: CycleState, name: str, back: bool) -> bool:
    """Whether a smaller number is better: it is for loads that are worse when higher; `-` in order[] reverses it."""
    return (name.lstrip("!") in state.cache.increasing) != back


def _number(state: CycleState, row: Row, name: str) -> float:
    """What a host is ranked by; nan: it has no such number."""
    name = name.lstrip("!")
    value = row.load.get(name) if row.load is not None else None
    found = read_values(row, state.cluster, state.soft).get(name) if value is None else value
    if found is None or isinstance(found, str):
        return float("nan")
    step = _STEPS.get(name)
    return round(found / step) * step if step else float(found)


Entry = tuple[bool, int, float, int, int]
"""(not marked as first, minus the preference of -m, how full, rank, row number): the smallest first."""


class Packed:
    """A class's hosts by order[binpack] or order[spread]; iterating brings the order up to what was placed."""

    def __init__(self, state: CycleState, need: Need, eligible: Eligibility) -> None:
        self._state = state
        self._need = need
        self._sign = -1.0 if need.packing == "binpack" else 1.0
        rank = ranked(state, need)
        self._rank = {at: place for place, at in enumerate(rank) if not eligible.codes[at]}
        conf = state.cluster.conf
        self._weights = dict(conf.params.lava_pack_weights)
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
        """How full a host would be with one more job of the class: 0.0 empty, 1.0 full, at most 2.0."""
        need, mine = self._need, self._state.ledger.host(row.name)
        parts: list[tuple[str, float, int]] = []
        if mine.slots < UNLIMITED:
            parts.append(("slots", mine.taken + min(need.slots, mine.slots), mine.slots))
        mem = dict((*need.per_host, *need.per_slot)).get("mem")
        if mem:
            parts.append(("mem", mine.reserved.get("mem", 0.0) + mem, row.host.facts.max_mem))
        if need.gpu is not None:
            held = sum(1 for card in mine.gpus if mine.gpu_book.jobs.get(card.uuid))
            parts.append(("gpus", held + wanted(need.gpu, 1), len(mine.gpus)))
        weights = [self._weights.get(name, 1.0) for name, _, _ in parts]
        shares = (min(2.0, used / most) if most else 2.0 for _, used, most in parts)
        total = sum(share * weight for share, weight in zip(shares, weights, strict=True))
        return round(total / sum(weights), 9) if any(weights) else 0.0
