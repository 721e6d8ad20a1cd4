"""What an idle rank waits for: looked at when it has been still for some samples, at the process that tells most."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from agent.monitor.procscan import Proc, read_proc
from agent.monitor.waiting import STILL, Stillness, most_telling, waits_for
from tests.support.wait import wait_until


def proc(pid: int, ppid: int = 1, state: str = "S", start: int = 0) -> Proc:
    return Proc(pid, state, ppid, pid, pid, 0, 0, 1, start or pid, 0, False)


@pytest.fixture
def reader() -> Iterator[int]:
    """A process that reads from a pipe that nobody writes to."""
    reading, writing = os.pipe()
    pid = os.posix_spawn("/bin/cat", ["cat"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, reading, 0)])
    yield pid
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(reading)
    os.close(writing)


def test_the_process_that_tells_most() -> None:
    shell, child, other = proc(10), proc(11, 10), proc(12, 10)
    assert most_telling([shell, child]) is child
    assert most_telling([shell, child, other]) is other
    assert most_telling([shell, proc(11, 10, "D"), other]).pid == 11  # type: ignore[union-attr]
    assert most_telling([shell, proc(11, 10, "T"), proc(12, 10, "D")]).pid == 11  # type: ignore[union-attr]
    assert most_telling([proc(10, 1, "Z")]) is None


def test_what_a_reader_waits_in(reader: int) -> None:
    def text() -> str:
        found = read_proc(reader)
        assert found is not None
        return waits_for(found)

    wait_until(lambda: "pipe" in text(), 30, text)


def asleep(pid: int) -> Proc | None:
    found = read_proc(pid)
    return found if found is not None and found.state == "S" and waits_for(found) else None


def test_only_a_rank_that_was_still_for_some_samples_is_looked_at(reader: int) -> None:
    found = wait_until(lambda: asleep(reader), 30, "the reader to wait")
    assert found is not None
    stillness = Stillness()
    seen = [stillness.see(0, 7, 10.0 * number, False, [found]) for number in range(STILL + 2)]
    assert [one.waits != "" for one in seen] == [False] * STILL + [True, True]
    moved = stillness.see(0, 500, 10.0 * (STILL + 2), False, [found])
    assert (moved.still, moved.waits) == (0, "")


def test_a_stopped_rank_says_so_at_once() -> None:
    seen = Stillness().see(0, 7, 0.0, True, [proc(10), proc(11, 10, "T")])
    assert (seen.pid, seen.waits) == (11, "stopped")


def test_what_was_seen_of_a_stop_is_forgotten_when_it_goes_on() -> None:
    stillness = Stillness()
    stillness.see(0, 7, 0.0, True, [proc(11, 10, "T")])
    assert stillness.see(0, 7, 10.0, False, [proc(11, 10, "R")]).waits == ""
