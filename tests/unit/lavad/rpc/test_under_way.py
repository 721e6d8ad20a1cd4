"""How many asks of one user the master has under way at a time; what is beyond is answered ``later``, whoever else asks."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lavad.core.lang import bounds
from lavad.core.lang.asks import Caller
from lavad.rpc.under_way import CHANGE, LARGE, MOST, QUERY, UnderWay
from tests.unit.lavad.rpc.test_dispatch_fuzz import answered, made

ALICE, BOB = (Caller(user=name, uid=uid, host="h1") for name, uid in (("alice", 1001), ("bob", 1002)))
LATER = [{"later": True}]


@pytest.mark.parametrize("kind", [LARGE, CHANGE, QUERY])
def test_of_each_user_and_kind_so_many(kind: str) -> None:
    under_way = UnderWay()

    def welcome(user: str, *kinds: str) -> bool:
        with under_way.let_in(user, *kinds) as room:
            return room

    with ExitStack() as stack:
        assert all(stack.enter_context(under_way.let_in("ann", kind)) for _ in range(MOST[kind]))
        others = [other for other in MOST if other != kind]
        assert (welcome("ann", kind), welcome("ann", others[0], kind)) == (False, False)
        assert (welcome("bob", kind), welcome("ann", *others), welcome("ann")) == (True, True, True)
    assert all(welcome("ann", kind) for _ in range(2 * MOST[kind]))
    assert not under_way._counts, "nothing is kept of who asks nothing"


def test_what_fails_is_no_longer_under_way() -> None:
    under_way = UnderWay()
    for _ in range(2 * MOST[QUERY]):
        with suppress(ValueError), under_way.let_in("ann", QUERY) as room:
            assert room
            raise ValueError


@pytest.mark.parametrize(
    ("kind", "ask"),
    [
        (LARGE, {"ask": "submit", "command": "x" * bounds.LARGE, "options": {"H": True}}),
        (CHANGE, {"ask": "submit", "command": "x", "options": {"H": True}}),
        (QUERY, {"ask": "query", "command": "bjobs"}),
    ],
)
def test_a_user_with_too_many_asks_later_and_others_do_not(tmp_path: Path, kind: str, ask: dict[str, Any]) -> None:
    async def story() -> None:
        engine, dispatch, store = await made(tmp_path)
        running = asyncio.ensure_future(engine.run())
        frame = msgspec.json.encode(ask)
        with ExitStack() as stack:
            for _ in range(MOST[kind]):
                stack.enter_context(dispatch._under_way.let_in("alice", kind))
            assert await answered(dispatch, frame, ALICE) == LATER
            assert await answered(dispatch, frame, BOB) != LATER
        assert await answered(dispatch, frame, ALICE) != LATER
        running.cancel()
        store.close()

    asyncio.run(story())
