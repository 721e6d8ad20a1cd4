"""The hosts that a class may try, best first: for few hosts by a walk, for many by numpy masks.

Rule: this leaves out only hosts of which ``fit.units`` would give nothing (or less than the whole job where one host
must take it all); ``units`` decides about the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lavad.sched.hosts.rank import Ranks, ranked_array, ranked_rows
from lavad.sched.needs.bases import Base
from lavad.sched.needs.columns import Columns, Ints, Mask
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row
from lavad.sched.state.cycle_state import View

CHUNK = 128
"""Hosts looked at before masks over all of them are worth their cost."""


class Candidates:
    """A class's hosts in order of rank; those that have nothing left are passed over."""

    __slots__ = ("_base", "_need", "_order", "_spent", "_start", "_view")

    def __init__(self, view: View, need: Need, base: Base) -> None:
        self._view = view
        self._need = need
        self._base = base
        self._start = 0
        self._spent: set[int] = set()
        self._order: list[int] | None = None
        if view.columns is None:
            self._order = [at for at in ranked_rows(view, need) if not base.codes[at] and view.rows[at].free]

    def __iter__(self) -> Iterator[Row]:
        rows = self._view.rows
        for at in self._numbers():
            row = rows[at]
            if row.free:
                yield row

    def _numbers(self) -> Iterator[int]:
        columns = self._view.columns
        if self._order is not None:
            yield from self._known(self._order)
        elif columns is not None and (self._need.slots > 1 or self._need.gpu is not None or self._need.affinity is not None):
            self._order = _by_mask(self._view, columns, self._need, self._base)
            yield from self._order
        elif columns is not None:
            yield from _in_chunks(self._view, columns, self._need, self._base)

    def _known(self, order: list[int]) -> Iterator[int]:
        """From the first host that still has something: the ones before it never get anything back in this cycle."""
        rows, view = self._view.rows, self._view
        spent = self._spent if not (view.holds or view.preempted) else ()
        while not view.holds and self._start < len(order):
            at = order[self._start]
            if rows[at].free and at not in spent:
                break
            self._start += 1
        for place in range(self._start, len(order)):
            if order[place] not in spent:
                yield order[place]

    def spend(self, at: int) -> None:
        """A host has nothing for this class, and will have nothing while what is there is only given out."""
        self._spent.add(at)


def _in_chunks(view: View, columns: Columns, need: Need, base: Base) -> Iterator[int]:
    """The first hosts in rank that are not full, then all others."""
    rank = ranked_array(view, columns, need)
    start = 0 if view.holds else view.rank_starts.get(need.order_key, 0)
    while not view.holds and start < len(rank) and not columns.free[rank[start]]:
        start += 1
    if not view.holds:
        view.rank_starts[need.order_key] = start
    chunk = rank[start : start + CHUNK]
    yield from chunk[_mask(view, columns, need, base, chunk)].tolist()
    if start + CHUNK >= len(rank):
        return
    mask = _mask(view, columns, need, base, None)
    if not mask.any():
        return
    rest = rank[start + CHUNK :]
    size = CHUNK
    while len(rest):
        chunk, rest = rest[:size], rest[size:]
        size *= 4
        yield from chunk[mask[chunk]].tolist()


def least(need: Need) -> int:
    """Slots that a host must have to be of any use."""
    return need.slots if need.one_host else 1


def room_mask(view: View, columns: Columns, name: str, amount: float) -> Mask:
    """Hosts where ``amount`` of a resource may still be reserved."""
    column = columns.room(name, lambda at: view.room(view.rows[at], name))
    return np.asarray(column + 1e-6 >= amount)


def _mask(view: View, columns: Columns, need: Need, base: Base, some: Ranks | None) -> Mask:
    """Which hosts (``some`` of them, or all) may have something for the class."""
    left = view.free_slots(columns)
    ok, free = (base.ok, left) if some is None else (base.ok[some], left[some])
    mask: Mask = ok & (free >= least(need))
    for name, amount in (*need.per_host, *need.per_slot):
        if not view.ledger.is_shared(name):
            column = columns.room(name, lambda at, name=name: view.room(view.rows[at], name))  # type: ignore[misc]
            mask &= (column if some is None else column[some]) + 1e-6 >= amount
    return mask


def _by_mask(view: View, columns: Columns, need: Need, base: Base) -> list[int]:
    mask = _mask(view, columns, need, base, None)
    if not _has_enough(view, view.free_slots(columns)[mask], columns.ncpus[mask], need):
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
