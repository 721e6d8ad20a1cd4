"""Questions to agents about a job's output (bpeek), answered on the host's stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from lavad.hosts.sessions import Session
from proto import agent_pb2 as pb

PIECE = 256 * 1024
PATIENCE = 15.0


class NoOutput(Exception):
    """Why there is nothing to show, in one line."""


class Peeks:
    """Open questions by number."""

    def __init__(self) -> None:
        self._next = 0
        self._open: dict[int, asyncio.Future[pb.PeekData]] = {}

    def came(self, data: pb.PeekData) -> None:
        """An agent answered."""
        future = self._open.pop(data.id, None)
        if future is not None and not future.done():
            future.set_result(data)

    async def read(self, session: Session, question: pb.Peek) -> pb.PeekData:
        """One piece; raises NoOutput."""
        self._next += 1
        question.id, question.limit = self._next, PIECE
        future: asyncio.Future[pb.PeekData] = asyncio.get_running_loop().create_future()
        self._open[self._next] = future
        session.send(pb.ToAgent(peek=question))
        try:
            data = await asyncio.wait_for(future, PATIENCE)
        except TimeoutError:
            self._open.pop(question.id, None)
            raise NoOutput(f"host {session.host} does not answer") from None
        if data.error:
            raise NoOutput(data.error)
        return data

    async def pieces(self, session: Session, question: pb.Peek) -> AsyncIterator[bytes]:
        """All that is there from the question's offset on."""
        while True:
            data = await self.read(session, question)
            if data.data:
                yield data.data
            question.offset += len(data.data)
            if not data.data or question.offset >= data.size:
                return
