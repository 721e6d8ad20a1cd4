"""Answers to queries on their way to commands that read slowly, or not at all."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest

from lavad.core.lang.asks import Caller, Query, Refused
from lavad.replica import protocol as feed
from lavad.replica.replica import Replica as Folds
from lavad.replica.replicas import TOLD, QueryProcess
from proto.answers import Piece

ALICE, BOB = (Caller(user=name, uid=uid, host="h1") for name, uid in (("alice", 1000), ("bob", 1001)))


class Replica:
    """The query process as the master sees it: takes frames, and says what the test has it say."""

    def __init__(self) -> None:
        self.there = asyncio.Event()
        self.there.set()
        self.sent: list[msgspec.Struct] = []
        self.says: Callable[[feed.FromReplica], Awaitable[None]] | None = None
        self.dies: Callable[[], None] = lambda: None

    def send(self, message: msgspec.Struct) -> None:
        self.sent.append(message)

    async def run(self, took: Callable[[feed.FromReplica], Awaitable[None]], ended: Callable[[], None]) -> None:
        self.says, self.dies = took, ended

    async def said(self, number: int, size: int, last: bool = False) -> None:
        assert self.says is not None
        await self.says(feed.Answer(number=number, pieces=[("out", "x" * size)], exit=0 if last else None))


async def asked(queries: QueryProcess, caller: Caller) -> AsyncIterator[Piece]:
    """A query whose reader has read the first piece."""
    answer = queries.answer(Query(command="bjobs"), caller)
    first = asyncio.ensure_future(anext(answer))
    await asyncio.sleep(0)
    replica: Any = queries.process
    await replica.said(queries._next, 1)
    assert await first == {"out": "x"}
    return answer


def test_what_is_not_read_is_kept_up_to_a_limit_for_each_user() -> None:
    async def story() -> None:
        replica = Replica()
        queries = QueryProcess(replica, lambda: 0.0, most=100)  # type: ignore[arg-type]
        await queries.run()
        one = await asked(queries, ALICE)
        two = await asked(queries, ALICE)
        other = await asked(queries, BOB)
        await replica.said(1, 60)
        await replica.said(2, 60)
        await replica.said(3, 90, last=True)
        with pytest.raises(Refused, match="Output dropped"):
            await anext(two)
        await replica.said(2, 60, last=True)
        await replica.said(1, 30, last=True)
        assert [len(piece["out"]) async for piece in one if "out" in piece] == [60, 30]
        assert [piece async for piece in other][-1] == {"exit": 0}
        assert not queries._unread
        assert [message.number for message in replica.sent if isinstance(message, feed.Drop)] == [2]

    asyncio.run(story())


def test_what_all_users_leave_unread_has_a_limit() -> None:
    """Beyond it the longest answer of the user who has most is dropped, complete or not; what others asked for stays."""

    async def story() -> None:
        replica = Replica()
        queries = QueryProcess(replica, lambda: 0.0, most=100, most_of_all=150)  # type: ignore[arg-type]
        await queries.run()
        short, long = await asked(queries, ALICE), await asked(queries, ALICE)
        other = await asked(queries, BOB)
        await replica.said(1, 20)
        await replica.said(2, 70, last=True)
        await replica.said(3, 60, last=True)
        assert queries._unread.total() == 150
        await replica.said(1, 10, last=True)
        with pytest.raises(Refused, match="Output dropped"):
            await anext(long)
        assert [len(piece["out"]) async for piece in short if "out" in piece] == [20, 10]
        assert [len(piece["out"]) async for piece in other if "out" in piece] == [60]
        assert not queries._unread
        assert not queries._read

    asyncio.run(story())


def test_a_query_whose_caller_has_gone_is_not_rendered() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        replica = Folds(theirs)
        for number in (1, 2):
            ours.sendall(feed.frame(feed.Ask(number=number, query=Query(command="bjobs"), caller=ALICE, now=0.0)))
        ours.sendall(feed.frame(feed.Drop(number=1)))
        assert replica.wait(10)
        assert [ask.number for ask in replica.asks] == [2]


def test_the_others_of_a_query_that_ends_the_process_are_sent_again() -> None:
    async def story() -> None:
        replica = Replica()
        queries = QueryProcess(replica, lambda: 0.0)  # type: ignore[arg-type]
        await queries.run()
        bad, good = (queries.answer(Query(command="bjobs"), caller) for caller in (ALICE, BOB))
        ended, answered = (asyncio.ensure_future(anext(one)) for one in (bad, good))
        await asyncio.sleep(0)
        assert replica.says is not None
        await replica.says(feed.Begun(number=1))
        replica.dies()
        with pytest.raises(Refused, match="bjobs: The query ended the process that answers queries"):
            await ended
        await asyncio.sleep(0)
        assert [message.number for message in replica.sent if isinstance(message, feed.Ask)] == [1, 2, 2]
        await replica.said(2, 5)
        assert await answered == {"out": "xxxxx"}

    asyncio.run(story())


def test_a_query_that_was_answered_does_not_end_the_process() -> None:
    async def story() -> None:
        replica = Replica()
        queries = QueryProcess(replica, lambda: 0.0)  # type: ignore[arg-type]
        await queries.run()
        answer = queries.answer(Query(command="bjobs"), ALICE)
        first = asyncio.ensure_future(anext(answer))
        await asyncio.sleep(0)
        assert replica.says is not None
        await replica.says(feed.Begun(number=1))
        await replica.said(1, 5, last=True)
        replica.dies()
        assert await first == {"out": "xxxxx"}
        assert [piece async for piece in answer] == [{"exit": 0}]

    asyncio.run(story())


def test_the_process_hears_how_far_a_reader_is() -> None:
    async def story() -> None:
        replica = Replica()
        queries = QueryProcess(replica, lambda: 0.0)  # type: ignore[arg-type]
        await queries.run()
        answer = await asked(queries, ALICE)
        for _ in range(2 * TOLD):
            await replica.said(1, 5)
        for _ in range(2 * TOLD):
            await anext(answer)
        assert [m.count for m in replica.sent if isinstance(m, feed.Taken)] == [TOLD, TOLD]

    asyncio.run(story())


def test_a_query_process_that_dies_ends_the_queries() -> None:
    async def story() -> None:
        replica = Replica()
        queries = QueryProcess(replica, lambda: 0.0)  # type: ignore[arg-type]
        await queries.run()
        answer = await asked(queries, ALICE)
        await replica.said(1, 10)
        replica.dies()
        with pytest.raises(Refused, match="interrupted"):
            await anext(answer)
        assert not queries._unread

    asyncio.run(story())
