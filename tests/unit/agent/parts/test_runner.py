"""Orders about an attempt that has not begun: refused ones stay refused, and nothing is lost while a user is looked up."""

from __future__ import annotations

import asyncio
import os
import pwd
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest

from agent.devtools import simgpu
from agent.launch import command, limits
from agent.launch.accounts import Accounts
from agent.launch.site import Site, User
from agent.parts.host_monitor import HostMonitor
from agent.parts.runner import Runner
from agent.parts.spool import Spool
from agent.starter.protocol import reports
from proto import agent_pb2 as pb
from tests.support.starter_orders import StarterOrders

ME = pwd.getpwuid(os.getuid()).pw_name


class Slow(Accounts):
    """A directory service that answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.broken = False

    async def find(self, name: str) -> User | None:
        await self.go.wait()
        if self.broken:
            raise RuntimeError("no directory")
        return await super().find(name)


class Bench:
    def __init__(self, folder: Path) -> None:
        site = Site("h", str(folder), str(folder), str(folder), {}, own_user=ME)
        os.makedirs(site.output_dir)
        self.accounts = Slow()
        self.line = StarterOrders()
        self.runner = Runner(site, Spool(str(folder / "agent")), HostMonitor("127.0.0.1", 1), self.accounts, self.line)
        self.poked = asyncio.Event()
        self.runner.starts.poke = self.poked.set
        self.sequence = 0

    def order(self, uid: str, user: str = ME, line: str = "true", alone: str = "", **what: Any) -> None:
        texts = []
        if "start" in what:
            self.sequence += 1
            texts = [pb.JobText(id=1, job=1, user=user, command=line, cwd="/tmp")]
            texts[0].gpu_mode = "exclusive_process" if alone else ""
            hosts = [pb.HostSlots(host="h", slots=1, gpus=[alone] if alone else [])]
            what["start"] = pb.Start(sequence=self.sequence, text=1, hosts=hosts)
        order = pb.Order(key=1, attempt=1, uid=uid, **what)
        self.runner.from_master(pb.ToAgent(orders=pb.Orders(texts=texts, orders=[order])))
        self.runner.flush()

    async def found(self) -> None:
        self.accounts.go.set()
        await asyncio.wait_for(self.poked.wait(), 10)
        self.poked.clear()
        self.runner.flush()

    def said(self) -> list[str]:
        return [str(report.WhichOneof("what")) for report in self.runner.outbox.take()]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_signal_waits_until_the_user_is_known(bench: Bench) -> None:
    async def story() -> None:
        bench.order("u", start=True)
        bench.order("u", signal=pb.Signal(number=1, kind="kill", reason="TERM_OWNER"))
        assert bench.line.names == []
        await bench.found()
        assert bench.line.names == ["Start", "Kill"]
        assert bench.said() == ["granted"]

    asyncio.run(story())


def test_what_is_killed_meanwhile_is_not_started(bench: Bench) -> None:
    async def story() -> None:
        bench.order("u", start=True)
        bench.order("u", kill=pb.Kill())
        await bench.found()
        bench.order("u", start=True)
        assert bench.line.names == []
        assert bench.said() == ["gone", "gone"]

    asyncio.run(story())


def test_a_refused_attempt_stays_refused(bench: Bench) -> None:
    async def story() -> None:
        bench.accounts.broken = True
        bench.order("u", start=True)
        await bench.found()
        assert bench.said() == ["refused"]
        bench.accounts.broken = False
        bench.runner.parts.new_stream()
        bench.order("u", start=True)
        assert bench.line.names == []
        reports = bench.runner.outbox.take()
        assert [(report.serial, report.refused.code) for report in reports] == [(1, "lookup"), (2, "lookup")]
        bench.order("v", start=True)
        bench.poked.clear()
        await bench.found()
        assert bench.line.names == ["Start"]

    asyncio.run(story())


def test_a_job_starts_when_its_gpu_is_in_the_mode_that_it_asked_for_or_is_refused(bench: Bench) -> None:
    simgpu.install(simgpu.SimulatedDriver(1, "h"))
    uuid = simgpu.sim_uuid("h", 0)

    async def story() -> None:
        bench.order("u", start=True, alone=uuid)
        await bench.found()
        assert bench.line.names == []
        await bench.found()
        assert bench.line.names == ["Start"]
        assert pynvml.nvmlDeviceGetComputeMode(pynvml.nvmlDeviceGetHandleByIndex(0)) == 3
        bench.order("v", start=True, alone="GPU-none")
        bench.order("w", start=True)
        assert bench.line.names == ["Start", "Start"]
        await bench.found()
        why = bench.runner.outbox.take()[0].refused
        assert why.code == "gpu"
        assert why.why == "host h: the compute mode of GPU GPU-none cannot be set to exclusive_process: it does not answer"

    try:
        asyncio.run(story())
    finally:
        simgpu.uninstall()


def test_a_start_asked_for_twice_is_one(bench: Bench) -> None:
    async def story() -> None:
        bench.order("u", start=True)
        bench.order("u", start=True)
        await bench.found()
        bench.order("u", start=True)
        assert bench.line.names == ["Start"]

    asyncio.run(story())


def test_an_order_that_cannot_be_carried_out_is_refused_and_keeps_no_other(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is wrong with it: a text that is not understood, a part that cannot be described, a fault on the way."""
    monkeypatch.setattr(command, "needs_file", lambda line, *_: 1 / 0 if "poison" in line else False)
    monkeypatch.setattr(limits, "rules_of", poisoned(limits.rules_of, "rules"))
    bench.runner._spool.began = poisoned(bench.runner._spool.began, "spool")  # type: ignore[method-assign]

    async def story() -> None:
        bench.accounts.go.set()
        for uid in ("poison", "rules", "spool", "good"):
            bench.order(uid, line=f"echo {uid}", start=True)
            bench.order(uid, signal=pb.Signal(number=1, kind="kill", reason="TERM_OWNER"))
            while uid not in bench.runner.outbox.final and uid not in bench.runner.table:
                await bench.found()
        said = [(report.uid, report.refused.code) for report in bench.runner.outbox.take() if report.HasField("refused")]
        assert dict(said) == {"poison": "bad", "rules": "bad", "spool": "bad"}
        assert bench.line.names == ["Start", "Kill"]

    asyncio.run(story())


def test_a_fault_in_one_order_of_a_message_keeps_no_other(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.runner, "_order_start", poisoned(bench.runner._order_start, "a"))

    async def story() -> None:
        bench.accounts.go.set()
        hosts = [pb.HostSlots(host="h", slots=1)]
        text = pb.JobText(id=1, job=1, user=ME, command="true", cwd="/tmp")
        orders = [pb.Order(uid=uid, start=pb.Start(sequence=at, text=1, hosts=hosts)) for at, uid in ((1, "a"), (2, "b"))]
        bench.runner.from_master(pb.ToAgent(orders=pb.Orders(texts=[text], orders=orders)))
        while not bench.line.names:
            await bench.found()
        assert bench.line.names == ["Start"]
        [refusal] = bench.runner.outbox.take()
        assert (refusal.uid, refusal.refused.code) == ("a", "bad")

    asyncio.run(story())


def test_a_report_that_cannot_be_handled_ends_its_part_and_keeps_no_other(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        bench.accounts.go.set()
        for uid in ("bad", "good"):
            bench.order(uid, start=True)
        await bench.found()
        tasks = (reports.RunningTask(-1, 2**40, 1),)  # a process number that no message has room for
        bench.runner.parts.reported([reports.Started("bad", tasks, 1.0), reports.Started("good", (), 1.0)])
        bench.runner.flush()
        what = [(report.uid, report.WhichOneof("what"), report.ended.lost) for report in bench.runner.outbox.take()]
        assert what == [("bad", "ended", "host h could not handle what its starter said about it"), ("good", "started", "")]
        assert bench.line.names[-1] == "Kill"

    asyncio.run(story())


def poisoned(function: Callable[..., Any], mark: str) -> Callable[..., Any]:
    """The function, which fails where an argument has the mark."""

    def fails(*arguments: Any) -> Any:
        if any(mark in (str(getattr(one, "uid", "")), one) or getattr(one, "command", "") == f"echo {mark}" for one in arguments):
            raise KeyError(mark)
        return function(*arguments)

    return fails


def test_an_order_is_obeyed_with_what_it_says_packed(bench: Bench) -> None:
    async def story() -> None:
        hosts = [pb.HostSlots(host=f"h{number}", slots=1) for number in range(3)]
        alike = pb.Order(start=pb.Start(hosts=hosts)).SerializeToString()
        text = pb.JobText(id=1, job=1, user=ME, command="true", cwd="/tmp")
        start = pb.Start(sequence=1, text=1, place=2, two_phase=True)
        said = {"broken": b"x", "whole": zlib.compress(alike)}
        orders = [pb.Order(key=1, attempt=1, uid=uid, start=start, packed=packed) for uid, packed in said.items()]
        bench.runner.from_master(pb.ToAgent(orders=pb.Orders(texts=[text], orders=orders)))
        while not bench.line.names:  # the refusal is there before the user is found
            await bench.found()
        assert bench.line.names == ["Start"]
        entry = bench.runner.table.find("whole")
        assert entry is not None
        assert [host.host for host in entry.order.start.hosts] == ["h0", "h1", "h2"]
        assert bench.said() == ["refused"]

    asyncio.run(story())


class Killed(Exception):
    """The agent was, here."""


def test_an_agent_that_is_killed_as_the_starter_takes_parts_knows_them_afterwards(bench: Bench, tmp_path: Path) -> None:
    """Their limits, the report to their user: all that the starter does not know."""

    def killed() -> None:
        if bench.line.names:
            raise Killed

    async def story() -> None:
        bench.runner._spool.load()
        bench.order("first", start=True)
        await bench.found()
        bench.line.names.clear()
        bench.line.flush = killed  # type: ignore[method-assign]
        with pytest.raises(Killed):
            bench.order("u", start=True)

    asyncio.run(story())
    assert bench.line.names == ["Start"]
    assert list(Spool(str(tmp_path / "agent")).load()) == ["first", "u"]
