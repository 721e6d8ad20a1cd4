"""In which order a class tries hosts: preference (host+n of -m, else of HOSTS) first, then order[], then as configured.

Rule: a ranking is made once a cycle, from hosts as they were at its beginning. What follows each placement is in ``packing``.
"""

from __future__ import annotations

from lavad.sched.needs.arrays import Ints, np
from lavad.sched.needs.columns import Columns
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row, read_values
from lavad.sched.state.cycle_state import CycleState

_STEPS = {"r15s": 0.2, "r1m": 0.2, "r15m": 0.2, "pg": 1.0, "io": 1.0}
"""Loads are rounded to these steps: else noise alone would scatter jobs over idle hosts."""


def ranked_rows(state: CycleState, need: Need) -> list[int]:
    """Row numbers, the best host first; for few hosts."""
    found = state.rankings.get(need.order_key)
    if found is None:
        columns = [_column(state, name, back) for name, back in need.order or state.cache.rules.order]
        if need.preferred:
            columns = [*_preference(state, need), *columns]
        keys = list(zip(*columns, strict=True))
        found = state.rankings[need.order_key] = sorted(range(len(state.rows)), key=keys.__getitem__)
    return found


def ranked_array(state: CycleState, columns: Columns, need: Need) -> Ints:
    """The same for many hosts, as an array of shape (hosts,)."""
    found = state.ranked_arrays.get(need.order_key)
    if found is None:
        keys = []
        for name, back in need.order or state.cache.rules.order:

            def read(at: int, name: str = name) -> float:
                return _number(state, state.rows[at], name)

            keys.append(columns.value(f"rank {name}", read) * (1.0 if _is_up(state, name, back) else -1.0))
        if need.preferred:
            keys = [*(np.asarray(key, dtype=np.float64) for key in _preference(state, need)), *keys]
        # nan (no such number) sorts last whichever way the key counts
        found = state.ranked_arrays[need.order_key] = np.lexsort(keys[::-1])
    array: Ints = found
    return array


def ranked(state: CycleState, need: Need) -> list[int]:
    """Row numbers, the best host first."""
    return ranked_rows(state, need) if state.columns is None else ranked_array(state, state.columns, need).tolist()


def _preference(state: CycleState, need: Need) -> list[list[float]]:
    """Two sort keys by row: whether a host is not marked as first (`host!`), and minus its preference (`host+n`)."""
    levels = state.cluster.conf.groups_of_hosts.preferences(need.preferred, state.cache.by_name)
    first = state.cluster.conf.groups_of_hosts.first_hosts(need.preferred, state.cache.by_name)
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
