"""Hosts that fall silent together are given up together, and one that is heard again meanwhile is left alone; all are let go
while another master may be in office.
"""

from __future__ import annotations

import asyncio
import logging
from typing import cast

import pytest
from msgspec.structs import replace

from config.model.cluster import HostConfig
from lavad.boottime import boottime
from lavad.committed import Committed
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.depend.orphans import Orphans
from lavad.core.lang.asks import Refused
from lavad.core.lang.states import JobState
from lavad.hosts.leases import Findings, Leases
from lavad.hosts.sessions import Session, Sessions
from lavad.services import loops as loops_module
from lavad.services.loops import TOGETHER, Loops
from lavad.store.writer import Store
from tests.support.worlds.watched import Watched, told_to

HOSTS = [f"far{number}" for number in range(TOGETHER + 5)]


class Looked(Leases):
    """Finds all of them silent at the first look, and says when it is asked again."""

    def __init__(self) -> None:
        super().__init__(boottime() - 100.0)
        self.found = [(name, 100.0) for name in HOSTS]
        self.again = asyncio.Event()

    def look(self, cluster: Cluster, now: float) -> Findings:
        if not self.found:
            self.again.set()
        found, self.found = self.found, []
        return Findings(found, [])


@told_to(Watched)
async def test_silent_hosts_are_given_up_in_one_commit_but_for_those_heard_meanwhile(watched: Watched) -> None:
    bench, leases, downs = watched.bench, Looked(), []
    bench.configure(params=replace(bench.cluster.conf.params, lava_host_timeout=1))
    up: list[ev.Event] = [ev.HostUp(at=bench.now, host=name) for name in HOSTS]
    await watched.engine.ask(lambda cluster, now: Decided(events=up))

    def committed(told: Committed) -> None:
        downs.append([event.host for event in told.events if isinstance(event, ev.HostDown)])
        for name in HOSTS:
            leases.heard(name, boottime() + 1000.0)

    watched.engine.listen(committed)
    loops = Loops(watched.engine, Sessions(), leases, cast(Store, None), lambda: bench.now)
    watching = asyncio.create_task(loops.hosts())
    await leases.again.wait()
    watching.cancel()
    assert downs == [HOSTS[:TOGETHER]]


@told_to(Watched)
async def test_a_host_that_leaves_while_the_store_is_full_leaves_when_there_is_room(watched: Watched) -> None:
    bench, gone = watched.bench, asyncio.Event()
    bench.configure(params=replace(bench.cluster.conf.params, lava_host_timeout=0.01), hosts=(HostConfig(name="h1"),))
    watched.engine.listen(lambda told: gone.set() if ev.HostLeft in told.kinds else None)
    watched.disk(full=True)
    loops = Loops(watched.engine, Sessions(), Leases(boottime()), cast(Store, None), lambda: bench.now)
    watching = asyncio.create_task(loops.hosts())
    while watched.store.refused < 2:
        assert not watching.done()
        await asyncio.sleep(0)
    watched.disk(full=False)
    await gone.wait()
    watching.cancel()


def test_hosts_are_let_go_once_another_master_may_be_in_office(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also while the database says nothing at all; each host that comes back meanwhile is let go again, with no other line."""
    monkeypatch.setattr(loops_module, "LEASE_PAUSE", 0.0)
    caplog.set_level(logging.INFO)
    watched = Watched()
    sessions, leases = Sessions(), Leases(boottime(), boottime() - 1.0)

    async def story() -> None:
        watching = asyncio.create_task(Loops(watched.engine, sessions, leases, cast(Store, None), lambda: 0.0).masters_lease())
        async with asyncio.timeout(60):
            for _ in range(2):
                session = Session("far1", 0)
                sessions.open(session)
                assert await session.outgoing.get() is None
                assert not sessions.rows
            assert [record.levelname for record in caplog.records] == ["WARNING"]
            leases.held(boottime() + 1000.0)
            sessions.open(Session("far1", 0))
            for _ in range(10):
                await asyncio.sleep(0)
        watching.cancel()

    asyncio.run(story())
    assert caplog.messages[1:] == ["the masters' lease is renewed again"]
    assert list(sessions.rows) == ["far1"]


def test_ends_of_orphans_that_are_refused_are_tried_again_no_sooner_than_others(monkeypatch: pytest.MonkeyPatch) -> None:
    watched, tries, pauses = Watched(), [], []
    watched.bench.configure(params=replace(watched.bench.cluster.conf.params, orphan_job_term_grace_period=0))
    event = ev.JobFinished(at=0.0, key=1, state=JobState.EXIT)
    monkeypatch.setattr(Orphans, "due", lambda *_: [event])

    async def refused(_: object) -> None:
        tries.append(1)
        raise Refused("the store is full")

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) > 3:
            raise asyncio.CancelledError

    monkeypatch.setattr(watched.engine, "ask", refused)
    monkeypatch.setattr(asyncio, "sleep", pause)
    loops = Loops(watched.engine, Sessions(), Leases(0.0), cast(Store, None), lambda: 0.0)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(loops.orphans())
    assert (len(tries), set(pauses)) == (3, {loops_module.ORPHANS_PAUSE})
