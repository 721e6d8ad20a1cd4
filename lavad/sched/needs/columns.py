"""The same hosts as numpy columns of shape (hosts,), for large clusters: they rule most hosts out in a few microseconds.

Rule: columns only speed up what rows decide: what a column rules out, ``fit.units`` finds no room on either. A column is made
when it is first asked for, and then kept up to date row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lavad.core.lang.gpureq import GpuReq
from lavad.sched.needs.arrays import Floats, Ints, Ints32, Mask, np
from lavad.sched.needs.rows import Row

FEW = 64
"""Below this number of hosts a plain loop is faster."""
MOST_GPU_REQS = 64
"""Different GPU requirements of which a column is kept."""
Key = TypeVar("Key")


class Columns:
    """``codes`` (why a host takes no jobs, 0: it does), ``free`` slots, whether a job has the host for itself, whether any has a
    part of it, CPUs; by resource ``rooms`` (what may still be reserved) and ``values`` (nan: it has none); by requirement the
    GPUs that are free for it, and the pend reason where these are too few."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.codes: Ints32 = np.full(count, -1, dtype=np.int32)
        self.free: Ints = np.zeros(count, dtype=np.int64)
        self.exclusive: Mask = np.zeros(count, dtype=np.bool_)
        self.busy: Mask = np.zeros(count, dtype=np.bool_)
        self.ncpus: Ints = np.zeros(count, dtype=np.int64)
        self.rooms: dict[str, Floats] = {}
        self.values: dict[str, Floats] = {}
        self.free_gpus: dict[GpuReq, Floats] = {}
        self.why_no_gpus: dict[GpuReq, Floats] = {}
        self.stale_rooms: dict[str, set[int]] = {}
        self.stale_values: dict[str, set[int]] = {}
        self.stale_gpus: dict[GpuReq, set[int]] = {}
        self.stale_reasons: dict[GpuReq, set[int]] = {}
        self.changes = 0
        """Grows with each row that changes."""

    def renew(self, row: Row) -> None:
        """Take over a row that was renewed from the cluster."""
        self.ncpus[row.index] = row.host.facts.ncpus
        for stale in self.stale_values.values():
            stale.add(row.index)
        self.refresh(row)

    def refresh(self, row: Row) -> None:
        """Take over a row after something was placed on its host."""
        self.free[row.index] = row.free
        self.exclusive[row.index] = row.exclusive
        self.busy[row.index] = row.busy
        self.changes += 1
        for stale in (*self.stale_rooms.values(), *self.stale_gpus.values(), *self.stale_reasons.values()):
            stale.add(row.index)

    def sum_free(self) -> int:
        """Free slots of all hosts that take jobs."""
        return int(self.free[self.codes == 0].sum())

    def room(self, name: str, read: Callable[[int], float]) -> Floats:
        """What may still be reserved of a resource; ``read`` gives it for one row number."""
        return _column(self.rooms, self.stale_rooms, name, self.count, read)

    def value(self, name: str, read: Callable[[int], float]) -> Floats:
        """A value of each host, nan where it has none; ``read`` gives it for one row number."""
        return _column(self.values, self.stale_values, name, self.count, read)

    def gpus(self, req: GpuReq, read: Callable[[int], float]) -> Floats:
        """How many GPUs a job with this requirement may get on each host."""
        if len(self.free_gpus) > MOST_GPU_REQS:
            self.free_gpus.clear()
            self.stale_gpus.clear()
        return _column(self.free_gpus, self.stale_gpus, req, self.count, read)

    def gpu_reasons(self, req: GpuReq, read: Callable[[int], float]) -> Floats:
        """The pend reason of each host for a job that it has too few GPUs for."""
        if len(self.why_no_gpus) > MOST_GPU_REQS:
            self.why_no_gpus.clear()
            self.stale_reasons.clear()
        return _column(self.why_no_gpus, self.stale_reasons, req, self.count, read)


def _column(
    columns: dict[Key, Floats], stale: dict[Key, set[int]], name: Key, count: int, read: Callable[[int], float]
) -> Floats:
    column = columns.get(name)
    if column is None:
        column = columns[name] = np.fromiter(map(read, range(count)), dtype=np.float64, count=count)
        stale[name] = set()
    elif stale[name]:
        for at in stale[name]:
            column[at] = read(at)
        stale[name].clear()
    return column
