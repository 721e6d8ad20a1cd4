"""Threads for calls that may hang: each kind has its own, and one user's calls wait for that user's own only."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from proto.daemon import workers as workers_module
from proto.daemon.workers import Workers
from tests.support.wait import wait_until

SOON = 20.0


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    """What a call that hangs waits for; it ends with the test."""
    event = threading.Event()
    yield event
    event.set()


def test_results_and_errors_come_back() -> None:
    async def story() -> None:
        workers = Workers("calls")
        assert await workers.run(int, "7") == 7
        with pytest.raises(ValueError, match="seven"):
            await workers.run(int, "seven")
        assert await asyncio.gather(*(workers.run(divmod, n, 3) for n in range(50))) == [divmod(n, 3) for n in range(50)]

    asyncio.run(story())


def test_a_call_for_which_there_is_no_thread_yet_is_made_when_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of one moment ended who called, and every later call of the kind waited for ever."""
    tries: list[int] = []
    start = threading.Thread.start

    def scarce(thread: threading.Thread) -> None:
        tries.append(1)
        if len(tries) < 4:
            raise RuntimeError("can't start new thread")
        start(thread)

    async def story() -> None:
        workers = Workers("calls")
        monkeypatch.setattr(workers_module, "AGAIN", 0.001)
        monkeypatch.setattr(threading.Thread, "start", scarce)
        async with asyncio.timeout(SOON):
            assert [*await asyncio.gather(workers.run(int, "7"), workers.run(int, "8"))] == [7, 8]

    asyncio.run(story())


def test_a_call_that_hangs_does_not_hold_up_another_kind(hang: threading.Event) -> None:
    async def story() -> None:
        names, commits = Workers("names", 4), Workers("commits")
        stuck = [asyncio.create_task(names.run(hang.wait)) for _ in range(40)]
        await asyncio.sleep(0)
        async with asyncio.timeout(SOON):
            assert [await commits.run(len, "abc") for _ in range(3)] == [3, 3, 3]
        assert not any(task.done() for task in stuck)
        hang.set()
        assert await asyncio.gather(*stuck) == [True] * 40

    asyncio.run(story())


def test_a_dozen_calls_of_one_user_delay_that_user_alone(hang: threading.Event) -> None:
    async def story() -> None:
        reads = Workers("reads", 4, each=2)
        dozen = [asyncio.create_task(reads.run(hang.wait, who="alice")) for _ in range(12)]
        await asyncio.sleep(0)
        async with asyncio.timeout(SOON):
            assert await reads.run(len, "abc", who="bob") == 3
        more = asyncio.create_task(reads.run(len, "abc", who="alice"))
        async with asyncio.timeout(SOON):
            assert await reads.run(len, "ab", who="bob") == 2
        assert not more.done()
        hang.set()
        assert await asyncio.gather(*dozen) == [True] * 12
        assert await more == 3

    asyncio.run(story())


def test_what_nobody_waits_for_any_more_is_not_begun(hang: threading.Event) -> None:
    async def story() -> None:
        workers = Workers("calls")
        made: list[str] = []
        first = asyncio.create_task(workers.run(hang.wait))
        given_up = asyncio.create_task(workers.run(made.append, "given up"))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        hang.set()
        await first
        await workers.run(made.append, "wanted")
        assert made == ["wanted"]

    asyncio.run(story())


def test_a_thread_without_work_ends_and_another_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_module, "IDLE", 0.001)

    async def story() -> None:
        workers = Workers("idle ones", 2)
        for n in range(200):
            assert await asyncio.gather(*(workers.run(str, one) for one in (n, -n))) == [str(n), str(-n)]
            if not n % 10:
                await asyncio.to_thread(wait_until, lambda: "idle ones" not in {one.name for one in threading.enumerate()}, SOON)
            else:
                await asyncio.sleep(0.001)

    asyncio.run(story())


def test_a_call_that_never_returns_does_not_keep_the_loop_from_ending(hang: threading.Event) -> None:
    async def story() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(Workers("calls").run(hang.wait), 0.01)

    asyncio.run(story())
