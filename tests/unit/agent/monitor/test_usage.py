"""When what is dear to look at is looked at."""

from __future__ import annotations

import os

import pytest

from agent.monitor import usage
from agent.monitor.procscan import read_pss
from agent.monitor.tree import PartRoots
from agent.monitor.usage import PSS_EVERY, UsageSampler


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
