"""A pretended host whose stream has ended says on the next one what it has, and again what was not acknowledged; no start
counts twice."""

from __future__ import annotations

import asyncio

from benchmarks.pretended import Host
from proto import agent_pb2 as pb


def start(uid: str, key: int) -> pb.Order:
    return pb.Order(uid=uid, key=key, attempt=1, start=pb.Start(sequence=key))


def test_what_was_not_acknowledged_is_told_again_in_a_new_stream() -> None:
    async def streams() -> None:
        host = Host("host1", 8, 60.0)
        first = host.messages()
        assert (await anext(first)).hello.parts == []
        for number in (1, 2):
            host.take(pb.ToAgent(orders=pb.Orders(orders=[start(f"u{number}", number)])))
        while (message := await anext(first)).WhichOneof("kind") != "reports":
            pass
        assert [report.serial for report in message.reports.reports] == [1, 2]
        host.take(pb.ToAgent(acks=pb.Acks(serial=1)))
        host.take(pb.ToAgent(orders=pb.Orders(orders=[pb.Order(uid="u2", kill=pb.Kill())])))
        host.take(pb.ToAgent(orders=pb.Orders(orders=[start("u2", 2)])))
        second = host.messages()
        hello = (await anext(second)).hello
        assert [(part.uid, part.state) for part in hello.parts] == [("u1", "running"), ("u2", "ended")]
        assert hello.sequence == 2
        while (message := await anext(second)).WhichOneof("kind") != "reports":
            pass
        assert [(one.serial, one.uid, one.WhichOneof("what")) for one in message.reports.reports] == [
            (1, "u2", "started"),
            (2, "u2", "ended"),
        ]

    asyncio.run(streams())
