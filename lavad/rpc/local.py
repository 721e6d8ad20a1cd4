"""The local socket: length-prefixed JSON frames; the kernel says who the caller is (SO_PEERCRED).

A malformed or oversized frame ends its own connection with one refusal, and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import socket
import struct
from collections.abc import Callable
from functools import lru_cache

from lavad.core.asks import Caller
from lavad.rpc.dispatch import Dispatch
from proto.unixpath import reachable

HEAD = struct.Struct(">I")
CREDENTIALS = struct.Struct("3i")
MAX_REQUEST = 16 << 20
BACKLOG = 512


@lru_cache(maxsize=4096)
def user_name(uid: int) -> str:
    """The name of a user id (the number itself where it has none)."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def pack(body: bytes) -> bytes:
    """A frame."""
    return HEAD.pack(len(body)) + body


class LocalServer:
    """Serves commands on this machine; ``dispatch`` gives None while this lavad is not the master."""

    def __init__(self, path: str, host: str, dispatch: Callable[[], Dispatch | None]) -> None:
        self._path = path
        self._host = host
        self._dispatch = dispatch
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen; a socket left by a dead master is replaced."""
        new = f"{self._path}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        with reachable(new) as short:
            self._server = await asyncio.start_unix_server(self._serve, short, backlog=BACKLOG)
        os.chmod(new, 0o666)
        os.replace(new, self._path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            caller = self._caller(writer)
            while True:
                head = await reader.readexactly(HEAD.size)
                (size,) = HEAD.unpack(head)
                if size > MAX_REQUEST:
                    writer.write(pack(b'{"refused":"Bad request: the frame is too large","exit":255}'))
                    await writer.drain()
                    return
                await self._answer(await reader.readexactly(size), caller, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, frame: bytes, caller: Caller, writer: asyncio.StreamWriter) -> None:
        dispatch = self._dispatch()
        if dispatch is None:
            writer.write(pack(b'{"standby":true}'))
            await writer.drain()
            return
        async for body in dispatch.answer(frame, caller):
            writer.write(pack(body))
            await writer.drain()

    def _caller(self, writer: asyncio.StreamWriter) -> Caller:
        peer: socket.socket = writer.get_extra_info("socket")
        _, uid, _ = CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
        return Caller(user=user_name(uid), uid=uid, host=self._host)

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)
