"""The server's side of the local socket, the same at lavad and at agents: who calls, and frames of their asks as they come.

Rule: a user is who the kernel says. Nobody alone can fill a daemon's memory or use up its open files: whoever has too many
connections is sent away (commands try again), and of one user's large frames a few at a time are read, the others wait.
"""

from __future__ import annotations

import asyncio
import pwd
import resource
import socket
import struct
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

HEAD = struct.Struct(">I")
MAX_FRAME = 16 << 20
LARGE = 64 << 10
MOST_LARGE = 4
NAMES_KEPT = 60.0
TOO_LARGE = b'{"refused":"Bad request: the frame is too large","exit":255}'
LATER = b'{"later":true}'

_CREDENTIALS = struct.Struct("3i")


def pack(body: bytes) -> bytes:
    """A frame."""
    return HEAD.pack(len(body)) + body


def peer_uid(sock: Any) -> int:
    """The user at the other end of a local socket, as the kernel says."""
    data: bytes = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(data)[1])


class Callers:
    """All who are connected to one socket. ``most``: connections of one user, a quarter of this process's files unless given."""

    def __init__(self, most: int = 0) -> None:
        self._most = most or max(32, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
        self._open: Counter[int] = Counter()
        self._large: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()
        self._names: dict[int, tuple[float, str]] = {}

    async def name_of(self, uid: int) -> str:
        """The name of a user number, digits where it has none; asked in a thread, as a directory service may be slow."""
        now = asyncio.get_running_loop().time()
        found = self._names.get(uid)
        if found is None or found[0] < now:
            found = (now + NAMES_KEPT, await asyncio.to_thread(_name_of, uid))
            self._names[uid] = found
        return found[1]

    @contextmanager
    def let_in(self, uid: int) -> Iterator[bool]:
        """A connection of this user, as long as the context lasts; False: they have too many."""
        if self._open[uid] >= self._most:
            yield False
            return
        self._open[uid] += 1
        try:
            yield True
        finally:
            self._open[uid] -= 1
            if not self._open[uid]:
                del self._open[uid]

    async def frames(self, reader: asyncio.StreamReader, uid: int) -> AsyncGenerator[bytes | None, None]:
        """The bodies of a connection's frames until it ends; None, once, for one that is too large.

        A large one counts until the next is asked for, that is until it was answered.
        """
        large = self._large.setdefault(uid, asyncio.Semaphore(MOST_LARGE))
        try:
            while True:
                (size,) = HEAD.unpack(await reader.readexactly(HEAD.size))
                if size > MAX_FRAME:
                    yield None
                    return
                if size <= LARGE:
                    yield await reader.readexactly(size)
                    continue
                async with large:
                    yield await reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
