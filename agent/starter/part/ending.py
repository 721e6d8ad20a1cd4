"""Ending what a part has on its host: asked first, then killed, again and again until nothing is left.

Rule: it is this process's descendants that are ended, whatever they did with sessions and groups.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from agent.starter.system import proctree

LONGEST_PAUSE = 0.5


class Ending:
    """Sets the timers ``kill`` and ``sweep`` of a part; ``stuck`` is called when something may not be killed by this user."""

    def __init__(self, timers: dict[str, float], stuck: Callable[[], None]) -> None:
        self._timers = timers
        self._stuck = stuck
        self._pause = 0.01

    def ask(self, seconds: float, *before: int) -> None:
        """SIGTERM to every process group, after other signals; the kill is due when so many seconds have passed."""
        groups = proctree.below([os.getpid()])
        for sig in (*before, signal.SIGTERM):
            proctree.signal_groups(groups, sig)
        self._timers["kill"] = time.monotonic() + float(seconds)

    def sweep(self) -> None:
        """SIGKILL everything that is there now; the next sweep is due soon."""
        own = os.getpid()
        if not proctree.kill_all(lambda: proctree.below([own])):
            self._stuck()
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        self._timers["sweep"] = time.monotonic() + self._pause
