"""Which hosts have changed since some cycle in a way that may make room for a class that was blocked then."""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

from lavad.sched.needs.arrays import Ints, np

Rows: TypeAlias = "list[int] | Ints"
"""Numbers of rows. Shape: (rows,)."""
KEPT = 64
"""Cycles that are remembered; a class that was not looked at for longer is tried again."""


class ChangedHosts:
    """The rows that changed, cycle by cycle, and the last cycles in which any did."""

    as_arrays = False
    """Whether the rows are told as arrays: of many hosts."""

    def __init__(self) -> None:
        self.cycle = 0
        self.improved = 0
        """Last cycle in which a host had more free, or another state, than before."""
        self.load_changed = 0
        """Last cycle in which a load was other than before."""
        self.everything = 0
        """Last cycle of a change that is about no single host, or whose use for a class no host's row shows."""
        self._improved_rows: list[int] = []
        self._load_rows: list[int] = []
        self._cycles: deque[tuple[int, Rows, Rows]] = deque(maxlen=KEPT)
        """(cycle, rows that had more room, rows with another load)."""
        self._forgotten = 0
        """The last cycle whose rows are no longer known."""
        self._since: dict[tuple[int, bool], Rows] = {}

    def note_all(self) -> None:
        """There may be more room for any class than in the cycle before."""
        self.improved = self.everything = self.cycle

    def note_room(self, row: int) -> None:
        """A row has more room than in the cycle before."""
        self.improved = self.cycle
        self._improved_rows.append(row)

    def note_load(self, row: int) -> None:
        """A row has another load than in the cycle before."""
        self.load_changed = self.cycle
        self._load_rows.append(row)

    def keep(self) -> None:
        """All rows that have changed in this cycle are noted."""
        if not (self._improved_rows or self._load_rows):
            return
        if len(self._cycles) == KEPT:
            self._forgotten = self._cycles[0][0]
        self._cycles.append((self.cycle, self._told(self._improved_rows), self._told(self._load_rows)))
        self._improved_rows, self._load_rows, self._since = [], [], {}

    def rows_since(self, cycle: int, with_load: bool) -> Rows | None:
        """The rows that may have more room than in this cycle; ``with_load``: or have another load. None: not known.

        In no order; a row may stand there twice.
        """
        if cycle < max(self.everything, self._forgotten):
            return None
        found = self._since.get((cycle, with_load))
        if found is None:
            parts = [one for at, *both in self._cycles if at > cycle for one in both[: 1 + with_load]]
            found = self._since[cycle, with_load] = self._joined(parts)
        return found

    def _told(self, rows: list[int]) -> Rows:
        return np.array(rows, dtype=np.int64) if self.as_arrays else rows

    def _joined(self, parts: list[Rows]) -> Rows:
        if self.as_arrays and parts:
            return np.concatenate(parts)
        return [row for part in parts for row in part]
