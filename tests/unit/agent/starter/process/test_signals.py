"""One task of several is ended, with all that it started: at once, or asked first."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from agent.starter.process.account import Task
from agent.starter.process.signals import Signals
from agent.starter.system import kernel, proctree
from tests.support.wait import wait_until

TREE = "import subprocess, signal, sys, time; {} subprocess.Popen(['sleep', '607']); print(flush=True); time.sleep(607)"
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN);"
Start = Callable[[str], int]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a process in a session of its own, which has a child; its pid, once that is there."""
    begun: list[subprocess.Popen[bytes]] = []

    def begin(before: str) -> int:
        made = subprocess.Popen([sys.executable, "-c", TREE.format(before)], stdout=subprocess.PIPE, start_new_session=True)
        begun.append(made)
        assert made.stdout is not None
        made.stdout.readline()
        return made.pid

    yield begin
    for one in begun:
        proctree.kill_all(lambda pid=one.pid: proctree.below([pid]) | {pid})  # type: ignore[misc]
        one.communicate()


def test_a_task_that_is_asked_ends_by_sigterm_and_others_do_not(start: Start) -> None:
    pids = [start(""), start("")]
    signals = Signals({pid: Task(rank, pid) for rank, pid in enumerate(pids)}, {})
    signals.end_task(1, 600.0)
    wait_until(lambda: kernel.look_at_ended_child()[0], 30, "the task to end")
    assert kernel.look_at_ended_child()[:2] == (pids[1], signal.SIGTERM)
    assert signals.wake_at() is not None
    signals.ended(pids[1])
    assert signals.wake_at() is None
    assert not proctree.is_dead(pids[0])


def test_one_that_does_not_end_is_killed_with_all_below_it(start: Start) -> None:
    pid = start(DEAF)
    below = proctree.below([pid])
    signals = Signals({pid: Task(0, pid)}, {})
    signals.end_task(0, 0.0)
    signals.end_task(0, 600.0)
    signals.kill_asked()
    wait_until(lambda: all(map(proctree.is_dead, below | {pid})), 30, "all of them to end")
    assert len(below) == 1


def test_one_that_is_not_asked_is_killed_at_once(start: Start) -> None:
    pid = start(DEAF)
    Signals({pid: Task(0, pid)}, {}).end_task(0)
    wait_until(lambda: proctree.is_dead(pid), 30, "it to end")
