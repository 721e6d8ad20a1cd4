"""Jobs of a chunk on a host: one runs at a time, and one that is taken out meanwhile never does."""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.launch.accounts import Accounts
from agent.launch.site import Site
from agent.parts.control import now
from agent.parts.host_monitor import HostMonitor
from agent.parts.runner import Runner
from agent.parts.spool import Spool
from agent.starter.protocol.reports import Refused
from proto import agent_pb2 as pb
from proto.version import PROTOCOL
from tests.support.starter_orders import StarterOrders

ME = pwd.getpwuid(os.getuid()).pw_name


class Bench:
    def __init__(self, folder: Path) -> None:
        site = Site("h", str(folder), str(folder), str(folder), {}, own_user=ME)
        os.makedirs(site.output_dir, exist_ok=True)
        self.line = StarterOrders()
        self.accounts = Accounts()
        spool = Spool(str(folder / "agent"))
        noted = spool.load()
        self.runner = Runner(site, spool, HostMonitor("127.0.0.1", 1), self.accounts, self.line)
        self.runner.adopt(noted)
        self.sequence = 0

    async def knows_me(self) -> None:
        user = await self.accounts.find(ME)
        assert user is not None
        self.accounts.keep(user)

    def order(self, uid: str, **what: Any) -> None:
        order = pb.Order(key=ord(uid[0]), attempt=1, uid=uid, **what)
        self.runner.from_master(pb.ToAgent(orders=pb.Orders(orders=[order])))
        self.runner.flush()

    def start(self, uid: str, chunk: str = "c", lease: float = 0.0) -> None:
        self.sequence += 1
        text = pb.JobText(id=1, job=1, user=ME, command="true", cwd="/tmp")
        self.runner.from_master(pb.ToAgent(orders=pb.Orders(texts=[text])))
        hosts = [pb.HostSlots(host="h", slots=1)]
        self.order(uid, start=pb.Start(sequence=self.sequence, text=1, hosts=hosts, chunk=chunk, lease=lease))

    def over(self, uid: str) -> None:
        """The starter says that it is over."""
        self.runner.parts.reported([Refused(uid, "bad", "no")])
        self.runner.flush()

    def said(self) -> list[tuple[str, str]]:
        return [(report.uid, str(report.WhichOneof("what"))) for report in self.runner.outbox.take()]


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Callable[[Bench], None]], None]:
    def run_story(story: Callable[[Bench], None]) -> None:
        async def main() -> None:
            bench = Bench(tmp_path)
            await bench.knows_me()
            story(bench)

        asyncio.run(main())

    return run_story


Run = Callable[[Callable[[Bench], None]], None]


def test_most_slots_go_on_alone_while_their_next_jobs_keep_the_cpus_at_work(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.parts.chunks.CPUS", 2)

    def story(bench: Bench) -> None:
        chunks = bench.runner.chunks
        bench.start("a1", chunk="a")
        bench.start("a2", chunk="a")
        assert not chunks.go_on_alone, "one CPU would wait for the next"
        bench.start("b1", chunk="b")
        bench.start("b2", chunk="b")
        assert chunks.go_on_alone
        bench.start("c1", chunk="c")
        bench.start("d1", chunk="d")
        assert not chunks.go_on_alone, "half of the slots would"

    run(story)


def test_the_next_begins_when_the_one_before_it_is_over(run: Run) -> None:
    def story(bench: Bench) -> None:
        for uid in ("a", "b", "c"):
            bench.start(uid)
        bench.start("x", chunk="other")
        bench.start("y", chunk="")
        assert bench.line.begun == ["a", "x", "y"]
        assert bench.runner.chunks.go_on_alone is False
        bench.over("a")
        assert bench.line.begun == ["a", "x", "y", "b"]
        bench.over("x")
        bench.over("b")
        bench.over("c")
        assert bench.line.begun == ["a", "x", "y", "b", "c"]
        bench.start("d")
        assert bench.line.begun[-1] == "d", "nothing of the chunk is here"

    run(story)


@pytest.mark.parametrize("kind", ["kill", "requeue", "migrate"])
def test_one_that_waits_is_gone_as_soon_as_it_is_asked_to_end(run: Run, kind: str) -> None:
    def story(bench: Bench) -> None:
        for uid in ("a", "b", "c"):
            bench.start(uid)
        bench.order("b", signal=pb.Signal(number=1, kind=kind))
        assert bench.said() == [("b", "gone")]
        bench.over("a")
        assert bench.line.begun == ["a", "c"]
        bench.start("b")
        assert bench.line.begun == ["a", "c"], "it was gone, and is not started by a late order"

    run(story)


def test_one_that_waits_and_must_not_exist_is_dropped(run: Run) -> None:
    def story(bench: Bench) -> None:
        bench.start("a")
        bench.start("b")
        bench.order("b", kill=pb.Kill())
        assert bench.said() == [("b", "gone")]
        bench.over("a")
        assert bench.line.begun == ["a"]

    run(story)


def test_another_signal_reaches_it_when_it_has_begun(run: Run) -> None:
    def story(bench: Bench) -> None:
        bench.start("a")
        bench.start("b")
        bench.order("b", signal=pb.Signal(number=1, kind="signal", signal=10))
        assert bench.said() == []
        bench.over("a")
        assert bench.said() == [("a", "refused"), ("b", "granted")]

    run(story)


def test_an_order_that_is_sent_again_is_one(run: Run) -> None:
    def story(bench: Bench) -> None:
        bench.start("a")
        bench.start("b")
        bench.start("b")
        bench.over("a")
        bench.start("b")
        assert bench.line.begun == ["a", "b"]

    run(story)


def test_another_stream_brings_anew_what_is_still_to_run(run: Run) -> None:
    """Meanwhile the master may have given up what waits here, and started it elsewhere."""

    def story(bench: Bench) -> None:
        bench.start("a")
        bench.start("b", lease=50.0)
        bench.start("c")
        bench.runner.welcomed(pb.Welcome(incarnation="i", epoch=1, protocol=PROTOCOL), now())
        bench.order("b", kill=pb.Kill())
        assert bench.said() == [("b", "gone")], "it is no longer here"
        bench.start("c")
        bench.over("a")
        bench.over("c")
        assert bench.line.begun == ["a", "c"]

    run(story)


def test_a_request_that_comes_with_the_start_ends_one_that_is_to_wait(run: Run) -> None:
    def story(bench: Bench) -> None:
        bench.start("a")
        bench.sequence += 1
        text = pb.JobText(id=1, job=1, user=ME, command="true", cwd="/tmp")
        start = pb.Start(sequence=bench.sequence, text=1, hosts=[pb.HostSlots(host="h", slots=1)], chunk="c")
        kill = pb.Signal(number=1, kind="kill")
        orders = [pb.Order(key=98, attempt=1, uid="b", start=start), pb.Order(key=98, attempt=1, uid="b", signal=kill)]
        bench.runner.from_master(pb.ToAgent(orders=pb.Orders(texts=[text], orders=orders)))
        bench.runner.flush()
        assert bench.said() == [("b", "gone")]
        bench.over("a")
        assert bench.line.begun == ["a"]

    run(story)


def test_what_has_begun_is_not_taken_out_of_the_chunk(run: Run) -> None:
    def story(bench: Bench) -> None:
        bench.start("a")
        bench.order("a", signal=pb.Signal(number=3, kind="requeue", unless_begun=True))
        (report,) = bench.runner.outbox.take()
        assert (report.uid, report.granted.number, report.granted.ok) == ("a", 3, False)

    run(story)


def test_one_whose_lease_has_passed_meanwhile_does_not_begin(run: Run) -> None:
    def story(bench: Bench) -> None:
        bench.runner.welcomed(pb.Welcome(incarnation="i", epoch=1, protocol=PROTOCOL), now() - 100)
        bench.start("a")
        bench.start("b", lease=50.0)
        bench.start("c", lease=500.0)
        bench.over("a")
        bench.runner.flush()
        assert bench.line.begun == ["a", "c"]
        bench.over("c")
        bench.start("b", lease=500.0)
        assert bench.line.begun == ["a", "c", "b"], "the master says that it may, after all"

    run(story)


def test_after_a_restart_of_the_agent_those_that_come_again_wait_for_what_runs(run: Run, tmp_path: Path) -> None:
    def story(bench: Bench) -> None:
        bench.start("a")
        bench.start("b")

    run(story)

    async def again() -> None:
        bench = Bench(tmp_path)
        await bench.knows_me()
        bench.sequence = 10
        bench.start("b")
        assert bench.line.begun == []
        bench.over("a")
        assert bench.line.begun == ["b"]

    asyncio.run(again())


def test_the_master_is_told_that_the_agent_knows_chunks(run: Run) -> None:
    run(lambda bench: _is_true(bench.runner.hello(pb.Facts()).facts.chunks))


def _is_true(value: bool) -> None:
    assert value
