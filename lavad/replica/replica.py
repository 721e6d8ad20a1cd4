"""A replica process: its end of the socket pair, and the cluster and soft state that it maintains.

Reads and writes block on purpose: a replica does one thing at a time, and reads all available frames together.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import Callable

import msgspec

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.snapshot import Snapshot, restore
from lavad.core.events import Event
from lavad.core.plan.volatile import Soft, SoftUpdate, update
from lavad.replica import protocol as feed

CHUNK = 64 << 10
"""Bytes read at once. More would be memory of its own from the kernel for each read, mapped and unmapped again."""


class Ended(Exception):
    """The master has closed the connection."""


class Replica:
    """The replica's cluster and soft state, kept up to date from the master's frames."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.cluster = Cluster()
        self.soft = Soft()
        self.site = feed.ReplicaSettings(master="", lsf={}, database="", confdir="")
        self.asks: deque[feed.Ask] = deque()
        self._dropped: list[int] = []
        self._taken: list[tuple[int, int]] = []
        self.plan_done = -1
        self.plan_kept = False
        """Whether the recorded inputs of that plan are stored."""
        self.noted: Callable[[SoftUpdate], None] | None = None
        """Called with each soft update after it is applied."""
        self.heard: Callable[[Cluster, list[Event]], None] | None = None
        """Called with each commit after it is applied, while the jobs that it ended are known."""
        self.changed = False
        """Whether something that matters to the scheduler has changed since the last reset."""
        self.awaited = False
        """Whether the master waits for a plan since the last reset."""
        self._buffer = bytearray()

    def wait(self, timeout: float | None) -> bool:
        """Read all frames available, waiting up to ``timeout`` seconds for the first; whether there were any. Raises Ended."""
        if not self._readable(timeout):
            return False
        while True:
            try:
                piece = self.link.recv(CHUNK)
            except ConnectionResetError:  # killed before it had read what was sent to it
                raise Ended from None
            if not piece:
                raise Ended
            self._buffer += piece
            if len(piece) < CHUNK and not self._readable(0):
                break
        self._take_frames()
        return True

    def _readable(self, timeout: float | None) -> bool:
        poll = select.poll()
        poll.register(self.link, select.POLLIN)
        return bool(poll.poll(None if timeout is None else max(0, int(timeout * 1000))))

    def _take_frames(self) -> None:
        view = memoryview(self._buffer)
        at = 0
        while len(view) - at >= feed.HEAD.size:
            (size,) = feed.HEAD.unpack(view[at : at + feed.HEAD.size])
            end = at + feed.HEAD.size + size
            if len(view) < end:
                break
            self._take(feed.decode_news(view[at + feed.HEAD.size : end]))
            at = end
        view.release()
        del self._buffer[:at]

    def _take(self, message: feed.ToReplica) -> None:
        if isinstance(message, feed.Events):
            feed.fold(self.cluster, self.soft, list(message.events), self.heard)
            self.changed = True
            self.awaited = self.awaited or message.plan
        elif isinstance(message, SoftUpdate):
            update(self.soft, message)
            if self.noted is not None:
                self.noted(message)
            self.changed = self.changed or bool(message.load)
        elif isinstance(message, feed.Ask):
            self.asks.append(message)
        elif isinstance(message, feed.Drop):
            self.asks = deque(ask for ask in self.asks if ask.number != message.number)
            self._dropped.append(message.number)
        elif isinstance(message, feed.Taken):
            self._taken.append((message.number, message.count))
        elif isinstance(message, feed.Ping):
            self.send(message)
        elif isinstance(message, feed.PlanDone):
            self.plan_done, self.plan_kept = message.version, message.kept
        elif isinstance(message, Snapshot | feed.EndedJobs):
            self._begin(message)
        elif isinstance(message, feed.ReplicaSettings):
            self.site = message

    def _begin(self, message: Snapshot | feed.EndedJobs) -> None:
        """What the replica starts from."""
        if isinstance(message, Snapshot):
            self.cluster = restore(message)
            self.changed = True
            return
        for job, ended in message.jobs:
            self.cluster.ended.put(job, ended)
        self.cluster.forget_changes()

    def take_asks(self) -> list[feed.Ask]:
        """The queries that have come."""
        asks, self.asks = list(self.asks), deque()
        return asks

    def take_dropped(self) -> list[int]:
        """The numbers of queries whose callers have gone."""
        dropped, self._dropped = self._dropped, []
        return dropped

    def take_taken(self) -> list[tuple[int, int]]:
        """(number of a query, frames that its caller has taken)."""
        taken, self._taken = self._taken, []
        return taken

    def send(self, message: msgspec.Struct) -> None:
        """Send one message to the master; raises Ended if it is gone."""
        self.send_frame(feed.frame(message))

    def send_frame(self, frame: bytes) -> None:
        """Send an encoded message; raises Ended if the master is gone."""
        try:
            self.link.sendall(frame)
        except OSError:
            raise Ended from None
