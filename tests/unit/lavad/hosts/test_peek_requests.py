"""An answer about a job's output is taken from the stream that was asked, and from no other."""

from __future__ import annotations

import asyncio

import pytest

from lavad.hosts.peek_requests import PeekRequests
from lavad.hosts.sessions import Session
from lavad.wire.records import Peek, PeekData
from proto import agent_pb2 as pb


def test_another_hosts_answer_is_not_taken() -> None:
    async def asked() -> bytes:
        peeks, asked, other = PeekRequests(), Session("h1", 0), Session("h2", 0)
        reading = asyncio.ensure_future(peeks.read(asked, Peek(key=1, uid="u", user="alice", path="", offset=0)))
        sent = await asked.outgoing.get()
        assert sent is not None
        question = pb.ToAgent.FromString(sent.message).peek
        peeks.answered(other, PeekData(question.id, b"forged", 6, ""))
        peeks.answered(Session("h1", 0), PeekData(question.id, b"of a former stream", 18, ""))
        await asyncio.sleep(0)
        assert not reading.done()
        peeks.answered(asked, PeekData(question.id, b"true", 4, ""))
        peeks.answered(asked, PeekData(question.id, b"twice", 5, ""))
        return (await reading).data

    assert asyncio.run(asked()) == b"true"


def test_a_reader_that_is_ended_as_its_answer_comes_has_ended() -> None:
    async def asked() -> None:
        peeks, session = PeekRequests(), Session("h1", 0)
        reading = asyncio.ensure_future(peeks.read(session, Peek(key=1, uid="u", user="alice", path="", offset=0)))
        sent = await session.outgoing.get()
        assert sent is not None
        peeks.answered(session, PeekData(pb.ToAgent.FromString(sent.message).peek.id, b"text", 4, ""))
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    asyncio.run(asked())
