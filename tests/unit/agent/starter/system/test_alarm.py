"""A timer on the clock of leases."""

from __future__ import annotations

import os

from agent.starter.system import kernel
from agent.starter.system.alarm import Alarm
from agent.starter.system.watch import Watch


def test_it_rings_once_at_the_time_that_was_set_last_and_at_once_for_one_that_has_passed() -> None:
    watch = Watch()
    rang: list[float] = []
    alarm = Alarm(watch, lambda: rang.append(kernel.boottime()))
    at = kernel.boottime() + 0.05
    alarm.set(at - 0.04)
    alarm.set(at)
    while not rang:
        watch.wait(20)
    assert rang[0] >= at
    for past in (at, 0.0, -5.0):
        rang.clear()
        alarm.set(past)
        watch.wait(20)
        assert len(rang) == 1
    rang.clear()
    alarm.set(kernel.boottime() + 0.02)
    alarm.close()
    watch.wait(0.05)
    assert not rang
    alarm.close()


def test_its_file_is_not_for_children() -> None:
    before = set(os.listdir("/proc/self/fd"))
    alarm = Alarm(Watch())
    (own,) = [int(fd) for fd in set(os.listdir("/proc/self/fd")) - before if _is_timer(fd)]
    assert not os.get_inheritable(own)
    alarm.close()


def _is_timer(fd: str) -> bool:
    try:
        return "timerfd" in os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return False
