"""Which idle shepherds are kept for the next parts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from agent.starter.supervisor.journal import Journal
from agent.starter.supervisor.pool import IDLE_SECONDS, MAX_IDLE, MAX_LIGHT, Home, Pool
from agent.starter.supervisor.shepherd_handle import ShepherdHandle, ShepherdKey
from agent.starter.system.watch import Watch


def test_idle_shepherds_are_kept_by_the_memory_that_they_take(tmp_path: Path) -> None:
    pool = Pool(Home("h1"), Journal(str(tmp_path)), Watch(), lambda _: None)
    key, numbers = ShepherdKey(0, 0, (), False), iter(range(10_000))

    def idle(pid: int, count: int) -> list[ShepherdHandle]:
        made = [ShepherdHandle(next(numbers), key) for _ in range(count)]
        for one in made:
            one.pid = pid
            pool.release(one)
        return made

    with subprocess.Popen(["/bin/sleep", "600"]) as light:
        try:
            heavy, small = idle(os.getpid(), MAX_IDLE + 2), idle(light.pid, MAX_LIGHT + 3)
            pool.retire_idle()
            assert [one.doomed for one in heavy] == [True, True] + [False] * MAX_IDLE
            assert [one.doomed for one in small] == [True] * 3 + [False] * MAX_LIGHT
            for one in small[-5:]:
                one.idle_since -= IDLE_SECONDS + 1
            pool.retire_idle()
            assert sum(one.doomed for one in small) == 8
            assert not small[3].doomed
        finally:
            light.kill()


def test_a_part_gets_the_shepherd_of_which_no_end_is_needed(tmp_path: Path) -> None:
    pool = Pool(Home("h1"), Journal(str(tmp_path)), Watch(), lambda _: None)
    key = ShepherdKey(0, 0, (), False)
    first, second, third = (ShepherdHandle(number, key) for number in range(3))
    for one in (first, second, third):
        one.pid = os.getpid()
        one.kept.add(f"part{one.number}")
        pool.release(one)
    pool.by_pid[os.getpid()] = first
    second.kept.clear()
    pool.needed_no_more(second)
    assert pool.reserve(key) is second
    pool.needed_no_more(second)  # of its part before: it does not become idle by that
    assert [pool.reserve(key) for _ in range(2)] == [third, first]
    assert pool.reserve(key).pid == 0
