"""The local socket: length-prefixed JSON frames; the kernel authenticates the caller (SO_PEERCRED).

A malformed or oversized frame ends only its own connection, with one refusal.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable

from lavad.core.lang.asks import Caller
from lavad.rpc.dispatch import Dispatch
from proto.daemon import callers
from proto.daemon.callers import CallerReader, Callers, NameUnknown
from proto.unixpath import reachable

BACKLOG = 512
STANDBY = b'{"standby":true}'


class LocalServer:
    """Serves commands on this machine; ``dispatch`` gives None while this lavad is not the master."""

    def __init__(self, path: str, host: str, dispatch: Callable[[], Dispatch | None]) -> None:
        self._path = path
        self._host = host
        self._dispatch = dispatch
        self._callers = Callers()
        self._server: asyncio.Server | None = None
        self._answering: set[asyncio.Task[object]] = set()

    async def start(self) -> None:
        """Listen; a socket left by a dead master is replaced."""
        new = f"{self._path}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        with reachable(new) as short:
            self._server = await callers.listen(short, self._serve, BACKLOG)
        os.chmod(new, 0o666)
        os.replace(new, self._path)

    async def _serve(self, reader: CallerReader, writer: asyncio.StreamWriter) -> None:
        try:
            uid = callers.peer_uid(writer.get_extra_info("socket"))
            with self._callers.let_in(uid) as welcome:
                if not welcome:
                    writer.write(callers.pack(callers.LATER))
                    return
                try:
                    caller = Caller(user=await self._callers.name_of(uid), uid=uid, host=self._host, local=True)
                except NameUnknown as why:
                    writer.write(callers.pack(callers.refusal(str(why))))
                    return
                async with contextlib.aclosing(self._callers.frames(reader, uid)) as frames:
                    async for body in frames:
                        with reader.answering():
                            await self._answer(body, caller, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def _answer(self, frame: bytes | None, caller: Caller, writer: asyncio.StreamWriter) -> None:
        dispatch = self._dispatch()
        if frame is None or dispatch is None:
            writer.write(callers.pack(STANDBY if frame is not None else callers.TOO_LARGE))
            await writer.drain()
            return
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        try:
            async for body in dispatch.answer(frame, caller):
                writer.write(callers.pack(body))
                await writer.drain()
        finally:
            self._answering.discard(task)

    def break_off(self) -> None:
        """The master that was asked is none any more: who waits for its answer is cut off, and asks again at once."""
        for task in self._answering:
            task.cancel()

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)
