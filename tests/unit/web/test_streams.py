"""Streams: how many of a user, when they end, and that nothing stays open behind one that was cut off."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.worlds.page import ALICE, BOB, PageWorld
from web import app, news, streams
from web.master import Master
from web.news import AWAY, News
from web.problems import Problem
from web.signin import Who
from web.streams import LONGEST, MOST, Open, StreamAnswer, Streams

ANN, HER_OTHER, BEN = Who("ann", "t1", ""), Who("ann", "t2", ""), Who("ben", "t3", "")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageWorld]:
    with PageWorld(tmp_path_factory.mktemp("page")) as made:
        yield made


def test_a_user_has_so_many_whatever_their_tokens_and_takes_none_from_others() -> None:
    known = Streams(most=1500)
    first, *_ = [known.open(ANN if number % 2 else HER_OTHER) for number in range(MOST)]
    with pytest.raises(Problem) as refused:
        known.open(ANN)
    assert (refused.value.status, refused.value.wait) == (429, 5)
    with known.open(BEN):
        first.close()
        first.close()
        known.open(ANN)
        with pytest.raises(Problem):
            known.open(HER_OTHER)


def test_many_users_leave_room_for_others() -> None:
    known = Streams(most=1500)
    had: dict[str, int] = {}
    for number in range(40):
        user = Who(f"u{number}", "t", "")
        with contextlib.suppress(Problem):
            while True:
                known.open(user)
                had[user.user] = had.get(user.user, 0) + 1
    assert [had[f"u{n}"] for n in range(28)] == [MOST] * 28
    assert min(had.values()) >= 10
    with known.open(ANN), known.open(BEN), known.open(ANN):
        pass


def test_who_has_none_is_told_that_the_page_is_full() -> None:
    known = Streams(most=1)
    with known.open(ANN), pytest.raises(Problem, match="too many streams are open"):
        known.open(BEN)


def test_one_ends_after_a_while_or_with_its_session() -> None:
    now = 0.0
    known = Streams(lambda: now)
    mine, other, his = known.open(ANN), known.open(HER_OTHER), known.open(BEN)
    known.end(ANN)
    assert [one.is_over for one in (mine, other, his)] == [True, False, False]
    now = LONGEST
    assert his.is_over


@pytest.mark.parametrize("how", ["whole", "cut off", "never begun"])
def test_nothing_stays_open_behind_an_answer(how: str) -> None:
    known, closed = Streams(), []

    async def pieces() -> AsyncGenerator[str]:
        try:
            yield "a"
            yield "b"
        finally:
            closed.append("source")

    async def send(message: Any) -> None:
        if how != "whole" and (how == "never begun" or message["type"] == "http.response.body"):
            raise OSError

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def main() -> None:
        answer = StreamAnswer(known.open(ANN), pieces(), {}, "text/plain")
        try:
            await answer({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send)
        except Exception:
            assert how != "whole"

    asyncio.run(main())
    assert closed == ([] if how == "never begun" else ["source"])
    assert known._open == {}


def test_output_that_is_followed_ends_without_a_word_while_the_job_writes_on() -> None:
    async def silent() -> AsyncGenerator[str]:
        while True:
            yield ""

    async def told(opened: Open) -> list[str]:
        return [one async for one in app._as_events(opened, "begun", silent())]

    now = itertools.count(0.0, LONGEST / 3)
    found = asyncio.run(told(Streams(lambda: next(now)).open(ANN)))
    assert found == ['event: output\ndata: "begun"\n\n', *[": alive\n\n"] * 3]


def test_a_stream_of_events_ends_after_a_while(world: PageWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LONGEST", 0.0)
    for path in ("/events", "/changes/events"):
        answer = world.client.get(f"/api/v1{path}", headers=world.bearer(ALICE))
        assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
        assert "event: end" not in answer.text


def test_news_that_pages_share_end_with_the_token(tmp_path: Path) -> None:
    """Pages that come and go keep one stream of lavad's open: lavad reads the token again from time to time."""
    clock, asked = itertools.count(0.0, LONGEST), itertools.count()

    async def lavad(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        frame = b'{"out":"{}\\n"}' if next(asked) < 3 else b'{"refused":"The token is not valid or has ended"}'
        with contextlib.suppress(ConnectionError):
            for _ in range(20_000):
                writer.write(len(frame).to_bytes(4, "big") + frame)
                await writer.drain()
                await asyncio.sleep(0)

    async def main() -> list[str]:
        async with await asyncio.start_unix_server(lavad, tmp_path / "lavad.sock"):
            follow = News(Master(str(tmp_path)), lambda: next(clock)).follow(Streams().open(ANN))
            return [one async for one in follow]

    found = asyncio.run(asyncio.wait_for(main(), 60))
    assert found == ["retry: 3000\n\n", *["event: news\ndata: {}\n\n"] * 3]


def test_pages_are_told_that_the_master_is_away_until_it_has_news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news, "AGAIN", 0.01)
    asked, back = itertools.count(), asyncio.Event()

    async def lavad(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """It ends after its first news, and comes back when it may; then the token has ended."""
        await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        time = next(asked)
        if time:
            await back.wait()
        frame = b'{"out":"{}\\n"}' if time < 2 else b'{"refused":"The token is not valid or has ended"}'
        writer.write(len(frame).to_bytes(4, "big") + frame)
        writer.close()

    async def main() -> list[str]:
        async with await asyncio.start_unix_server(lavad, tmp_path / "lavad.sock"):
            shared = News(Master(str(tmp_path)))
            first = shared.follow(Streams().open(ANN))
            heard = [await anext(first) for _ in range(3)]
            later = shared.follow(Streams().open(ANN))
            heard.append(await anext(later))
            back.set()
            heard += [one async for one in first]
            return heard

    found = asyncio.run(asyncio.wait_for(main(), 60))
    told = "event: news\ndata: {}\n\n"
    assert found == ["retry: 3000\n\n", told, AWAY, f"retry: 3000\n\n{AWAY}", told, AWAY]


def test_who_has_too_many_open_is_told_so_before_the_answer_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST", 0)
    with PageWorld(tmp_path) as world:
        for path in (
            "/events",
            "/changes/events",
            "/changes",
            "/jobs/1/end",
            "/jobs/1/output/events",
            "/jobs/1/output?whole=true",
        ):
            answer = world.client.get(f"/api/v1{path}", headers=world.bearer(BOB))
            assert (answer.status_code, answer.headers.get("retry-after")) == (429, "5"), path
