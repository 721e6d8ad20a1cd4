"""What limits and pools that count several hosts leave to one job at most, whatever hosts it gets.

Rule: an upper bound of what keeps within them (``over_hosts``), so that a job that cannot keep within them is found without
choosing hosts for it.
"""

from __future__ import annotations

from lavad.core.cluster.gpu_book import gpu_amounts
from lavad.core.site.pend_reason import LIMIT_RESOURCE, LIMIT_SLOTS
from lavad.sched.needs.arrays import Floats, Ints, Mask, np
from lavad.sched.needs.needs import Need
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.pool_columns import PoolLeft


class MostTogether:
    """To one job of a class. What hosts offer has the shape (hosts,); reasons are 0 where enough may be left."""

    def __init__(self, state: CycleState, need: Need) -> None:
        self._state = state
        self._need = need
        self._limits = state.limits.over_hosts(need.spec)
        self._pools = state.pools.columns(need.spec) if state.pools is not None else []

    def __bool__(self) -> bool:
        return bool(self._limits or self._pools)

    def why_not_slots(self, offered: Ints | Floats, wanted: int) -> int:
        """Why the job cannot have so many slots of those that each host offers."""
        for at, left, _ in self._limits:
            if self._most(at, offered, left) < wanted:
                return LIMIT_SLOTS + at
        rest, most = offered.astype(np.int64), 0
        short: list[PoolLeft] = []
        for pool in self._pools:  # a host of several pools counts for the first of them
            own, rest = rest, np.where(pool.columns.members, 0, rest)
            found = pool.most_slots(own)
            if found < int(own[pool.columns.members].sum()):
                short.append(pool)
            most += found
            if most + int(rest.sum()) < wanted:
                for one in short:  # what any of them lends may be enough
                    one.note_wait(one.columns.members)
                return pool.reason
        return 0

    def why_not_gpus(self, offered: Ints | Floats, wanted: int) -> int:
        """Why it cannot have so many of the GPUs that each host offers."""
        gpus = offered.astype(np.float64)
        each = gpu_amounts(self._need.spec, 1)
        return next(filter(None, (self.why_not_amount(name, gpus * amount, wanted * amount) for name, amount in each)), 0)

    def why_not_amount(self, name: str, offered: Ints | Floats, wanted: float) -> int:
        """Why it cannot have so much of a resource of what each host offers."""
        for at, _, amounts in self._limits:
            if name in amounts and self._most(at, offered, amounts[name]) + 1e-6 < wanted:
                return LIMIT_RESOURCE + at
        return 0

    def _most(self, at: int, offered: Ints | Floats, left: float) -> float:
        """Of what all hosts offer, what a limit leaves at most."""
        counted = self._counted(at)
        return float(offered[~counted].sum() + min(offered[counted].sum(), max(0.0, left)))

    def _counted(self, at: int) -> Mask:
        """The hosts that a limit counts."""
        known, book = self._state.cache.limit_hosts, self._state.limits.book
        found = known.get(at)
        if found is None:
            found = known[at] = np.array([book.on_host(at, row.name) for row in self._state.rows], dtype=np.bool_)
        return found
