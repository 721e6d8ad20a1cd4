"""A budget of bytes for what is on its way to all hosts: who needs more than is left waits, first come first served."""

from __future__ import annotations

import asyncio
from collections import deque


class Room:
    """``most``: bytes; what is larger has it alone."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._free = most
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size: int) -> int:
        """Wait for room; returns how much is to be given back."""
        size = min(size, self._most)
        if not self._waiting and size <= self._free:
            self._free -= size
            return size
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(size)
            else:
                self._admit()
            raise
        return size

    def give_back(self, size: int) -> None:
        """What was taken is needed no more."""
        self._free += size
        self._admit()

    def _admit(self) -> None:
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= self._free):
            size, turn = self._waiting.popleft()
            if not turn.done():
                self._free -= size
                turn.set_result(None)
