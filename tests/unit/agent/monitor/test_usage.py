"""When what is dear to look at is looked at, and for whom what is found counts."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from agent.monitor import usage
from agent.monitor.left_ranks import LOOKS
from agent.monitor.procscan import parent_of, read_pss
from agent.monitor.tree import PartRoots
from agent.monitor.usage import PSS_EVERY, UsageSampler
from tests.support.wait import wait_until

PR_SET_CHILD_SUBREAPER = 36


def test_shared_memory_is_looked_at_again_after_the_clock_was_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else all of it would count for each process that was begun since, until the clock is where it was."""
    looks: list[int] = []

    def look(pid: int) -> tuple[int, int] | None:
        looks.append(pid)
        return read_pss(pid)

    monkeypatch.setattr(usage, "read_pss", look)
    at = 1e9
    sampler = UsageSampler(clock=lambda: at)
    roots = {"u": PartRoots(1, 1, ((0, os.getpid(), 0),), 0)}
    sampler.sample(roots)
    assert len(looks) == 1
    at += PSS_EVERY / 10
    sampler.sample(roots)
    assert len(looks) == 1
    at -= 86_400
    sampler.sample(roots)
    assert len(looks) == 2
    at += 1
    sampler.sample(roots)
    assert len(looks) == 2


DAEMON = """
import os, sys, time
if os.fork():
    time.sleep(600)
os.setsid()
if os.fork():
    os._exit(0)
print(os.getpid(), flush=True)
try:
    os.read(0, 1)
finally:
    os._exit(0)
"""


def test_what_left_the_tree_of_its_rank_counts_for_it_nevertheless() -> None:
    """As a container of podman does, whose processes are in sessions of their own: its environment names the rank."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    ranks, left = [], []
    try:
        for rank in (4, 5):
            env = {**os.environ, "LSF_PM_TASKID": str(rank + 1)}
            words = [sys.executable, "-c", DAEMON]
            one = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
            ranks.append(one)
            assert one.stdout is not None
            left.append(int(one.stdout.readline()))
        wait_until(lambda: {parent_of(pid) for pid in left} == {os.getpid()}, 20, "they have lost their parents")
        tasks = tuple((rank, one.pid, 0) for rank, one in zip((4, 5), ranks, strict=True))
        sampler = UsageSampler()
        for _ in range(LOOKS + 2):
            found = sampler.sample({"u": PartRoots(1, 1, tasks, os.getpid())})["u"]
            assert [(task.rank, task.processes) for task in found.tasks] == [(4, 2), (5, 2)]
        # of a part with other ranks it is nobody's
        others = tuple((rank + 2, pid, start) for rank, pid, start in tasks)
        found = UsageSampler().sample({"u": PartRoots(1, 1, others, os.getpid())})["u"]
        assert [task.processes for task in found.tasks] == [1, 1]
        assert set(left) <= set(found.pids)
    finally:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0)
        for one in ranks:
            one.kill()
            one.communicate()
        for pid in left:
            os.waitpid(pid, 0)
