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
from lavad.sched.state.cycle_state import View

_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "==": np.equal,
    "!=": np.not_equal,
    ">=": np.greater_equal,
    "<=": np.less_equal,
    ">": np.greater,
    "<": np.less,
}
_KEPT = 1000


def select_mask(view: View, columns: Columns, expr: Expr, local: str) -> Mask:
    """Which hosts fit."""
    kind = expr[0]
    if kind in ("and", "or"):
        masks = [select_mask(view, columns, part, local) for part in expr[1:]]
        return np.asarray(np.logical_and.reduce(masks) if kind == "and" else np.logical_or.reduce(masks))
    if kind == "not":
        return ~select_mask(view, columns, expr[1], local)
    if kind in _OPS and expr[1][0] == "name" and expr[2][0] == "num":
        column = _numbers(view, columns, expr[1][1])
        if column is not None:
            return np.asarray(_OPS[kind](column, expr[2][1]) & ~np.isnan(column))
    return _by_host(view, expr, local)


def _numbers(view: View, columns: Columns, name: str) -> Any:
    """A column of numbers; None if the resource is a text on some host."""
    if name in view.memory.texts:
        return None

    def read(at: int) -> float:
        value: Value | None = read_values(view.rows[at], view.cluster, view.soft).get(name)
        if isinstance(value, str):
            view.memory.texts.add(name)
            return float("nan")
        return float("nan") if value is None else float(value)

    column = columns.value(name, read)
    return None if name in view.memory.texts else column


def _by_host(view: View, expr: Expr, local: str) -> Mask:
    memory = view.memory
    moving = not memory.dynamic.isdisjoint(names_in(expr))
    made = (memory.state_seen, memory.rows_seen if moving else -1)
    kept = memory.masks.get((expr, local))
    if kept is not None and kept[0] == made:
        return np.asarray(kept[1])
    test = compile_select(expr, local)
    count = len(view.rows)
    found = (test(read_values(row, view.cluster, view.soft)) for row in view.rows)
    mask: Mask = np.fromiter(found, dtype=np.bool_, count=count)
    if len(memory.masks) >= _KEPT:
        memory.masks.clear()
    memory.masks[expr, local] = (made, mask)
    return mask
