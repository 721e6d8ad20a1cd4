"""The hosts that a class may try, the best first: row by row on few hosts, by numpy masks on many.

Rule: only hosts are left out on which ``fit.units`` would find no room (or too little for span[hosts=1]); ``units`` decides
about the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.lang.gpureq import GpuReq
from lavad.sched.hosts.rank import ranked_array, ranked_rows
from lavad.sched.needs.arrays import Floats, Ints, Mask, np
from lavad.sched.needs.columns import Columns
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row
from lavad.sched.state.cycle_state import CycleState

CHUNK = 128
"""Hosts looked at before a mask over all hosts is worth its cost."""


class Candidates:
    """A class's hosts in order of rank; full ones are passed over."""

    __slots__ = ("_eligible", "_need", "_order", "_spent", "_start", "_state")

    def __init__(self, state: CycleState, need: Need, eligible: Eligibility) -> None:
        self._state = state
        self._need = need
        self._eligible = eligible
        self._start = 0
        self._spent: set[int] = set()
        self._order: list[int] | None = None
        if state.columns is None:
            self._order = [at for at in ranked_rows(state, need) if not eligible.codes[at] and state.rows[at].free]

    def __iter__(self) -> Iterator[Row]:
        rows = self._state.rows
        for at in self._numbers():
            row = rows[at]
            if row.free:
                yield row

    def _numbers(self) -> Iterator[int]:
        columns = self._state.columns
        if self._order is not None:
            yield from self._known(self._order)
        elif columns is not None and (self._need.slots > 1 or self._need.gpu is not None or self._need.affinity is not None):
            self._order = _by_mask(self._state, columns, self._need, self._eligible)
            yield from self._order
        elif columns is not None:
            yield from _in_chunks(self._state, columns, self._need, self._eligible)

    def _known(self, order: list[int]) -> Iterator[int]:
        """Rows from the first that is not full: those before it get nothing back in this cycle."""
        rows, state = self._state.rows, self._state
        spent = self._spent if not (state.free_may_grow or state.preempted) else ()
        while not state.free_may_grow and self._start < len(order):
            at = order[self._start]
            if rows[at].free and at not in spent:
                break
            self._start += 1
        for place in range(self._start, len(order)):
            if order[place] not in spent:
                yield order[place]

    def spend(self, at: int) -> None:
        """A host has no room for this class, and will have none while slots are only given out."""
        self._spent.add(at)


def _in_chunks(state: CycleState, columns: Columns, need: Need, eligible: Eligibility) -> Iterator[int]:
    """The first ``CHUNK`` hosts in rank that are not full, then all others."""
    rank = ranked_array(state, columns, need)
    start = 0 if state.free_may_grow else state.rank_starts.get(need.order_key, 0)
    while not state.free_may_grow and start < len(rank) and not columns.free[rank[start]]:
        start += 1
    if not state.free_may_grow:
        state.rank_starts[need.order_key] = start
    chunk = rank[start : start + CHUNK]
    yield from chunk[may_use(state, columns, need, eligible, chunk)].tolist()
    if start + CHUNK >= len(rank):
        return
    mask = may_use(state, columns, need, eligible)
    if not mask.any():
        return
    rest = rank[start + CHUNK :]
    size = CHUNK
    while len(rest):
        chunk, rest = rest[:size], rest[size:]
        size *= 4
        yield from chunk[mask[chunk]].tolist()


def rooms(state: CycleState, columns: Columns, name: str) -> Floats:
    """What may still be reserved of a resource on each host. Shape: (hosts,)."""
    if state.ledger.is_shared(name):
        return state.shared_rooms(name)
    return columns.room(name, lambda at: state.room(state.rows[at], name))


def may_use(state: CycleState, columns: Columns, need: Need, eligible: Eligibility, some: Ints | None = None) -> Mask:
    """Which hosts (of the rows ``some``, or of all) may have room for the class."""
    left = state.free_slots(columns)
    ok, free = (eligible.ok, left) if some is None else (eligible.ok[some], left[some])
    mask: Mask = ok & (free >= need.least_on_host)
    if need.spec.exclusive:
        mask &= ~(columns.busy if some is None else columns.busy[some])
    for name, amount in (*need.per_host, *need.per_slot, *need.shared):
        room = rooms(state, columns, name)
        mask &= (room if some is None else room[some]) + 1e-6 >= amount
    open_ = state.spent.mask(need)
    if open_ is not None:
        mask &= open_ if some is None else open_[some]
    if state.pools is not None:
        mask &= _left_by_pools(state, need, mask, slice(None) if some is None else some)
    return mask


def _left_by_pools(state: CycleState, need: Need, mask: Mask, some: Ints | slice) -> Mask:
    """The hosts of which guaranteed pools leave enough to the class, of those in ``mask``, which are the rows ``some``."""
    left = mask.copy()
    amounts = [amount for name, amount in (*need.per_host, *need.per_slot, *need.shared) if name == "mem"]
    for pool in state.pools.columns(need.spec) if state.pools is not None else ():
        enough = pool.slots[some] >= need.least_on_host
        if (mem := pool.mem) is not None and amounts:
            enough &= mem[some] + 1e-6 >= max(amounts)
        pool.note_wait(left & ~enough)
        left &= enough
    return left


def may_fit(state: CycleState, columns: Columns, need: Need, eligible: Eligibility) -> bool:
    """Whether hosts may have room for a job of the class; False: they have too few slots for sure."""
    mask = may_use(state, columns, need, eligible)
    if need.gpu is not None and mask.any():
        mask &= _with_gpus(state, columns, need.gpu)
    return bool(mask.any()) and _has_enough(state, columns, need, mask)


def _with_gpus(state: CycleState, columns: Columns, gpu: GpuReq) -> Mask:
    """The hosts that have the GPUs of at least one task, or of a job on one host. Shape: (hosts,)."""
    left = columns.gpus(gpu, lambda at: state.rows[at].gpus_left(state.ledger, gpu))
    return np.asarray(left >= (gpu.num or 1))


def _by_mask(state: CycleState, columns: Columns, need: Need, eligible: Eligibility) -> list[int]:
    mask = may_use(state, columns, need, eligible)
    if not _has_enough(state, columns, need, mask):
        return []
    rank = ranked_array(state, columns, need)
    found: list[int] = rank[mask[rank]].tolist()
    return found


def _has_enough(state: CycleState, columns: Columns, need: Need, mask: Mask) -> bool:
    """Whether the hosts together could hold the job, as far as slots go."""
    offered = state.free_slots(columns)[mask]
    if not state.cluster.conf.params.parallel_sched_by_slot:
        offered = np.minimum(offered, columns.ncpus[mask])
    if limits := state.spent.slots(need):
        offered = np.minimum(offered, limits.left[mask])
    for name, amount in need.per_slot:
        offered = np.minimum(offered, (rooms(state, columns, name)[mask] + 1e-6) // amount)
    if not need.ptile:
        return bool(offered.sum() >= need.slots)
    tiles = offered >= need.ptile  # beside those, one host may have the rest (``choose``)
    return bool(tiles.sum() * need.ptile + offered[~tiles].max(initial=0) >= need.slots)
