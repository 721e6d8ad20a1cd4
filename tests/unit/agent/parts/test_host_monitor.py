"""Heartbeats do not wait for what hangs on a host: the load is that of the last sample, the facts are those of the last look."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from agent.parts import host_monitor
from agent.parts.host_monitor import HostMonitor


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_load_that_hangs_is_the_last_one_and_its_age_is_known(
    hang: threading.Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    samples = iter([{"r1m": 1.0}, {"r1m": 2.0}, {"r1m": 3.0}])
    hangs = False

    def sample() -> dict[str, float]:
        found = next(samples)
        if hangs:
            hang.wait()
        return found

    async def story() -> None:
        nonlocal hangs
        monitor = HostMonitor("127.0.0.1", 1, sample)
        assert await monitor.load() == {"r1m": 1.0}
        hangs = True
        monkeypatch.setattr(host_monitor, "WAIT", 0.01)
        monkeypatch.setattr(host_monitor, "OLD", 0.0)
        assert [await monitor.load() for _ in range(3)] == [{"r1m": 1.0}] * 3
        assert monitor.load_age() > 0
        assert "the load was last measured" in caplog.text
        hang.set()
        monkeypatch.setattr(host_monitor, "WAIT", 20.0)
        assert await monitor.load() == {"r1m": 2.0}
        assert await monitor.load() == {"r1m": 3.0}

    asyncio.run(story())


def test_facts_that_hang_are_the_last_ones(hang: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU driver that hangs under a sample does not keep an agent from greeting a new master."""

    async def story() -> None:
        monitor = HostMonitor("127.0.0.1", 3)
        first = await monitor.facts()
        assert first.ncpus == 3
        monkeypatch.setattr(host_monitor, "WAIT", 0.01)
        monkeypatch.setattr(host_monitor, "FACTS_KEPT", -1.0)
        stuck = asyncio.create_task(monitor._one.run(hang.wait))
        await asyncio.sleep(0)
        assert await monitor.facts() == first
        hang.set()
        await stuck

    asyncio.run(story())
