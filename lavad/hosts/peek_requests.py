"""Requests to agents for output of a job (bpeek), answered on the host's stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from msgspec.structs import replace

from lavad.hosts.sessions import Session
from lavad.wire import encode
from lavad.wire.records import Peek, PeekData

PIECE = 256 * 1024
"""Bytes of one answer at most."""
PATIENCE = 15.0
"""Seconds to wait for an answer."""


class NoOutput(Exception):
    """Why there is nothing to show, in one line."""


class PeekRequests:
    """Open requests by number."""

    def __init__(self) -> None:
        self._next = 0
        self._open: dict[int, tuple[Session, asyncio.Future[PeekData]]] = {}

    def answered(self, session: Session, data: PeekData) -> None:
        """An agent answered; nothing is taken but from the stream that was asked."""
        asked, future = self._open.get(data.id, (None, None))
        if asked is session and future is not None:
            del self._open[data.id]
            if not future.done():
                future.set_result(data)

    async def read(self, session: Session, question: Peek) -> PeekData:
        """One piece; raises NoOutput."""
        self._next += 1
        number = self._next
        future: asyncio.Future[PeekData] = asyncio.get_running_loop().create_future()
        self._open[number] = (session, future)
        session.send(encode.peek(replace(question, id=number, limit=PIECE)))
        try:
            async with asyncio.timeout(PATIENCE):
                data = await future
        except TimeoutError:
            raise NoOutput(f"host {session.host} does not answer") from None
        finally:
            self._open.pop(number, None)  # the caller may have gone away
        if data.error:
            raise NoOutput(data.error)
        return data

    async def pieces(self, session: Session, question: Peek, last: int = 0) -> AsyncIterator[tuple[bytes, int]]:
        """All output from the request's offset on, or ``last`` bytes of it: (piece, offset after it)."""
        while True:
            data = await self.read(session, question)
            if last and data.size - question.offset > last:
                question = replace(question, offset=data.size - last)
                last = 0
                continue
            last = 0
            question = replace(question, offset=question.offset + len(data.data))
            if data.data:
                yield data.data, question.offset
            if not data.data or question.offset >= data.size:
                return
