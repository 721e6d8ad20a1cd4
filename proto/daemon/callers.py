"""The server's side of the local socket, the same at lavad and at agents: who calls, and frames of their asks as they come.

Rule: a user is who the kernel says. Nobody alone can fill a daemon's memory, and nobody at all use up its open files: whoever has
too many connections is sent away (commands try again), and of one user's larger frames a few at a time are read, the others wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import resource
import socket
import struct
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from proto.daemon.workers import Workers
from proto.names import NoAnswer, find_name

HEAD = struct.Struct(">I")
MAX_FRAME = 16 << 20
LARGE = 64 << 10
SMALL = 8 << 10
PIECE, LARGE_PIECE = 8 << 10, 256 << 10
"""Bytes that are read of a connection at once, and of a large frame. Twice as many are kept that nobody has asked for yet, and as
many of answers that are not taken before another is made."""
PAUSE = 60.0
"""Seconds between two lines of the log about callers that are sent away."""
MOST_LARGE, MOST_MIDDLE = 4, 64
"""Frames of a user at a time that are read and answered, and those over SMALL that are read."""
NAMES_KEPT = 60.0
"""Seconds until a name is asked for again; while the directory gives no answer it stays in use."""
NAMES_WAIT = 5.0
"""Seconds that a caller waits for the directory."""
MOST_NAMES = 50_000
TOO_LARGE = b'{"refused":"Bad request: the frame is too large","exit":255}'
LATER = b'{"later":true}'

log = logging.getLogger(__name__)
_CREDENTIALS = struct.Struct("3i")


def pack(body: bytes) -> bytes:
    """A frame."""
    return HEAD.pack(len(body)) + body


def refusal(text: str) -> bytes:
    """The answer to a command that is refused."""
    return json.dumps({"refused": text, "exit": 255}).encode()


def peer_uid(sock: Any) -> int:
    """The user at the other end of a local socket, as the kernel says."""
    data: bytes = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(data)[1])


class NameUnknown(Exception):
    """The directory cannot say now what the name of a caller is; the text is for them."""


class CallerReader(asyncio.StreamReader):
    """Reads one connection, and tells at once when its other end is gone: whoever waits for an answer is waited for no more.

    No command closes its sending side alone, so the end of what it sends is its end.
    """

    def __init__(self) -> None:
        super().__init__(limit=PIECE // 2, loop=asyncio.get_running_loop())
        self._gone = False
        self._answering: asyncio.Task[object] | None = None
        self._socket: Any = None

    def set_transport(self, transport: asyncio.BaseTransport) -> None:
        """It is connected."""
        super().set_transport(transport)
        self._socket = transport
        self._socket.set_write_buffer_limits(PIECE)
        self.read_pieces(PIECE)

    def read_pieces(self, size: int) -> None:
        """How many bytes are read at once from now on."""
        if self._socket is not None:
            # asyncio would read 256 KB of each connection, whoever wants them
            self._socket.max_size = size

    def feed_eof(self) -> None:
        """The caller has closed the connection, or died."""
        super().feed_eof()
        self._lost()

    def set_exception(self, exc: Exception) -> None:
        """The connection is broken."""
        super().set_exception(exc)
        self._lost()

    def _lost(self) -> None:
        self._gone = True
        if self._answering is not None:
            self._answering.cancel()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """While an ask is answered: the present task is cancelled when the caller goes. ConnectionResetError if it has gone."""
        if self._gone:
            raise ConnectionResetError("the caller has gone")
        self._answering = asyncio.current_task()
        try:
            yield
        finally:
            self._answering = None


Serve = Callable[[CallerReader, asyncio.StreamWriter], Awaitable[None]]


class _Listener(socket.socket):
    """The listening socket. While this process may open no more files it sends callers away, by the room that it keeps for that.

    asyncio would leave them waiting, and log each of as many tries as the socket has places, again and again.
    """

    def __init__(self, path: str) -> None:
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self.setblocking(False)
        self.bind(path)
        self._room = -1
        """The file that is closed where a caller needs its place; -1: there is none."""
        self._keep_room()
        self._said = -PAUSE

    def _keep_room(self) -> None:
        # another thread may have taken the place meanwhile: the number is then a file of that one
        with contextlib.suppress(OSError):
            self._room = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _leave_room(self) -> None:
        if self._room >= 0:
            os.close(self._room)
            self._room = -1

    def accept(self) -> tuple[socket.socket, Any]:
        """A caller. BlockingIOError: there is none, or there was no room for one."""
        try:
            return super().accept()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
        if time.monotonic() - self._said >= PAUSE:
            self._said = time.monotonic()
            log.warning("no more files can be opened (LimitNOFILE): commands are sent away and try again")
        self._leave_room()
        try:
            caller, _ = super().accept()
            with caller, contextlib.suppress(OSError):
                caller.setblocking(False)
                caller.send(pack(LATER))
        finally:
            self._keep_room()
        raise BlockingIOError

    def close(self) -> None:
        """Listen no more."""
        self._leave_room()
        super().close()


async def listen(path: str, serve: Serve, backlog: int) -> asyncio.Server:
    """Listen on a socket; ``serve`` has a task for each connection."""

    def connection() -> asyncio.StreamReaderProtocol:
        # StreamReaderProtocol calls it with the reader that it is given here
        return asyncio.StreamReaderProtocol(CallerReader(), serve)  # type: ignore[arg-type]

    return await asyncio.get_running_loop().create_unix_server(connection, sock=_Listener(path), backlog=backlog)


class Callers:
    """All who are connected to one socket.

    ``most``: connections of one user, a quarter of this process's files unless given; of all users but root together there are at
    most twice as many, so that what else the daemon opens has room.
    """

    def __init__(self, most: int = 0, find: Callable[[int], str | None] = find_name, wait: float = NAMES_WAIT) -> None:
        self._most = most or max(32, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
        self._open: Counter[int] = Counter()
        self._large: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()
        self._middle: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()
        self._find = find
        self._wait = wait
        self._directory = Workers("names of callers", 4)
        self._names: dict[int, tuple[float, str]] = {}
        self._asked: dict[int, asyncio.Task[str]] = {}

    def learn(self, uid: int, name: str) -> None:
        """A name that is known from elsewhere, for a time when the directory gives no answer."""
        self._names.setdefault(uid, (0.0, name))

    async def name_of(self, uid: int) -> str:
        """The name of a user number, digits where it has none. Raises NameUnknown.

        While the directory gives no answer a known name stays known; another may not be taken for one that does not exist.
        """
        loop = asyncio.get_running_loop()
        until, name = self._names.get(uid, (0.0, ""))
        if loop.time() < until:
            return name
        asking = self._asked.get(uid)
        if asking is None:
            asking = self._asked[uid] = loop.create_task(self._ask(uid))
            asking.add_done_callback(partial(self._asked_for, uid))
        try:
            async with asyncio.timeout(0.0 if name and until < 0 else self._wait):
                return await asyncio.shield(asking)
        except (NoAnswer, TimeoutError) as error:
            if not name:
                raise NameUnknown(f"cannot look up user {uid} now: {error or 'the directory of users does not answer'}") from None
            # whoever comes next does not wait again for what has not answered just now
            self._names[uid] = (-1.0, name)
            return name

    def _asked_for(self, uid: int, task: asyncio.Task[str]) -> None:
        self._asked.pop(uid, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("user %d cannot be looked up: %s", uid, error)

    async def _ask(self, uid: int) -> str:
        name = await self._directory.run(self._find, uid) or str(uid)
        if len(self._names) >= MOST_NAMES:
            del self._names[next(iter(self._names))]
        self._names[uid] = (asyncio.get_running_loop().time() + NAMES_KEPT, name)
        return name

    @contextmanager
    def let_in(self, uid: int) -> Iterator[bool]:
        """A connection of this user, as long as the context lasts; False: they, or all users, have too many."""
        if self._open[uid] >= self._most or (uid and self._open.total() >= 2 * self._most):
            yield False
            return
        self._open[uid] += 1
        try:
            yield True
        finally:
            self._open[uid] -= 1
            if not self._open[uid]:
                del self._open[uid]

    async def frames(self, reader: CallerReader, uid: int) -> AsyncGenerator[bytes | None, None]:
        """The bodies of a connection's frames until it ends; None, once, for one that is too large.

        A large one counts until the next is asked for, that is until it was answered.
        """
        large = self._large.setdefault(uid, asyncio.Semaphore(MOST_LARGE))
        middle = self._middle.setdefault(uid, asyncio.Semaphore(MOST_MIDDLE))
        try:
            while True:
                (size,) = HEAD.unpack(await reader.readexactly(HEAD.size))
                if size > MAX_FRAME:
                    yield None
                    return
                if size <= SMALL:
                    yield await reader.readexactly(size)
                elif size <= LARGE:
                    async with middle:
                        body = await reader.readexactly(size)
                    yield body
                else:
                    async with large:
                        reader.read_pieces(LARGE_PIECE)
                        body = await reader.readexactly(size)
                        reader.read_pieces(PIECE)
                        yield body
        except (asyncio.IncompleteReadError, ConnectionError):
            return
