"""A select expression over all hosts at once.

Rule: a comparison of a number of hosts with a constant is one numpy operation; every other test is made host by host by
``resreq_eval`` (which defines the meaning) and kept, where it reads facts only, until a host changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lavad.core.lang.resreq.eval import Value, compile_select
from lavad.core.lang.resreq.text import Expr, names_in
from lavad.sched.needs.columns import Columns, Mask
from lavad.sched.needs.rows import read_values
from lavad.sched.state.cycle_state import CycleState

_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "==": np.equal,
    "!=": np.not_equal,
    ">=": np.greater_equal,
    "<=": np.less_equal,
    ">": np.greater,
    "<": np.less,
}
_KEPT = 1000


def select_mask(state: CycleState, columns: Columns, expr: Expr, local: str) -> Mask:
    """Which hosts fit."""
    kind = expr[0]
    if kind in ("and", "or"):
        masks = [select_mask(state, columns, part, local) for part in expr[1:]]
        return np.asarray(np.logical_and.reduce(masks) if kind == "and" else np.logical_or.reduce(masks))
    if kind == "not":
        return ~select_mask(state, columns, expr[1], local)
    if kind in _OPS and expr[1][0] == "name" and expr[2][0] == "num":
        column = _numbers(state, columns, expr[1][1])
        if column is not None:
            return np.asarray(_OPS[kind](column, expr[2][1]) & ~np.isnan(column))
    return _by_host(state, expr, local)


def _numbers(state: CycleState, columns: Columns, name: str) -> Any:
    """A column of numbers; None if the resource is a text on some host."""
    if name in state.cache.texts:
        return None

    def read(at: int) -> float:
        value: Value | None = read_values(state.rows[at], state.cluster, state.soft).get(name)
        if isinstance(value, str):
            state.cache.texts.add(name)
            return float("nan")
        return float("nan") if value is None else float(value)

    column = columns.value(name, read)
    return None if name in state.cache.texts else column


def _by_host(state: CycleState, expr: Expr, local: str) -> Mask:
    cache = state.cache
    depends_on_load = not cache.dynamic.isdisjoint(names_in(expr))
    made_from = (cache.state_seen, cache.rows_seen if depends_on_load else -1)
    kept = cache.masks.get((expr, local))
    if kept is not None and kept[0] == made_from:
        return np.asarray(kept[1])
    test = compile_select(expr, local)
    count = len(state.rows)
    found = (test(read_values(row, state.cluster, state.soft)) for row in state.rows)
    mask: Mask = np.fromiter(found, dtype=np.bool_, count=count)
    if len(cache.masks) >= _KEPT:
        cache.masks.clear()
    cache.masks[expr, local] = (made_from, mask)
    return mask
