"""The master, as the page asks it: frames over the local socket, each with the token of the user who asked.

Rule: the page has no power of its own. lavad reads who asks from the token, which it has signed itself.
"""

from __future__ import annotations

import asyncio
import math
import os
import socket
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing, suppress
from typing import NamedTuple

import msgspec

from proto.answers import Answer
from proto.daemon.workers import Workers
from proto.unixpath import connect, reachable
from proto.version import PROTOCOL
from web.problems import Problem, of_refusal

OF_MASTER = "-master"
"""After the name of the run folder: that of lavad, where it runs under an account of its own."""
PATIENCE = 30.0
"""Seconds that a socket may be silent; lavad says every 20 that a query is under way."""
HEALTHY = 10.0
"""Seconds in which a master answers that is well."""
TRIES, PAUSE = 20, 0.25
TURN = 5
"""Seconds for which a place in the queue of a socket is waited for."""
MOST_IDLE = 8
MOST_ANSWER = 64 << 20
_AWAY = "The master does not answer now; try again"
_encode = msgspec.json.Encoder().encode
Frame = Mapping[str, object]


class Reply(msgspec.Struct):
    """Any frame that lavad sends."""

    out: str = ""
    err: str = ""
    exit: int | None = None
    ok: Answer | None = None
    refused: str | None = None
    retry: float = 0.0
    standby: bool = False
    later: bool = False


_reply = msgspec.json.Decoder(Reply)


class _Standby(Exception):
    """It is not the master."""


class Link(NamedTuple):
    """A connection to the socket of this path."""

    path: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Master:
    """Whichever lavad of this machine is the master, else an agent, which passes frames on."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._idle: list[Link] = []
        self._silent: set[str] = set()
        """Sockets that were silent when they were last asked: they are asked after the others."""

    async def ask(self, frame: Frame, token: str = "", changes: bool = True) -> Answer:
        """The answer to an ask that is no query. Raises Problem."""
        async with aclosing(self._frames(frame, token)) as frames:
            async for reply in frames:
                if reply.ok is not None:
                    return reply.ok
                if reply.refused and reply.retry:
                    raise Problem(429, reply.refused.strip(), math.ceil(reply.retry))
                raise of_refusal(reply.refused or "lavad sent an answer that this page does not understand", changes)
        raise Problem(503, _AWAY, 1)

    async def record(self, words: list[str], options: Frame, token: str) -> bytes:
        """A record in JSON. Raises Problem."""
        return await self.listing("api", words, options, token)

    async def listing(self, command: str, words: list[str], options: Frame, token: str, width: int = 80) -> bytes:
        """What a command prints that only shows, where it shows anything. Raises Problem."""
        out, err, status = [], [], 0
        frame = {"ask": "query", "command": command, "words": words, "options": options, "width": width}
        async with aclosing(self._frames(frame, token)) as frames:
            async for reply in frames:
                if reply.refused is not None:
                    raise of_refusal(reply.refused, False)
                out.append(reply.out)
                err.append(reply.err)
                status = reply.exit or 0
        text = "".join(out)
        if status and not (text and command != "api"):
            raise of_refusal("".join(err).strip() or "refused", False)
        return text.encode()

    async def stream(self, frame: Frame, token: str) -> AsyncGenerator[str]:
        """What lavad prints, as it comes; "" while there is nothing to say. Raises Problem."""
        async with aclosing(self._frames(frame, token)) as frames:
            async for reply in frames:
                if reply.refused is not None:
                    raise of_refusal(reply.refused, False)
                if reply.err:
                    raise of_refusal(reply.err.strip(), False)
                yield reply.out

    async def is_there(self) -> bool:
        """Whether the master answers now."""
        try:
            async with asyncio.timeout(HEALTHY), aclosing(self._frames({"ask": "query", "command": "lsid"}, "")) as frames:
                async for reply in frames:
                    if reply.exit is not None:
                        return not reply.exit
        except (Problem, TimeoutError):
            pass
        return False

    async def _frames(self, frame: Frame, token: str) -> AsyncGenerator[Reply]:
        """The frames of an answer, last the one with the exit status or the answer."""
        sent: dict[str, object] = {**frame, "v": PROTOCOL, **({"token": token} if token else {})}
        others: set[str] = set()
        """Sockets that are not asked (again): of standbys, and those that were silent."""
        for _ in range(TRIES):
            link = await self._connected(others)
            if link is None:
                if others & self._silent:
                    break
                others.clear()
                await asyncio.sleep(PAUSE)
                continue
            begun = False
            try:
                async with aclosing(self._of_one(link, sent)) as replies:
                    async for reply in replies:
                        begun = True
                        yield reply
                return
            except _Standby:
                others.add(link.path)
            except (OSError, EOFError, msgspec.MsgspecError) as error:
                if begun:
                    raise Problem(503, "The connection to the master was lost; try again", 1) from None
                if isinstance(error, TimeoutError):
                    others.add(link.path)
                    self._silent.add(link.path)
            if link.path not in others:
                await asyncio.sleep(PAUSE)
        raise Problem(503, _AWAY, 5)

    async def _of_one(self, link: Link, sent: dict[str, object]) -> AsyncGenerator[Reply]:
        """The frames of one lavad's answer. Raises _Standby, OSError, EOFError, MsgspecError; it is asked again then."""
        whole = False
        try:
            body = _encode(sent)
            link.writer.write(len(body).to_bytes(4, "big") + body)
            await link.writer.drain()
            if "uuid" in sent:
                sent["again"] = True
            while not whole:
                reply = await _received(link.reader)
                self._silent.discard(link.path)
                if reply.standby:
                    raise _Standby
                if reply.later:
                    raise EOFError
                whole = reply.ok is not None or reply.refused is not None or reply.exit is not None
                if whole:
                    self._keep(link)
                yield reply
        finally:
            if not whole:
                link.writer.close()

    def _keep(self, link: Link) -> None:
        if len(self._idle) < MOST_IDLE:
            self._idle.append(link)
        else:
            link.writer.close()

    async def _connected(self, others: Collection[str]) -> Link | None:
        while self._idle:
            link = self._idle.pop()
            if not link.reader.at_eof() and not link.writer.is_closing() and link.path not in others:
                return link
            link.writer.close()
        for path in sorted(sockets(self._run), key=self._silent.__contains__):
            if path not in others:
                with suppress(OSError), reachable(path) as short:
                    return Link(path, *await asyncio.open_unix_connection(sock=await _socket_to(short), limit=1 << 20))
        return None


_waiting = Workers("places in the queues of sockets", MOST_IDLE)


async def _socket_to(path: str) -> socket.socket:
    """A connection, for which it waits in the socket's queue: asyncio would be sent away by one that is full. Raises OSError."""
    link = socket.socket(socket.AF_UNIX)
    try:
        link.setblocking(False)
        try:
            link.connect(path)
        except BlockingIOError:
            link.setblocking(True)
            await _waiting.run(connect, link, path, TURN)
    except BaseException:
        link.close()
        raise
    return link


async def _received(reader: asyncio.StreamReader) -> Reply:
    """Raises EOFError, TimeoutError (an OSError)."""
    async with asyncio.timeout(PATIENCE):
        size = int.from_bytes(await reader.readexactly(4), "big")
    if size > MOST_ANSWER:
        raise EOFError
    async with asyncio.timeout(PATIENCE):
        return _reply.decode(await reader.readexactly(size))


def sockets(run: str) -> list[str]:
    """The sockets on which lavad or an agent may answer, masters first."""
    found = []
    for folder in (run, run + OF_MASTER):
        with suppress(OSError):
            found += [(folder, name) for name in os.listdir(folder) if name.endswith(".sock")]
    masters = sorted((one for one in found if one[1].startswith("lavad")), key=lambda one: (len(one[1]), one[1]))
    agents = sorted(one for one in found if one[1].startswith("agent"))
    return [os.path.join(folder, name) for folder, name in masters + agents]
