"""The master's side of its replicas: processes that apply committed events. One schedules, one answers queries.

A replica that dies is restarted from a snapshot; nothing is lost, as it has no state of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import BinaryIO

import msgspec

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.snapshot import take
from lavad.core.lang.asks import Caller, Query, Refused
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import SoftUpdate
from lavad.engine import Committed
from lavad.replica import protocol as feed
from lavad.replica.spawn import spawn
from proto.answers import Piece
from proto.workers import Workers

log = logging.getLogger(__name__)

PAUSE = 0.5
LAZY = 0.05
"""Seconds by which a lazy replica may be behind; a request to it brings it up to date first."""

MOST_UNREAD = 256 << 20
"""Characters of unread answers that are kept for one user."""


class ReplicaProcess:
    """One replica process, kept alive."""

    def __init__(
        self,
        module: str,
        cluster: Cluster,
        soft_snapshot: Callable[[], SoftUpdate],
        site: feed.ReplicaSettings,
        output: BinaryIO | None,
        quiet: asyncio.Lock,
        lazy: bool = False,
    ) -> None:
        self.module = module
        self._quiet = quiet
        self.pid = 0
        self._cluster = cluster
        self._soft = soft_snapshot
        self._site = site
        self._output = output
        self._writer: asyncio.StreamWriter | None = None
        self._lazy = lazy
        self._late: list[bytes] = []
        self.there = asyncio.Event()
        """Set while the process runs and receives frames."""

    def send(self, message: msgspec.Struct) -> None:
        """Send a message; dropped while the process is being restarted, as it then gets a snapshot."""
        if self._writer is not None:
            self._late.append(feed.frame(message))
            self._flush()

    def send_frame(self, frame: bytes) -> None:
        """Send an encoded frame; to a lazy process frames are sent together, as each write wakes it up."""
        if self._writer is None:
            return
        self._late.append(frame)
        if not self._lazy:
            self._flush()
        elif len(self._late) == 1:
            asyncio.get_running_loop().call_later(LAZY, self._flush)

    def _flush(self) -> None:
        late, self._late = self._late, []
        if self._writer is not None and late:
            self._writer.write(b"".join(late))

    async def run(self, took: Callable[[Plan | feed.Answer], Awaitable[None]], ended: Callable[[], None]) -> None:
        """Start the process, pass its messages to ``took``, and restart it when it dies."""
        while True:
            process, link = spawn(self.module, self._output)
            self.pid = process.pid
            link.setblocking(False)
            reader, writer = await asyncio.open_connection(sock=link, limit=1 << 24)
            async with self._quiet:
                # between two commits, so that snapshot and later frames fit together exactly
                self._writer, self._late = writer, []
                self.send(self._site)
                self.send(take(self._cluster))
                self.send(self._soft())
            self.there.set()
            try:
                while True:
                    await took(feed.decode_answer(await feed.read_frame(reader)))
            except (asyncio.IncompleteReadError, ConnectionError):
                log.warning("%s (pid %d) died; starting it again", self.module, process.pid)
            finally:
                self._writer = None
                self.there.clear()
                writer.close()
                process.kill()
                await Workers(self.module).run(process.wait)
            ended()
            await asyncio.sleep(PAUSE)  # limits the CPU use of a process that dies at once, again and again


class _Open:
    """An open query, and the pieces of its answer that are not read yet."""

    def __init__(self, uid: int) -> None:
        self.uid = uid
        self.pieces: asyncio.Queue[feed.Answer | Refused] = asyncio.Queue()

    def end(self, why: str) -> int:
        """Drop the unread pieces and end the answer; how many characters were dropped."""
        size = 0
        while not self.pieces.empty():
            size += _size(self.pieces.get_nowait())
        self.pieces.put_nowait(Refused(why))
        return size


def _size(piece: feed.Answer | Refused) -> int:
    return 0 if isinstance(piece, Refused) else sum(len(text) for _, text in piece.pieces)


class QueryProcess:
    """The replica that renders listings.

    It does not wait for slow clients: unread answers are kept here, up to a limit for each user.
    """

    def __init__(self, process: ReplicaProcess, clock: Callable[[], float], most: int = MOST_UNREAD) -> None:
        self.process = process
        self._clock = clock
        self._next = 0
        self._open: dict[int, _Open] = {}
        self._most = most
        self._unread: Counter[int] = Counter()
        """User to the number of characters of answers not read yet."""

    async def run(self) -> None:
        """Serve for ever."""
        await self.process.run(self._took, self._ended)

    async def _took(self, message: Plan | feed.Answer) -> None:
        query = self._open.get(message.number) if isinstance(message, feed.Answer) else None
        if query is None or not isinstance(message, feed.Answer):
            return
        self._unread[query.uid] += _size(message)
        query.pieces.put_nowait(message)
        if self._unread[query.uid] > self._most:
            del self._open[message.number]
            self._unread[query.uid] -= query.end("Output dropped: the client reads too slowly.")

    def _ended(self) -> None:
        for query in self._open.values():
            self._unread[query.uid] -= query.end("The query was interrupted; try again")

    async def answer(self, query: Query, caller: Caller) -> AsyncIterator[Piece]:
        """The pieces of the answer, last the exit status."""
        await self.process.there.wait()  # a message sent earlier would be dropped, and its caller would wait for ever
        self._next += 1
        number = self._next
        opened = self._open[number] = _Open(caller.uid)
        self.process.send(feed.Ask(number=number, query=query, caller=caller, now=self._clock()))
        answered = False
        try:
            while not answered:
                answer = await opened.pieces.get()
                if isinstance(answer, Refused):
                    raise answer
                self._unread[opened.uid] -= _size(answer)
                answered = answer.exit is not None
                for kind, text in answer.pieces:
                    yield {"out": text} if kind == "out" else {"err": text}
                if answer.exit is not None:
                    yield {"exit": answer.exit}
        finally:
            self._open.pop(number, None)
            self._unread[opened.uid] -= opened.end("")
            if not self._unread[opened.uid]:
                del self._unread[opened.uid]
            if not answered:
                self.process.send(feed.Drop(number=number))


class Publisher:
    """Feeds commits and soft news to all replicas."""

    def __init__(self, processes: list[ReplicaProcess]) -> None:
        self.processes = processes

    def committed(self, committed: Committed) -> None:
        """One commit, encoded once."""
        frame = feed.frame(feed.Events(events=list(committed.events)))
        for process in self.processes:
            process.send_frame(frame)

    def soft(self, news: SoftUpdate) -> None:
        """Soft news."""
        frame = feed.frame(news)
        for process in self.processes:
            process.send_frame(frame)
