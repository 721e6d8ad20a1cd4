"""Jobs of calls that were cancelled: they are killed, again after a pause where the cluster does not take that."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PAUSE = 1.0
"""Seconds."""


class Kills:
    """Not safe for threads: its owner holds a lock."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._at = 0.0

    def add(self, ids: Iterable[str]) -> None:
        """Kill these jobs."""
        self._ids += ids

    def again(self, ids: Iterable[str]) -> None:
        """Kill these jobs, which could not be killed now."""
        self._ids += ids
        self._at = time.monotonic() + PAUSE

    def pause(self) -> float | None:
        """Seconds until there is something to kill; None: there is nothing."""
        return max(0.0, self._at - time.monotonic()) if self._ids else None

    def take(self) -> list[str]:
        """Those that are to be killed now."""
        if self.pause() != 0.0:
            return []
        ids, self._ids = self._ids, []
        return ids
