"""When what waits for the master is sent to it, and when a new stream is tried."""

from __future__ import annotations

import asyncio
import math

SEND_PAUSE = 0.002
"""Seconds between two messages with reports: what comes meanwhile goes together."""
CHUNK_PAUSE = 0.04
"""The same while jobs of chunks keep the host at work without the master."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Seconds until a new stream is tried, each time twice as long."""
STEADY = 10.0
"""Seconds of a stream after which its end is no sign that the next one ends as soon."""


def pause_after(pause: float, lasted: float) -> float:
    """Seconds to wait now, after a try that waited ``pause`` (0: the first) and a stream of ``lasted`` seconds (0: none)."""
    return FIRST_PAUSE if lasted >= STEADY else max(FIRST_PAUSE, min(pause * 2, LONGEST_PAUSE))


class Pacing:
    """Some time after the last message, and sooner where that has become urgent meanwhile."""

    def __init__(self) -> None:
        self._due = asyncio.Event()
        self._sent = -math.inf
        self._timer: asyncio.TimerHandle | None = None

    def want(self, may_wait: bool = False) -> None:
        """Something waits. ``may_wait``: nothing here stands idle for it."""
        if self._due.is_set():
            return
        loop = asyncio.get_running_loop()
        at = self._sent + (CHUNK_PAUSE if may_wait else SEND_PAUSE)
        if at <= loop.time():
            self._due.set()
        elif self._timer is None or at < self._timer.when():
            self._cancel()
            self._timer = loop.call_at(at, self._due.set)

    async def wait(self) -> None:
        """Wait until it is time to send all that waits."""
        await self._due.wait()
        self._cancel()
        self._due.clear()
        self._sent = asyncio.get_running_loop().time()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
