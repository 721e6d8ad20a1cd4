"""The master's side of its replicas: processes that apply committed events. One schedules, one answers queries.

A replica that dies is restarted from a snapshot; nothing is lost, as it has no state of its own.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import BinaryIO

import msgspec

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.snapshot import take
from lavad.core.lang.asks import Caller, Query, Refused
from lavad.core.plan.volatile import SoftUpdate
from lavad.replica import protocol as feed
from lavad.replica.spawn import is_seeded
from lavad.replica.started import started
from lavad.replica.watch import watch
from proto.answers import Piece
from proto.daemon.workers import Workers

log = logging.getLogger(__name__)

PAUSE = 0.5
LAZY = 0.05
"""Seconds by which a lazy replica may be behind; a request to it brings it up to date first."""

MOST_UNREAD = 32 << 20
"""Characters of unread answers that are kept for one user."""
MOST_OF_ALL = 256 << 20
"""The same of all users together."""
TOLD = 4
"""Frames after which the replica hears that a reader has taken them: it renders only so far ahead."""
ALIVE = 20.0
"""Seconds after which a caller whose query takes long hears that it is not forgotten."""


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
        self._seeded = is_seeded(module)
        """The process that waits has this cluster as it was read from the store; what follows is kept for it."""
        self._late = [feed.frame(feed.EndedJobs(jobs=list(cluster.ended.rows.items())))] if self._seeded else []
        self.started = 0
        """How often it was started; what it says counts only until it is to be started again."""
        self.there = asyncio.Event()
        """Set while the process runs and receives frames."""
        self.answered = 0
        """Number of the last ping that was answered."""
        self.reads = False
        """Whether its next message is waited for."""

    def send(self, message: msgspec.Struct) -> None:
        """Send a message; dropped while the process is being restarted, as it then gets a snapshot."""
        if self._writer is not None:
            self._late.append(feed.frame(message))
            self._flush()

    def send_frame(self, frame: bytes) -> None:
        """Send an encoded frame; to a lazy process frames are sent together, as each write wakes it up."""
        if self._writer is None:
            if self._seeded:
                self._late.append(frame)
            return
        self._late.append(frame)
        if not self._lazy:
            self._flush()
        elif len(self._late) == 1:
            asyncio.get_running_loop().call_later(LAZY, self._flush)

    def kill(self) -> None:
        """End the process, as it hangs; another is started."""
        if self.there.is_set():
            os.kill(self.pid, signal.SIGKILL)

    def start_again(self) -> None:
        """End the process, which was told of changes that were undone: nothing counts of what it says."""
        self._seeded = False
        if self._writer is not None:
            self.started += 1
            self._writer = None
            os.kill(self.pid, signal.SIGKILL)

    def _flush(self) -> None:
        late, self._late = self._late, []
        if self._writer is not None and late:
            self._writer.write(b"".join(late))

    async def run(self, took: Callable[[feed.FromReplica], Awaitable[None]], ended: Callable[[], None]) -> None:
        """Start the process, pass its messages to ``took``, and restart it when it dies."""
        while True:
            spawned = await started(self.module, self._output)
            process, link, _ = spawned
            self._seeded = await Workers(self.module).run(spawned.send_seed) and self._seeded
            self.pid = process.pid
            self.started += 1
            number = self.started
            link.setblocking(False)
            reader, writer = await asyncio.open_connection(sock=link, limit=1 << 24)
            async with self._quiet:
                # between two commits, so that snapshot and later frames fit together exactly
                self._writer = writer
                since, self._late = self._late, []
                self.send(self._site)
                if self._seeded:
                    writer.write(b"".join(since))
                else:
                    self.send(take(self._cluster))
                self._seeded = False
                self.send(self._soft())
            self.there.set()
            try:
                await self._listen(reader, number, took)
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

    async def _listen(
        self, reader: asyncio.StreamReader, number: int, took: Callable[[feed.FromReplica], Awaitable[None]]
    ) -> None:
        """Until it is to be started again."""
        while True:
            self.reads = True
            said = feed.decode_answer(await feed.read_frame(reader))
            self.reads = False
            if number != self.started:
                return
            if isinstance(said, feed.Ping):
                self.answered = said.number
            await took(said)


class _Open:
    """An open query, and the pieces of its answer that are not read yet."""

    def __init__(self, ask: feed.Ask) -> None:
        self.ask = ask
        self.uid = ask.caller.uid
        self.passed = False
        """Whether a piece of its answer has come."""
        self.size = 0
        """Characters of the pieces."""
        self.read = 0
        """Frames that its caller has read since the replica was told so."""
        self.pieces: asyncio.Queue[feed.Answer | Refused | None] = asyncio.Queue()
        """None: the query is to be sent again."""

    def end(self, why: str) -> int:
        """Drop the unread pieces and end the answer; how many characters were dropped."""
        while not self.pieces.empty():
            self.pieces.get_nowait()
        self.pieces.put_nowait(Refused(why))
        size, self.size = self.size, 0
        return size


def _size(piece: feed.Answer | Refused | None) -> int:
    return sum(len(text) for _, text in piece.pieces) if isinstance(piece, feed.Answer) else 0


class QueryProcess:
    """The replica that renders listings.

    It does not wait for slow clients: unread answers are kept here, up to a limit for each user and one for all; beyond that the
    longest answer of the user who has most is dropped. A query that it hangs or dies with gets an error; the others are sent
    again to the next process.
    """

    def __init__(
        self, process: ReplicaProcess, clock: Callable[[], float], most: int = MOST_UNREAD, most_of_all: int = MOST_OF_ALL
    ) -> None:
        self.process = process
        self._clock = clock
        self._next = 0
        self._open: dict[int, _Open] = {}
        """Those that the process has not answered to the end."""
        self._read: dict[int, _Open] = {}
        """Those that their callers have not read to the end."""
        self._most, self._most_of_all = most, most_of_all
        self._unread: Counter[int] = Counter()
        """User to the number of characters of answers not read yet."""
        self._begun = 0
        """The query that the process renders by itself now; 0: none."""
        self.answers = asyncio.Event()
        """Set from the first ping on that was answered."""

    async def run(self) -> None:
        """Serve for ever."""
        watching = asyncio.create_task(watch(self.process, "query process"))
        try:
            await self.process.run(self._took, self._ended)
        finally:
            watching.cancel()

    async def _took(self, message: feed.FromReplica) -> None:
        if isinstance(message, feed.Ping):
            self.answers.set()
        elif isinstance(message, feed.Begun):
            self._begun = message.number
        elif isinstance(message, feed.Answer):
            self._take(message)

    def _take(self, message: feed.Answer) -> None:
        if message.number == self._begun and message.exit is not None:
            self._begun = 0
        query = self._open.get(message.number)
        if query is None:
            return
        query.passed = True
        if message.exit is not None:
            del self._open[message.number]
        query.size += _size(message)
        self._unread[query.uid] += _size(message)
        query.pieces.put_nowait(message)
        if self._unread[query.uid] > self._most:
            self._drop(query)
        while self._unread.total() > self._most_of_all:
            uid = max(self._unread, key=self._unread.__getitem__)
            self._drop(max((one for one in self._read.values() if one.uid == uid), key=lambda one: one.size))

    def _drop(self, query: _Open) -> None:
        self._open.pop(query.ask.number, None)
        self._unread[query.uid] -= query.end("Output dropped: the client reads too slowly.")

    def _ended(self) -> None:
        """The process is gone: the query that it died with is over, and those that have got nothing yet are sent again."""
        begun, self._begun = self._begun, 0
        for number, query in self._open.items():
            if number == begun:
                command = query.ask.query.command
                self._unread[query.uid] -= query.end(f"{command}: The query ended the process that answers queries")
            elif query.passed:
                self._unread[query.uid] -= query.end("The query was interrupted; try again")
            else:
                query.pieces.put_nowait(None)

    async def answer(self, query: Query, caller: Caller) -> AsyncIterator[Piece]:
        """The pieces of the answer, last the exit status; an empty one now and then while there is nothing to say."""
        self._next += 1
        number = self._next
        ask = feed.Ask(number=number, query=query, caller=caller, now=self._clock())
        opened = self._open[number] = self._read[number] = _Open(ask)
        await self._send(opened)
        answered = False
        try:
            while not answered:
                try:
                    async with asyncio.timeout(ALIVE):
                        answer = await opened.pieces.get()
                except TimeoutError:
                    yield {"out": ""}
                    continue
                if answer is None:
                    await self._send(opened)
                    continue
                if isinstance(answer, Refused):
                    raise answer
                opened.size -= _size(answer)
                self._unread[opened.uid] -= _size(answer)
                answered = answer.exit is not None
                for kind, text in answer.pieces:
                    yield {"out": text} if kind == "out" else {"err": text}
                if answer.exit is not None:
                    yield {"exit": answer.exit}
                else:
                    self._has_read(opened)
        finally:
            self._open.pop(number, None)
            del self._read[number]
            self._unread[opened.uid] -= opened.end("")
            if not self._unread[opened.uid]:
                del self._unread[opened.uid]
            if not answered:
                self.process.send(feed.Drop(number=number))

    async def _send(self, query: _Open) -> None:
        await self.process.there.wait()  # a message sent earlier would be dropped, and its caller would wait for ever
        self.process.send(query.ask)

    def _has_read(self, query: _Open) -> None:
        query.read += 1
        if query.read >= TOLD:
            self.process.send(feed.Taken(number=query.ask.number, count=query.read))
            query.read = 0
