"""Hosts that fall silent together are given up together, and one that is heard again meanwhile is left alone."""

from __future__ import annotations

import asyncio
from typing import cast

from msgspec.structs import replace

from lavad.boottime import boottime
from lavad.committed import Committed
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.hosts.leases import Findings, Leases
from lavad.hosts.sessions import Sessions
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
