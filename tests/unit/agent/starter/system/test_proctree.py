"""Start times of processes, who is below whom, and that a signal reaches the process that was found or nobody."""

from __future__ import annotations

import errno
import gc
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from agent.starter.system import proctree
from tests.support.wait import wait_until


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "100"]) as process:
        yield process
        process.kill()


def test_starttime_and_children(sleeper: subprocess.Popen[bytes]) -> None:
    assert proctree.starttime(os.getpid()) > 0
    assert proctree.starttime(2**22 + 1) == 0
    assert sleeper.pid in proctree.children(os.getpid())
    assert sleeper.pid in proctree.below([os.getpid()])
    assert sleeper.pid in proctree._below_by_scan([os.getpid()])


def test_a_number_whose_process_is_gone_when_it_is_looked_for_again_is_spared(sleeper: subprocess.Popen[bytes]) -> None:
    """As a number that another process has got meanwhile: it was found, and is not found again."""
    with subprocess.Popen(["sleep", "100"]) as mine:
        answers = iter([{sleeper.pid, mine.pid}, {mine.pid}])
        assert proctree.kill_all(lambda: next(answers, {mine.pid}))
        assert mine.wait() == -signal.SIGKILL
    assert sleeper.poll() is None


@pytest.mark.parametrize("pidfds", [True, False])
def test_all_that_is_found_is_killed(sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, pidfds: bool) -> None:
    monkeypatch.setattr(proctree, "_HAS_PIDFDS", pidfds)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    with subprocess.Popen(["sh", "-c", "sleep 100 & sleep 100 & wait"]) as shell:
        wait_until(lambda: len(proctree.below([shell.pid])) == 2, 20, "its children")
        assert proctree.kill_all(lambda: proctree.below([shell.pid]) | {shell.pid})
        assert shell.wait() == -signal.SIGKILL
    assert sleeper.poll() is None
    assert len(os.listdir("/proc/self/fd")) <= before


def test_more_than_there_is_room_for_are_killed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proctree, "_MOST_HELD", 2)
    several = [subprocess.Popen(["sleep", "100"]) for _ in range(5)]
    try:
        left = {one.pid for one in several}
        proctree.kill_all(lambda: left)
        wait_until(lambda: sum(one.poll() is not None for one in several) == 2, 20, "two of them")
        states = sorted(proctree.stat_fields(one.pid)[0] for one in several if one.poll() is None)
        assert states == [b"T"] * 3, "the others cannot fork meanwhile"

        def over() -> bool:
            proctree.kill_all(lambda: {one.pid for one in several if one.poll() is None})
            return all(one.poll() is not None for one in several)

        wait_until(over, 20, "the others")
        assert {one.wait() for one in several} == {-signal.SIGKILL}
    finally:
        for one in several:
            one.kill()
            one.wait()


@pytest.mark.parametrize("pidfds", [True, False])
def test_a_process_is_known_by_its_start(sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, pidfds: bool) -> None:
    monkeypatch.setattr(proctree, "_HAS_PIDFDS", pidfds)
    start = proctree.starttime(sleeper.pid)
    proctree.send_exactly(sleeper.pid, start + 1, signal.SIGKILL)
    proctree.send_exactly(2**22 + 1, start, signal.SIGKILL)
    assert sleeper.poll() is None
    proctree.send_exactly(sleeper.pid, start, signal.SIGKILL)
    assert sleeper.wait() == -signal.SIGKILL


def test_that_no_file_can_be_opened_does_not_mean_that_there_are_no_children(sleeper: subprocess.Popen[bytes]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        assert proctree.children(os.getpid()) == []
        with pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
            proctree.children(os.getpid(), sure=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert sleeper.pid in proctree.children(os.getpid(), sure=True)
    assert proctree.children(2**22 + 1, sure=True) == []


NOBODY_HAS = 0xFFFFFFF0
"""The number of no user."""


def test_environments_are_read_of_the_users_that_are_asked_for() -> None:
    mark = f"LAVA_ATTEMPT=test-{os.getpid()}"
    with subprocess.Popen(["env", "-i", mark, "LAVA_HOST=h1", "/bin/sleep", "100"]) as process:
        found = {mark.encode()}
        own = proctree.of_users({os.getuid(), NOBODY_HAS})
        assert own.keys() == {os.getuid()}
        assert os.getpid() not in own[os.getuid()]
        own_pids = own[os.getuid()]
        wait_until(lambda: dict(proctree.having_in_environment(found, "h1", own_pids)), 20, "its environment")
        there = [(process.pid, proctree.starttime(process.pid))]
        assert list(proctree.having_in_environment(found, "h1", own_pids)) == there
        assert list(proctree.having_in_environment(found, "h2", own_pids)) == []
        assert list(proctree.having_in_environment({b"LAVA_ATTEMPT=other"}, "h1", own_pids)) == []
        process.kill()


def test_a_number_that_another_process_has_by_now_has_no_group_signalled() -> None:
    """What was found is below the caller, or below another that was found; another process with its number is not."""
    words = ["sh", "-c", "sleep 100 & echo $!; wait"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        inner = int(process.stdout.readline())
        proctree.signal_groups({inner}, signal.SIGKILL)
        proctree.signal_groups({process.pid, inner}, signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM


FIRST_THREAD_ENDS = """
import ctypes, threading
threading.Thread(target=threading.Event().wait, args=(100,)).start()
ctypes.CDLL(None).syscall(60, 0)
"""


def test_a_zombie_is_dead_but_not_where_threads_of_it_run() -> None:
    with subprocess.Popen([sys.executable, "-c", FIRST_THREAD_ENDS]) as process:
        wait_until(lambda: proctree.stat_fields(process.pid)[0] == b"Z", 20, "its first thread to end")
        assert not proctree.is_dead(process.pid)
        process.kill()
        wait_until(lambda: proctree.is_dead(process.pid), 20, "the others to end")
        assert process.pid in proctree.children(os.getpid()), "nobody has waited for it"
    assert proctree.is_dead(process.pid)
