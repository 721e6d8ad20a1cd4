"""Hosts that this cycle has found without room for kinds of jobs, by what no row says: limits on hosts, processors, pauses.

Rule: a note is an upper bound, as hosts only fill up while jobs are placed. What is noted of a host is forgotten when its row is
renewed, and what a limit leaves to several hosts together when something is given back, be it for a look into the future.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lavad.core.cluster.gpu_book import gpu_amounts
from lavad.core.rules.limits import Limits
from lavad.core.site.pend_reason import PendReason
from lavad.sched.needs.arrays import Floats, Ints, Mask, np
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row

if TYPE_CHECKING:
    from lavad.sched.state.cycle_state import CycleState

_NO_CPUS = (PendReason.HOST_NO_CPUS, PendReason.HOST_NO_TOPOLOGY)
Key = tuple[object, ...]


class Bounds:
    """Of each host, what it has left at most (inf: nothing is noted), and the pend reason of those with too little."""

    __slots__ = ("left", "placed", "together", "why")

    def __init__(self, count: int, together: bool, placed: int) -> None:
        self.left: Floats = np.full(count, np.inf)
        self.why: Ints = np.zeros(count, dtype=np.int64)
        self.together = together
        """Whether several hosts share what is left."""
        self.placed = placed
        """How many jobs the cycle had placed when nothing was noted."""


class SpentHosts:
    """The notes of one cycle; of many hosts only (``Columns``)."""

    def __init__(self, state: CycleState) -> None:
        self._state = state
        self._bounds: dict[Key, Bounds] = {}
        self._of_row: dict[int, list[Bounds]] = {}
        self._given_back = 0
        self._started: Floats | None = None
        """When the last job was started on each host (seconds since the epoch, 0.0: none is there); None: nobody has asked."""

    def note(self, need: Need, row: Row, count: int, reason: int) -> None:
        """A host has too few slots for a class, ``count``: keep why, where other classes will find the same."""
        if self._state.columns is None:
            return
        if not count and reason in _NO_CPUS:
            self._keep(_cpus(need), row, 0.0, reason)
        if self._has_limits(need):
            self._note_limits(need, row)

    def note_limits(self, need: Need) -> None:
        """Note of every host that has free slots what limits leave to a class there; to be asked of many hosts only."""
        columns = self._state.columns
        if columns is None or not self._has_limits(need):
            return
        self.renew(need)
        unknown = self._are_unknown(self._limits(need))
        if need.gpu is not None:  # classes without GPUs, or with others, have noted nothing of these
            unknown |= self._are_unknown(self._limits(need, gpu_amounts(need.spec, 1)))
        for at in np.flatnonzero((columns.free > 0) & unknown).tolist():
            self._note_limits(need, self._state.rows[at])

    def _are_unknown(self, key: Key) -> Mask:
        """The hosts of which nothing is noted."""
        known = self._known(key)
        return np.ones(len(self._state.rows), dtype=np.bool_) if known is None else ~np.isfinite(known.left)

    def _has_limits(self, need: Need) -> bool:
        limits = self._state.limits
        return limits.book.has_host_limits(need.spec) and limits.for_new_jobs

    def _note_limits(self, need: Need, row: Row) -> None:
        limits, spec = self._state.limits, need.spec
        # what pools keep (PoolLimits) is no upper bound: it may be lent later in the cycle
        left, why = Limits.host_left(limits, spec, row.name)
        together = limits.book.over_hosts_together(spec)
        self._keep(self._limits(need), row, left, why, together)
        for name, room, why in Limits.amounts_left(limits, spec, row.name):
            self._keep(self._limits(need, name), row, room, why, together)
        if need.gpu is not None:
            room, why = Limits.gpus_left(limits, spec, row.name)
            self._keep(self._limits(need, gpu_amounts(spec, 1)), row, room, why, together)

    def forget(self, row: Row) -> None:
        """Something was placed on a host or taken away: it is to be asked anew."""
        for bounds in self._of_row.pop(row.index, ()):
            bounds.left[row.index] = np.inf
        if self._started is not None:
            self._started[row.index] = self._state.last_start(row)

    def _keep(self, key: Key, row: Row, left: float, reason: int, together: bool = False) -> None:
        bounds = self._known(key)
        if bounds is None:
            bounds = self._bounds[key] = Bounds(len(self._state.rows), together, len(self._state.ledger.placed))
        if left < bounds.left[row.index]:
            bounds.left[row.index], bounds.why[row.index] = left, reason
            self._of_row.setdefault(row.index, []).append(bounds)

    def _known(self, key: Key) -> Bounds | None:
        given_back = self._state.limits.given_back
        if given_back != self._given_back:
            self._given_back = given_back
            self._bounds = {key: bounds for key, bounds in self._bounds.items() if not bounds.together}
        return self._bounds.get(key)

    def _limits(self, need: Need, of: object = "") -> Key:
        return self._state.limits.book.on_hosts(need.spec), of

    def pausing(self, need: Need) -> Mask | None:
        """Hosts on which a job was started too short a time ago; None: jobs of this class are started without pauses."""
        return self._ready(need) > self._state.now if need.accept_gap else None

    def wake_after_pauses(self, need: Need, hosts: Mask) -> None:
        """A class waits for the pauses of these hosts: wake the scheduler when the first is over."""
        if hosts.any():
            self._state.retry_blocked = True
            self._state.wake(float(self._ready(need)[hosts].min()))

    def _ready(self, need: Need) -> Floats:
        if self._started is None:
            self._started = np.fromiter(map(self._state.last_start, self._state.rows), dtype=np.float64)
        return self._started + need.accept_gap

    def renew(self, need: Need) -> None:
        """A class is to be told why it waits: what several hosts share is noted anew where jobs were placed since."""
        names = ("", *(name for name, _ in (*need.per_slot, *need.per_host, *need.shared)))
        placed = len(self._state.ledger.placed)
        for bounds in (self._bounds.get(self._limits(need, name)) for name in names if self._bounds):
            if bounds is not None and bounds.together and bounds.placed != placed:
                bounds.left.fill(np.inf)
                bounds.placed = placed

    def processors(self, need: Need) -> Bounds | None:
        """Of hosts without processors for a task of a class, 0; None: nothing is noted, or it needs none of its own."""
        return self._known(_cpus(need)) if need.affinity is not None else None

    def slots(self, need: Need) -> Bounds | None:
        """Slots that limits leave to jobs of a class; None: nothing is noted, or no limit on hosts is about it."""
        return self._known(self._limits(need)) if self._bounds and self._has_limits(need) else None

    def gpus(self, need: Need) -> Bounds | None:
        """GPUs that limits leave to jobs of a class; None: nothing is noted."""
        noted = need.gpu is not None and self.slots(need) is not None
        return self._known(self._limits(need, gpu_amounts(need.spec, 1))) if noted else None

    def amounts(self, need: Need) -> Iterator[tuple[str, float, Bounds]]:
        """(resource, what the class takes of it, what limits leave), where that is noted."""
        for name, amount in (*need.per_slot, *need.per_host, *need.shared):
            if bounds := self.amount(need, name):
                yield name, amount, bounds

    def amount(self, need: Need, name: str) -> Bounds | None:
        """What limits leave of a resource to jobs of a class; None: nothing is noted."""
        return self._known(self._limits(need, name)) if self.slots(need) is not None else None

    def short(self, need: Need) -> Iterator[tuple[Mask, Ints]]:
        """(hosts that have too little for even one slot, why) by each that is noted."""
        for bounds in (self.processors(need), self.slots(need)):
            if bounds is not None:
                yield bounds.left <= 0, bounds.why
        for _, amount, bounds in self.amounts(need):
            yield bounds.left + 1e-6 < amount, bounds.why

    def mask(self, need: Need) -> Mask | None:
        """Hosts that may have room for a class; None: all, as far as it is noted. Shape: (hosts,)."""
        if self._state.columns is None:
            return None
        found = [] if (pausing := self.pausing(need)) is None else [pausing]
        found += [short for short, _ in self.short(need)]
        slots = self.slots(need) if need.least_on_host > 1 else None
        if slots is not None:
            found.append(slots.left < need.least_on_host)
        if need.gpu is not None and (gpus := self.gpus(need)):
            found.append(gpus.left < (need.gpu.num or 1))
        return ~np.logical_or.reduce(found) if found else None


def _cpus(need: Need) -> Key:
    return "processors", need.affinity
