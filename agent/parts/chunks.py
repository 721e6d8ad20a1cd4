"""Jobs of a chunk on this host: one runs at a time, the others wait for it in the order in which they came.

Rule: what waits here is in memory only. The master takes it for dispatched, and sends its order again to an agent that was
restarted, or that has dropped it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from agent.parts.table import PartTable
from agent.starter_client.starts import Ready

CPUS = os.cpu_count() or 1


class Chunks:
    """The chunks whose jobs are here."""

    def __init__(self, table: PartTable) -> None:
        self._table = table
        self._running: dict[str, str] = {}
        """Chunk to the uid of its job that runs, or is about to."""
        self._waiting: dict[str, deque[Ready]] = {}
        self._chunk_of: dict[str, str] = {}
        """Of those that wait, by uid."""

    def adopt(self) -> None:
        """After a restart of the agent: what runs."""
        for entry in self._table:
            if entry.order.start.chunk and not (entry.over and entry.reported):
                self._running[entry.order.start.chunk] = entry.uid

    def waits(self, start: Ready) -> bool:
        """Whether the job must wait for another one; then it is kept here, else it runs from now on."""
        chunk, uid = start.order.start.chunk, start.order.uid
        if not chunk or self._running.setdefault(chunk, uid) == uid:
            return False
        self._waiting.setdefault(chunk, deque()).append(start)
        self._chunk_of[uid] = chunk
        return True

    def drop(self, uid: str) -> bool:
        """A job that waits will not run here; False: it does not wait."""
        chunk = self._chunk_of.pop(uid, "")
        if not chunk:
            return False
        left = deque(start for start in self._waiting.pop(chunk) if start.order.uid != uid)
        if left:
            self._waiting[chunk] = left
        return True

    def clear(self) -> list[str]:
        """Nothing that waits will run: the uids of what waited."""
        left = list(self._chunk_of)
        self._waiting.clear()
        self._chunk_of.clear()
        return left

    @property
    def go_on_alone(self) -> bool:
        """Whether most of the slots of chunks have a next job here, and as many as keep all CPUs at work."""
        return len(self._waiting) >= CPUS and 2 * len(self._waiting) > len(self._running)

    def due(self, deadline_of: Callable[[float], float | None]) -> Iterator[Ready]:
        """The next job of each chunk whose last one has ended, and is reported.

        ``deadline_of``: until when a job with a lease of so many seconds may run, as it is now.
        """
        for chunk, uid in list(self._running.items()):
            entry = self._table.find(uid)
            if entry is not None and not (entry.over and entry.reported):
                continue
            waiting = self._waiting.get(chunk)
            if not waiting:
                del self._running[chunk]
                continue
            start = waiting.popleft()
            if not waiting:
                del self._waiting[chunk]
            del self._chunk_of[start.order.uid]
            self._running[chunk] = start.order.uid
            yield replace(start, deadline=deadline_of(start.order.start.lease))
