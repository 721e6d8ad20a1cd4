"""What the master's answers to heartbeats do for the parts of a host: until when each may run, and what a timer ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.part import Part, Rules, Stage
from agent.core.staging import Staging
from agent.launch.accounts import Accounts
from agent.launch.outputs import OutputPaths
from agent.launch.site import Site
from agent.parts.entry import Entry
from agent.parts.host_monitor import HostMonitor
from agent.parts.runner import Runner
from agent.parts.spool import Spool
from agent.starter.process import account
from agent.starter.protocol.orders import Kill, Renew
from proto import agent_pb2 as pb
from tests.support.starter_orders import StarterOrders

BEGAN = 1e6
"""Seconds of CLOCK_BOOTTIME, later than any agent here has begun."""
END = account.end_of([account.Task(-1, 77)], 0, 1.0, False, account.Used())


class Bench:
    def __init__(self, folder: Path) -> None:
        site = Site("h1", str(folder), str(folder), str(folder), {})
        self.line = StarterOrders()
        self.runner = Runner(site, Spool(str(folder / "spool")), HostMonitor("127.0.0.1", 1), Accounts(), self.line)

    def part(self, uid: str, lease: float = 0.0, rules: Rules = Rules(), since: float = 1.0) -> Entry:  # noqa: B008
        order = pb.Order(key=7, attempt=1, uid=uid, start=pb.Start(lease=lease))
        entry = Entry(Part(uid, 7, 1, rules, Stage.RUNNING, since=since), order, None, OutputPaths(), 1.0)
        self.runner.table.adopt([entry])
        return entry

    def answered(self, sent: float, extended: float = 0.0) -> set[Renew]:
        """The starter is told this after the master's answer to the heartbeat sent at that time."""
        self.line.got.clear()
        self.runner.from_master(pb.ToAgent(echo=pb.Echo(sent=BEGAN + sent, extended=extended)))
        return {order for order in self.line.got if isinstance(order, Renew)}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_each_part_with_a_lease_may_run_for_it_from_the_answered_heartbeat_on(bench: Bench) -> None:
    bench.part("a", 600.0)
    bench.part("b", 300.0)
    bench.part("c")
    assert bench.answered(100.0) == {Renew(BEGAN + 700.0, ("a",)), Renew(BEGAN + 400.0, ("b",))}
    assert bench.answered(200.0) == {Renew(BEGAN + 800.0, ("a",)), Renew(BEGAN + 500.0, ("b",))}
    assert bench.answered(150.0) == {Renew(BEGAN + 800.0, ("a",)), Renew(BEGAN + 500.0, ("b",))}, "an answer that came late"
    assert bench.answered(250.0, 5_000.0) == {Renew(BEGAN + 5_250.0, ("a", "b"))}


def test_what_writes_and_copies_its_checkpoints_runs_under_the_same_lease(bench: Bench) -> None:
    """A copy goes on when the part itself has ended, until that is reported."""
    entry = bench.part("a", 600.0)
    entry.work.making = "a.checkpoint"
    assert bench.answered(100.0) == {Renew(BEGAN + 700.0, ("a", "a.checkpoint"))}
    assert entry.work.deadline == BEGAN + 700.0, "what is started later has it, too"
    entry.work.making, entry.work.copying, entry.work.copied = "", "a.copy", Staging("a")
    entry.end = END
    assert bench.answered(200.0) == {Renew(BEGAN + 800.0, ("a", "a.copy"))}
    entry.reported = True
    assert bench.answered(300.0) == set()


def test_a_part_that_has_ended_needs_no_lease(bench: Bench) -> None:
    bench.part("a", 600.0).end = END
    assert bench.answered(100.0) == set()


def test_a_timer_ends_a_part_at_its_run_limit_and_what_does_not_end_is_killed(bench: Bench) -> None:
    """Both moments are long past: the agent was stopped meanwhile."""
    entry = bench.part("a", rules=Rules(run=1, interval=0.0, warning=0))
    bench.runner.control.set_timer(entry)
    assert bench.runner.control.next_wake() == 0.0
    bench.runner.control.on_time()
    assert entry.part.limit == "TERM_RUNLIMIT"
    assert [order.uids for order in bench.line.got if isinstance(order, Kill)] == [("a",)]
    assert bench.runner.control.next_wake() is None
