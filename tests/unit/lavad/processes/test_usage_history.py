"""What running jobs used over time, in bounded room."""

from __future__ import annotations

import pytest

from lavad.core.plan.volatile import PartUsage, SoftUpdate, TaskUsage
from lavad.processes.usage_history import MOST, UsageHistory


def told(at: float, cpu: float, host: str = "h1", attempt: int = 1, rss: int = 1024, gpu: int = 0) -> SoftUpdate:
    tasks = (TaskUsage(rank=0, pid=1, gpu_util=gpu),) if gpu else ()
    return SoftUpdate(usage=[(host, PartUsage(key=5, attempt=attempt, at=at, cpu=cpu, rss=rss, tasks=tasks))])


def test_cpus_are_seconds_of_cpu_a_second_on_all_hosts() -> None:
    history = UsageHistory()
    history.note(told(100.0, 0.0))
    history.note(told(110.0, 20.0, rss=2048, gpu=50))
    found = history.of(5)
    assert [sample.at for sample in found] == [100.0, 110.0]
    assert found[1].cpus == pytest.approx(2.0)
    assert (found[1].mem, found[1].gpu) == (2048, 50.0)
    assert found[0].gpu == -1.0


def test_long_runs_are_thinned_and_keep_their_ends() -> None:
    history = UsageHistory()
    for second in range(5000):
        history.note(told(1000.0 + second, second * 1.5))
    found = history.of(5)
    assert MOST // 4 < len(found) <= MOST
    assert found[-1].at > 5900.0
    assert all(sample.cpus == pytest.approx(1.5, abs=0.1) for sample in found[2:])


def test_another_attempt_begins_anew_and_what_is_over_is_forgotten() -> None:
    history = UsageHistory()
    history.note(told(100.0, 10.0))
    history.note(told(200.0, 1.0, attempt=2))
    assert [sample.at for sample in history.of(5)] == [200.0]
    history.forget([5])
    assert history.of(5) == []
