"""Bodies of requests: how many of a user are on their way, how much of them is kept, and how long they may take."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from tests.support.worlds.page import ALICE, PageWorld
from web import uploads
from web.problems import Problem
from web.signin import Who
from web.streams import MOST, Streams
from web.uploads import LARGE, MOST_OF_ALL, MOST_OF_USER, Uploads

ANN, BEN = Who("ann", "t1", ""), Who("ben", "t3", "")


def _request(*pieces: bytes, who: Who = ANN, length: int = 0) -> Request:
    """One of this user's that brings these pieces, and after an empty one nothing more."""
    left = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]

    async def receive() -> Any:
        if not left:
            return {"type": "http.request", "body": b"", "more_body": False}
        if not left[0]["body"]:
            await asyncio.Event().wait()
        return left.pop(0)

    headers = [(b"content-length", str(length).encode())] if length else []
    request = Request({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive)
    request.state.who = who
    return request


async def _turns() -> None:
    """Those that wait read what there is for them."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_of_large_ones_a_user_has_few_until_they_are_answered() -> None:
    async def main() -> None:
        known, large = Uploads(Streams()), b"x" * (LARGE + 1)
        answers = [AsyncExitStack() for _ in range(MOST_OF_USER)]
        for answered in answers:
            assert await known.read(_request(large), answered) == large
        more = _request(large, large, large)
        next_one = asyncio.create_task(known.read(more, AsyncExitStack()))
        await _turns()
        assert not next_one.done()
        # of what waits little is kept: the rest is the sender's
        assert (await more.receive())["body"] == large
        assert await known.read(_request(b"small"), AsyncExitStack()) == b"small"
        assert await known.read(_request(large, who=BEN), AsyncExitStack()) == large
        await answers[0].aclose()
        assert await next_one == large * 2

    asyncio.run(main())


def test_all_users_have_so_many_large_ones() -> None:
    async def main() -> None:
        known, large = Uploads(Streams()), b"x" * (LARGE + 1)
        answers = [AsyncExitStack() for _ in range(MOST_OF_ALL + MOST_OF_USER)]
        tasks = [
            asyncio.create_task(known.read(_request(large, who=Who(f"u{number // MOST_OF_USER}", "t", "")), answered))
            for number, answered in enumerate(answers)
        ]
        await _turns()
        assert sum(task.done() for task in tasks) == MOST_OF_ALL
        for task in tasks:
            task.cancel()

    asyncio.run(main())


def test_those_on_their_way_are_streams_of_their_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "AT_ONCE", 0.0)

    async def main() -> None:
        known = Uploads(Streams(most=1500))
        tasks = [asyncio.create_task(known.read(_request(b"x", b""), AsyncExitStack())) for _ in range(MOST)]
        await _turns()
        with pytest.raises(Problem) as refused:
            await known.read(_request(b"x", b""), AsyncExitStack())
        assert refused.value.status == 429
        assert await known.read(_request(b"x", who=BEN), AsyncExitStack()) == b"x"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert await known.read(_request(b"x"), AsyncExitStack()) == b"x"

    asyncio.run(main())


def test_one_that_does_not_come_whole_in_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "WHOLE", 0.0)
    with pytest.raises(Problem, match="did not come whole within 0 s") as refused:
        asyncio.run(Uploads(Streams()).read(_request(b"x", b""), AsyncExitStack()))
    assert refused.value.status == 408


def test_one_whose_sender_has_gone_is_said_so() -> None:
    async def gone() -> Any:
        return {"type": "http.disconnect"}

    request = Request({"type": "http", "method": "POST", "path": "/", "headers": [(b"content-length", b"100")]}, gone)
    request.state.who = ANN
    with pytest.raises(Problem, match="did not come whole"):
        asyncio.run(Uploads(Streams()).read(request, AsyncExitStack()))


@pytest.mark.parametrize("request_", [_request(length=uploads.MOST + 1), _request(b"x" * uploads.MOST, b"x")])
def test_one_that_is_too_large_is_refused(request_: Request) -> None:
    with pytest.raises(Problem) as refused:
        asyncio.run(Uploads(Streams()).read(request_, AsyncExitStack()))
    assert refused.value.status == 413


def test_a_request_that_was_answered_leaves_its_turn(tmp_path: Path) -> None:
    with PageWorld(tmp_path) as world:
        for _ in range(MOST_OF_ALL + 1):
            script = "#" * LARGE
            answer = world.client.post("/api/v1/jobs", json={"command": "", "script": script}, headers=world.bearer(ALICE))
            assert answer.status_code == 201, answer.text


def test_one_has_its_time_from_its_turn_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may be as slow as they may be."""
    monkeypatch.setattr(uploads, "WHOLE", 0.05)

    async def main() -> None:
        known, large = Uploads(Streams()), b"x" * (LARGE + 1)
        answers = [AsyncExitStack() for _ in range(MOST_OF_USER)]
        for answered in answers:
            await known.read(_request(large), answered)
        waits = asyncio.create_task(known.read(_request(large), AsyncExitStack()))
        over = asyncio.create_task(known.read(_request(b"x", b"", who=BEN), AsyncExitStack()))
        await asyncio.wait([over])
        assert not waits.done()
        await answers[0].aclose()
        assert await waits == large

    asyncio.run(main())


def test_streams_do_not_keep_a_user_from_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a portal has, which follows many jobs: a body that is there at once is no stream."""
    monkeypatch.setattr(uploads, "AT_ONCE", 0.0)

    async def main() -> None:
        streams = Streams(most=1000)
        known = Uploads(streams)
        kept = [streams.open(ANN) for _ in range(MOST)]
        assert await known.read(_request(b"small"), AsyncExitStack()) == b"small"
        with pytest.raises(Problem) as refused:
            await known.read(_request(b"half", b""), AsyncExitStack())
        assert refused.value.status == 429
        assert len(kept) == MOST

    asyncio.run(main())
