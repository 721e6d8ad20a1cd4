"""Advance reservations (brsvadd) in a cycle: the slots of each host that a class must leave to them, or may have of its own.

Rule: nothing is shifted on the ledger. What must be left is one dictionary (and column) for all classes that end before the
same begin or end (edge) of a reservation, so that cost grows with edges and reserved hosts, not with classes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from lavad.core.rules.ledger import Ledger
from lavad.core.rules.reserved import NEVER, Reserved
from lavad.core.site.reservation import is_active
from lavad.sched.needs.arrays import Ints, Ints32, np
from lavad.sched.needs.needs import Need
from lavad.sched.state.scheduler_cache import SchedulerCache

_Key = tuple[object, ...]


class _Level:
    """Host to the slots that the classes of one level must leave, up to the ``seen``-th change of a host in this cycle."""

    __slots__ = ("column", "kept", "seen")

    def __init__(self, kept: dict[str, int], seen: int) -> None:
        self.kept = kept
        self.seen = seen
        self.column: Ints | None = None


class AdvanceReservations:
    """The reservations of one cycle. ``set_turn`` says which class the other methods answer for."""

    def __init__(self, ledger: Ledger, cache: SchedulerCache, now: float) -> None:
        self.now = now
        self.reserved = Reserved(ledger, now, cache.ends)
        self._by_name = cache.by_name
        self._run_times = cache.run_times
        factors = cache.run_times.factors
        self._unlike = tuple({factors.get(host): host for host in self.reserved.by_host}.values())
        """A reserved host of each CPU factor."""
        self._levels: dict[_Key, _Level] = {}
        self._level = _Level({}, 0)
        self._reasons: Ints32 | None = None
        self.edges = sorted({edge for edge in self.reserved.edges() if edge > now})
        """Times still to come at which a reservation begins or ends."""
        activity = tuple((row, is_active(row, now)) for row in self.reserved.rows.values())
        if activity != cache.reservations:
            cache.reservations = activity
            cache.state_seen += 1
            cache.changed.note_all()
            cache.retry_blocked = True
        known = cache.ends
        for host in [host for host in known if host not in self.reserved.by_host]:
            del known[host]

    def set_turn(self, need: Need, start: float = 0.0) -> set[str]:
        """It is this class's turn, for a start at ``start`` (default: now).

        Returns the hosts whose free slots may be other than for the class before.
        """
        if not self.reserved.rows:
            return set()
        self.reserved.catch_up()
        start = max(start, self.now)
        before = self._level
        key = self._key_of(need, start)
        level = self._levels.get(key)
        if level is None:
            level = self._levels[key] = _Level({}, len(self.reserved.changed))
            self._renew(level, need, start, () if need.spec.reservation else self.reserved.by_host)
        elif level.seen < len(self.reserved.changed):
            self._renew(level, need, start, self.reserved.changed[level.seen :])
            level.seen = len(self.reserved.changed)
        self._level = level
        return before.kept.keys() | level.kept.keys() if level is not before else set()

    def _key_of(self, need: Need, start: float) -> _Key:
        if need.spec.reservation:
            return (need.spec.reservation,)
        own = need.spec.queue if any(need.spec.queue in row.queues for row in self.reserved.rows.values()) else ""
        ends = tuple(bisect_left(self.edges, self._end(need, start, host)) for host in self._unlike)
        return (ends, bisect_right(self.edges, start), own, need.spec.exclusive)

    def _end(self, need: Need, start: float, host: str) -> float:
        limit = need.spec.limits.run
        return NEVER if limit is None else start + self._run_times.on(need.spec, limit, host)

    def _renew(self, level: _Level, need: Need, start: float, hosts: Iterable[str]) -> None:
        for host in hosts if not need.spec.reservation else ():
            kept = self.reserved.kept(need.spec, host, start, self._end(need, start, host))
            row = self._by_name.get(host)
            if kept > 0:
                level.kept[host] = kept
            else:
                level.kept.pop(host, None)
            if level.column is not None and row is not None:
                level.column[row.index] = max(0, kept)

    def column(self, free: Ints) -> Ints:
        """Free slots less what the class must leave. Shape: (hosts,)."""
        level = self._level
        if not level.kept:
            return free
        if level.column is None:
            level.column = np.zeros(len(free), dtype=np.int64)
            for host, slots in level.kept.items():
                row = self._by_name.get(host)
                if row is not None:
                    level.column[row.index] = slots
        return free - level.column

    def explain(self, codes: Ints32, free: Ints) -> None:
        """Set the pend reason of hosts whose slots the class must leave, where there is none yet."""
        level = self._level
        if not level.kept:
            return
        if self._reasons is None:
            self._reasons = np.zeros(len(free), dtype=np.int32)
            for host in self.reserved.by_host:
                row = self._by_name.get(host)
                if row is not None:
                    self._reasons[row.index] = self.reserved.reason(host)
        touched = (codes == 0) & (free > 0) & (self.column(free) < free)
        codes[touched] = self._reasons[touched]

    def left(self, need: Need, host: str, free: int) -> int:
        """Slots of a host, of ``free``, that this class may have."""
        if need.spec.reservation:
            return min(free, self.reserved.share(need.spec.reservation, host))
        return max(0, free - self._level.kept.get(host, 0))

    def reason(self, need: Need, host: str) -> int:
        """The pend reason of a host whose free slots this class may not have."""
        return int(self.reserved.why_none(need.spec, host))
