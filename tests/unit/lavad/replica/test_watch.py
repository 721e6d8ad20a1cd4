"""A replica's process that does not answer is ended; one that is at work, or whose messages nobody reads, is not."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest

from lavad.replica import protocol as feed
from lavad.replica import watch as module
from lavad.replica.watch import watch

READY = "import time; print(flush=True)\n"
SLEEPS, WORKS = READY + "time.sleep(1000)", READY + "while True: pass"
ROUNDS = 4


class Process:
    """The process as lavad knows it; it answers ``answers`` pings."""

    def __init__(self, pid: int, answers: int = 0, reads: bool = True) -> None:
        self.pid = pid
        self.there = asyncio.Event()
        self.there.set()
        self.answered = 0
        self.reads = reads
        self.answers = answers
        self.pings = 0
        self.killed_after: list[int] = []
        self.over = asyncio.Event()

    def send(self, message: msgspec.Struct) -> None:
        assert isinstance(message, feed.Ping)
        self.pings += 1
        if self.pings > ROUNDS:
            self.over.set()
        if message.number <= self.answers:
            self.answered = message.number

    def kill(self) -> None:
        self.killed_after.append(self.pings)
        self.over.set()


@pytest.fixture
def pid(request: pytest.FixtureRequest) -> Iterator[int]:
    """Of a process that runs the program which the test names, once its start costs no CPU any more."""
    with subprocess.Popen([sys.executable, "-ISc", request.param], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def watched(process: Process, works_long: bool, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After how many pings it was killed, first, in ROUNDS of them."""
    monkeypatch.setattr(module, "SILENT", 0.3)
    monkeypatch.setattr(module, "LOADING", 2)

    async def story() -> None:
        watching = asyncio.create_task(watch(process, "scheduler", works_long))
        await process.over.wait()
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching

    asyncio.run(story())
    return process.killed_after


@pytest.mark.parametrize("pid", [SLEEPS], indirect=True)
@pytest.mark.parametrize("works_long", [False, True])
@pytest.mark.parametrize(("answers", "killed"), [(0, 2), (1, 2), (2, 3)])
def test_one_that_is_silent_is_ended_later_where_it_has_never_answered(
    pid: int, works_long: bool, answers: int, killed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert watched(Process(pid, answers), works_long, monkeypatch) == [killed]


@pytest.mark.parametrize("pid", [WORKS], indirect=True)
@pytest.mark.parametrize(("works_long", "killed"), [(False, [2]), (True, [])])
def test_one_that_has_cpu_time_may_be_in_the_midst_of_its_work(
    pid: int, works_long: bool, killed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert watched(Process(pid), works_long, monkeypatch) == killed


@pytest.mark.parametrize("pid", [SLEEPS], indirect=True)
def test_one_whose_last_message_is_still_handled_cannot_be_heard(pid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(Process(pid, reads=False), True, monkeypatch) == []


@pytest.mark.parametrize("pid", [SLEEPS], indirect=True)
def test_one_that_answers_is_left_alone(pid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(Process(pid, answers=ROUNDS + 1), True, monkeypatch) == []
