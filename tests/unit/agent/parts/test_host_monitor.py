"""Heartbeats do not wait for what hangs on a host: the load is that of the last sample, the facts are those of the last look."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator

import pytest

from agent.core.part import Part
from agent.launch.outputs import OutputPaths
from agent.parts import host_monitor
from agent.parts.entry import Entry
from agent.parts.host_monitor import HostMonitor
from proto import agent_pb2 as pb
from tests.support.open_files import no_more_files


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


def test_an_agent_that_can_open_no_more_files_goes_on_with_what_it_knows(caplog: pytest.LogCaptureFixture) -> None:
    """And says it once of what jobs use and of the load, at which it looks every few seconds."""

    async def story() -> None:
        monitor = HostMonitor("127.0.0.1", 3)
        first, load = await monitor.facts(), await monitor.load()
        entry = Entry(Part("u", 7, 1), pb.Order(), None, OutputPaths(), 0.0)
        entry.shepherd = os.getpid()
        entries = [entry]
        assert await monitor.usage(entries)
        with no_more_files():
            assert [await monitor.usage(entries) for _ in range(3)] == [{}] * 3
            assert [await monitor.load() for _ in range(3)] == [load] * 3
            monitor._facts_at = -1e9
            assert await monitor.facts() == first
        assert await monitor.usage(entries)
        await monitor.load()

    asyncio.run(story())
    assert [text for text in caplog.messages if "jobs use" in text] == [
        "what jobs use cannot be measured: [Errno 24] Too many open files: '/proc'"
    ]
    assert [text.partition(":")[0] for text in caplog.messages if "the load" in text] == [
        "the load cannot be measured",
        "the load is measured again",
    ]
