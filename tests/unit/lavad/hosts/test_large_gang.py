"""A gang on very many hosts: one order a host to prepare and one to go, whatever the number of ranks."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from lavad.core.job.reports import RefusedReport
from lavad.core.job.spec import JobText
from lavad.engine import Committed
from lavad.hosts.job_text_cache import JobTextCache
from lavad.hosts.outbox import Outbox
from lavad.hosts.sessions import Session, Sessions
from proto import agent_pb2 as pb
from tests.support.worlds.streams import texts_and_orders
from tests.support.worlds.world import World

HOSTS, RANKS = 200, 10


class Stored:
    """A store's reader."""

    def texts(self, jobs: list[int]) -> dict[int, JobText]:
        return {job: JobText(command="prog") for job in jobs}


def test_the_number_of_orders_goes_with_the_hosts() -> None:
    """No order for a rank, and no host is told twice, however often its neighbours report."""
    world = World()
    names = [f"h{number:03d}" for number in range(HOSTS)]
    world.hosts(*names, slots=RANKS)
    sessions = Sessions()
    streams = {name: Session(name, 0) for name in names}
    for stream in streams.values():
        sessions.open(stream)
    refused: list[RefusedReport] = []
    texts = JobTextCache(cast(Any, Stored()))
    outbox = Outbox(world.cluster, sessions, texts, b"secret", lambda: world.now, refused.append)
    key = world.submit(slots=HOSTS * RANKS, launch="mpi")
    world.step()

    def committed() -> None:
        outbox.committed(Committed(world.cluster.version, (), (world.cluster.jobs.rows[key],), ()))

    async def sent() -> list[tuple[str, pb.Order]]:
        for stream in streams.values():
            if due := stream.take_due():
                await outbox._send(stream, due)
        assert not refused
        return [(name, order) for name, stream in streams.items() for order in texts_and_orders(stream)[1]]

    committed()
    starts = asyncio.run(sent())
    assert sorted(name for name, _ in starts) == names
    assert [len(order.start.hosts) for _, order in starts] == [HOSTS] * HOSTS
    assert all(order.start.hosts[order.start.place].host == name for name, order in starts)
    uid = starts[0][1].uid
    for name in names:
        world.hear("prepared", key, uid, name, "10.0.0.1:7")
        committed()
    goes = asyncio.run(sent())
    assert sorted(name for name, _ in goes) == names
    assert all(order.HasField("release") for _, order in goes)
    for name in names:
        world.hear("started", key, uid, name, 7, world.now, "/")
        committed()
    assert asyncio.run(sent()) == []
