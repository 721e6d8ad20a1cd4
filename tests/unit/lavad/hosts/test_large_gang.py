"""A gang on very many hosts: one order a host to prepare and one to go, whatever the number of ranks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeAlias, cast

from agent.parts.kept_messages import unpack
from lavad.committed import Committed
from lavad.core.job.endpoint import Endpoint, endpoint_text
from lavad.core.job.job import End
from lavad.core.job.reports import RefusedReport
from lavad.core.job.spec import JobText
from lavad.hosts.job_text_cache import JobTextCache
from lavad.hosts.outbox import Outbox
from lavad.hosts.sessions import Session, Sessions
from proto import agent_pb2 as pb
from tests.support.worlds.streams import texts_and_orders
from tests.support.worlds.world import World

HOSTS, RANKS = 200, 10
TraceFunction: TypeAlias = Callable[[FrameType, str, object], "TraceFunction"]


class Stored:
    """A store's reader."""

    def texts(self, jobs: list[int]) -> dict[int, JobText]:
        return {job: JobText(command="prog") for job in jobs}


class Gang:
    """A job over all of so many hosts, and what each of them is told."""

    def __init__(self, hosts: int, unpacks: bool = False) -> None:
        self.world = World()
        self.names = [f"h{number:03d}" for number in range(hosts)]
        self.world.hosts(*self.names, slots=RANKS)
        sessions = Sessions()
        self.streams = {name: Session(name, 0, unpacks=unpacks) for name in self.names}
        for stream in self.streams.values():
            sessions.open(stream)
        self.refused: list[RefusedReport] = []
        texts = JobTextCache(cast(Any, Stored()))
        self.outbox = Outbox(self.world.cluster, sessions, texts, b"secret", lambda: self.world.now, self.refused.append)
        self.key = self.world.submit(slots=hosts * RANKS, launch="mpi")
        self.world.step()
        self.committed()

    def committed(self) -> None:
        self.outbox.committed(Committed(self.world.cluster.version, (), (self.world.cluster.jobs.rows[self.key],), ()))

    def send(self) -> None:
        async def send() -> None:
            for stream in self.streams.values():
                if due := stream.take_due():
                    await self.outbox._send(stream, due)

        asyncio.run(send())
        assert not self.refused

    def sent(self) -> list[tuple[str, pb.Order]]:
        self.send()
        return [(name, order) for name, stream in self.streams.items() for order in texts_and_orders(stream)[1]]


def test_the_number_of_orders_goes_with_the_hosts() -> None:
    """No order for a rank, and no host is told twice, however often its neighbours report."""
    gang = Gang(HOSTS)
    names = gang.names
    starts = gang.sent()
    assert sorted(name for name, _ in starts) == names
    assert [len(order.start.hosts) for _, order in starts] == [HOSTS] * HOSTS
    assert all(order.start.hosts[order.start.place].host == name for name, order in starts)
    uid = starts[0][1].uid
    for name in names:
        gang.world.hear("prepared", gang.key, uid, name, "10.0.0.1:7")
        gang.committed()
    goes = gang.sent()
    assert sorted(name for name, _ in goes) == names
    assert all(order.HasField("release") for _, order in goes)
    assert {order.release.root.port for _, order in goes} == {7}
    for name in names:
        gang.world.hear("started", gang.key, uid, name, 7, gang.world.now, "/")
        gang.committed()
    assert gang.sent() == []


def _told(unpacks: bool) -> tuple[int, list[tuple[str, bytes]]]:
    """How many bytes an MPI job's hosts are told to prepare and to go, and what, without what is packed."""
    gang = Gang(HOSTS, unpacks)
    orders = gang.sent()
    for number, name in enumerate(gang.names):
        gang.world.hear(
            "prepared", gang.key, orders[0][1].uid, name, endpoint_text(Endpoint("10.0.0.1", number + 1, (7000 + number, 8000)))
        )
    gang.committed()
    orders += gang.sent()
    size, uid = sum(order.ByteSize() for _, order in orders), orders[0][1].uid
    for _, order in orders:
        assert bool(order.packed) == unpacks
        unpack(order)
        assert order.uid == uid
        assert not order.packed
        for field in ("key_pem", "cert_pem", "token") if order.HasField("start") else ():
            order.start.ClearField(field)
    return size, [(name, order.SerializeToString(deterministic=True)) for name, order in orders]


def test_what_all_hosts_are_told_is_packed_for_agents_that_unpack() -> None:
    large, plain = _told(unpacks=False)
    small, packed = _told(unpacks=True)
    assert packed == plain
    assert small < large / 2


def _lines(gang: Gang) -> int:
    """How many lines are carried out to tell all hosts of it; each round of a search is one."""
    done = 0

    def count(frame: FrameType, what: str, of: object) -> TraceFunction:
        nonlocal done
        done += what == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        gang.send()
    finally:
        sys.settrace(before)
    return done


def test_the_work_for_a_host_does_not_grow_with_the_hosts() -> None:
    """No host is looked for among all of them."""
    _lines(Gang(10))  # what is imported and cached for the first of them
    assert _lines(Gang(2 * HOSTS)) < 4.2 * _lines(Gang(HOSTS // 2))


def test_what_becomes_of_one_host_is_for_all() -> None:
    gang = Gang(HOSTS)
    uid = gang.sent()[0][1].uid
    for what, *values in (("prepared", "10.0.0.1:7"), ("started", 7, gang.world.now, "/")):
        for name in gang.names:
            gang.world.hear(what, gang.key, uid, name, *values)
            gang.committed()
    gang.sent()
    gang.world.hear("ended", gang.key, uid, gang.names[3], End(status=256, at=gang.world.now), False)
    gang.committed()
    ends = gang.sent()
    assert sorted(name for name, _ in ends) == [name for name in gang.names if name != gang.names[3]]
    assert all(order.HasField("kill") for _, order in ends)
