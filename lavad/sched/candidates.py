"""The hosts that a class may try, best first: for few hosts by a walk, for many by numpy masks.

Rule: this leaves out only hosts of which ``fit.units`` would give nothing (or less than the whole job where one host
must take it all); ``units`` decides about the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lavad.sched.columns import Columns, Ints, Mask
from lavad.sched.eligible import Base
from lavad.sched.needs import Need
from lavad.sched.rank import ranked_array, ranked_rows
from lavad.sched.rows import Row
from lavad.sched.view import View


class Candidates:
    """A class's hosts in order of rank. ``drop_first`` forgets those that have nothing left for it."""

    __slots__ = ("_order", "_start", "_view")

    def __init__(self, view: View, need: Need, base: Base) -> None:
        self._view = view
        self._start = 0
        if view.columns is None:
            self._order = [at for at in ranked_rows(view, need) if not base.codes[at] and view.rows[at].free]
        else:
            self._order = _by_mask(view, view.columns, need, base)

    def __iter__(self) -> Iterator[Row]:
        rows, order = self._view.rows, self._order
        for place in range(self._start, len(order)):
            row = rows[order[place]]
            if row.free:
                yield row
            elif place == self._start:
                self._start += 1


def least(need: Need) -> int:
    """Slots that a host must have to be of any use."""
    return need.slots if need.one_host else 1


def room_mask(view: View, columns: Columns, need: Need, name: str, amount: float) -> Mask:
    """Hosts where ``amount`` of a resource may still be reserved."""
    column = columns.room(name, lambda at: view.room(view.rows[at], name))
    return np.asarray(column + 1e-6 >= amount)


def _by_mask(view: View, columns: Columns, need: Need, base: Base) -> list[int]:
    mask = base.ok & (columns.free >= least(need))
    for name, amount in (*need.per_host, *need.per_slot):
        if not view.ledger.is_shared(name):
            mask &= room_mask(view, columns, need, name, amount)
    if not mask.any():
        return []
    if need.slots > 1 and not _has_enough(view, columns.free[mask], columns.ncpus[mask], need):
        return []
    rank = ranked_array(view, columns, need)
    found: list[int] = rank[mask[rank]].tolist()
    return found


def _has_enough(view: View, free: Ints, ncpus: Ints, need: Need) -> bool:
    """Whether the hosts together could hold the job, as far as slots go."""
    offered = free if view.cluster.conf.params.parallel_by_slot else np.minimum(free, ncpus)
    if need.ptile:
        offered = np.minimum(offered, need.ptile)
    return int(offered.sum()) >= need.slots
