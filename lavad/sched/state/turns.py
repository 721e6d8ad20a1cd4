"""Turns of classes that are looked at in vain, where a cycle has not the time for all of them."""

from __future__ import annotations


class Turns:
    """Which classes are looked at again in vain: so many in a cycle, those first that have waited longest for it."""

    def __init__(self) -> None:
        self.due = 0
        """Those that were looked at last up to this cycle."""
        self.left_over = False
        """Whether the cycle before had not the time for all of them."""

    def begin(self, cycle: int) -> None:
        """A cycle begins: unless classes are left over, all are due."""
        if not self.left_over:
            self.due = cycle - 1
        self.left_over = False
