"""Which parts and ends an agent knows after another stream, another store or another starter, and whom it tells of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.part import Part, Stage
from agent.launch.accounts import Accounts
from agent.launch.outputs import OutputPaths
from agent.launch.site import Site
from agent.parts.entry import Entry
from agent.parts.host_monitor import HostMonitor
from agent.parts.runner import Runner
from agent.parts.spool import Spool
from agent.starter.process import account
from agent.starter.protocol.orders import Kill
from agent.starter.protocol.reports import Ended, Gone, Hello, PartState, PartStatus
from agent.starter.protocol.version import PROTOCOL as STARTER
from proto import agent_pb2 as pb
from proto.version import PROTOCOL
from tests.support.starter_orders import StarterOrders

END = account.end_of([account.Task(-1, 77)], 3 << 8, 1.0, False, account.Used())
LOST = "the starter of h1 was restarted"


class Bench:
    def __init__(self, folder: Path) -> None:
        site = Site("h1", str(folder), str(folder), str(folder), {})
        self.line = StarterOrders()
        self.runner = Runner(site, Spool(str(folder / "spool")), HostMonitor("127.0.0.1", 1), Accounts(), self.line)
        assert self.welcomed("store") == ""

    def welcomed(self, store: str) -> str:
        return self.runner.welcomed(pb.Welcome(epoch=1, incarnation=store, protocol=PROTOCOL), 0.0)

    def part(self, uid: str) -> None:
        order = pb.Order(key=7, attempt=1, uid=uid)
        self.runner.table.adopt([Entry(Part(uid, 7, 1, stage=Stage.RUNNING, since=1.0), order, None, OutputPaths(), 1.0)])

    def said(self) -> list[tuple[str, str]]:
        return [(report.uid, str(report.WhichOneof("what"))) for report in self.runner.outbox.take()]

    def acked(self, serial: int, *ended: str) -> None:
        self.runner.from_master(pb.ToAgent(acks=pb.Acks(serial=serial, ended=ended)))

    def starter(self, *uids: str, on_the_way: tuple[str, ...] = ()) -> None:
        """A starter has connected, where these run."""
        running = tuple(PartStatus(uid, 7, 1, PartState.RUNNING, 77, 1, None) for uid in uids)
        self.runner.parts.starter_connected(Hello("boot", 1, 1, running, STARTER), set(on_the_way))

    def known(self) -> set[str]:
        return {entry.uid for entry in self.runner.table}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_an_end_is_told_on_each_stream_until_it_is_acknowledged_itself(bench: Bench) -> None:
    """The message that told it may be acknowledged without it: its master has set the report aside."""
    bench.part("u")
    bench.runner.parts.reported([Ended("u", END, True)])
    assert bench.said() == [("u", "ended")]
    bench.welcomed("store")
    assert bench.said() == [("u", "ended")], "nothing was acknowledged"
    bench.acked(1)
    assert bench.said() == []
    bench.welcomed("store")
    assert bench.said() == [("u", "ended")], "the message was, not the end"
    bench.acked(1, "u")
    bench.welcomed("store")
    assert (bench.said(), bench.known()) == ([], set())


def test_what_runs_for_another_store_is_ended_and_nobody_hears_of_it(bench: Bench) -> None:
    bench.part("u")
    bench.part("ended")
    bench.runner.parts.reported([Ended("ended", END, False)])
    assert bench.welcomed("other") == ""
    assert [order.uids for order in bench.line.got if isinstance(order, Kill)] == [("u",), ("ended",)]
    assert list(bench.runner.hello(pb.Facts()).parts) == []
    bench.runner.parts.reported([Ended("u", END, False), Gone("u"), Gone("ended")])
    assert (bench.said(), bench.known()) == ([], set())


def test_what_a_starter_that_was_restarted_does_not_know_is_over(bench: Bench) -> None:
    """But for what is on its way to it, and for ends that are told already."""
    for uid in ("runs", "told", "sent"):
        bench.part(uid)
    bench.starter("runs", "told", "sent")
    bench.runner.parts.reported([Ended("told", END, True)])
    bench.said()
    bench.starter("runs", on_the_way=("sent",))
    assert bench.said() == []
    bench.starter("runs")
    assert bench.said() == [("sent", "refused")]
    assert bench.known() == {"runs", "told"}


def test_what_was_over_before_an_agent_was_restarted_is_forgotten_and_missing_in_its_greeting(bench: Bench) -> None:
    bench.part("gone")
    bench.part("runs")
    bench.starter("runs")
    assert bench.known() == {"runs"}
    assert [part.uid for part in bench.runner.hello(pb.Facts()).parts] == ["runs"]
    assert bench.said() == []


def test_the_master_is_told_again_that_what_it_ends_is_gone(bench: Bench) -> None:
    bench.part("u")
    bench.runner.parts.reported([Ended("u", END, True)])
    bench.said()
    bench.runner.from_master(pb.ToAgent(orders=pb.Orders(orders=[pb.Order(key=7, attempt=1, uid="u", kill=pb.Kill())])))
    assert bench.said() == [("u", "gone")]
    assert not [order for order in bench.line.got if isinstance(order, Kill)]
