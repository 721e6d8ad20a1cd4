"""Orders about an attempt that has not begun: refused ones stay refused, and nothing is lost while a user is looked up."""

from __future__ import annotations

import asyncio
import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from agent.launch.accounts import Accounts
from agent.launch.site import Site, User
from agent.parts.host_monitor import HostMonitor
from agent.parts.runner import Runner
from agent.parts.spool import Spool
from agent.starter.protocol import part
from agent.starter.protocol.orders import Kill, Order, Start
from agent.starter.protocol.part import NOTHING, PartSpec
from agent.starter_client.outgoing import Outgoing
from proto import agent_pb2 as pb

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


class Line(Outgoing):
    """What the starter would get."""

    def __init__(self) -> None:
        super().__init__()
        self.got: list[str] = []

    def put(self, order: Order) -> None:
        self.got.append(type(order).__name__)

    def start(self, sequence: int, template: PartSpec, part: PartSpec) -> None:
        self.got.append("Start")


class Bench:
    def __init__(self, folder: Path) -> None:
        site = Site("h", str(folder), str(folder), str(folder), {}, own_user=ME)
        os.makedirs(site.output_dir)
        self.accounts = Slow()
        self.line = Line()
        self.runner = Runner(site, Spool(str(folder / "agent")), HostMonitor("127.0.0.1", 1), self.accounts, self.line)
        self.poked = asyncio.Event()
        self.runner.starts.poke = self.poked.set
        self.sequence = 0

    def order(self, uid: str, user: str = ME, **what: Any) -> None:
        texts = []
        if "start" in what:
            self.sequence += 1
            texts = [pb.JobText(id=1, job=1, user=user, command="true", cwd="/tmp")]
            what["start"] = pb.Start(sequence=self.sequence, text=1, hosts=[pb.HostSlots(host="h", slots=1)])
        order = pb.Order(key=1, attempt=1, uid=uid, **what)
        self.runner.from_master(pb.ToAgent(orders=pb.Orders(texts=texts, orders=[order])))
        self.runner.flush()

    async def found(self) -> None:
        self.accounts.go.set()
        await asyncio.wait_for(self.poked.wait(), 10)
        self.runner.flush()

    def said(self) -> list[str]:
        return [str(report.WhichOneof("what")) for report in self.runner.outbox.take()]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_signal_waits_until_the_user_is_known(bench: Bench) -> None:
    async def story() -> None:
        bench.order("u", start=True)
        bench.order("u", signal=pb.Signal(wish=1, kind="kill", reason="TERM_OWNER"))
        assert bench.line.got == []
        await bench.found()
        assert bench.line.got == ["Start", "Kill"]
        assert bench.said() == ["granted"]

    asyncio.run(story())


def test_what_is_killed_meanwhile_is_not_started(bench: Bench) -> None:
    async def story() -> None:
        bench.order("u", start=True)
        bench.order("u", kill=pb.Kill())
        await bench.found()
        bench.order("u", start=True)
        assert bench.line.got == []
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
        assert bench.line.got == []
        reports = bench.runner.outbox.take()
        assert [(report.serial, report.refused.code) for report in reports] == [(1, "lookup"), (2, "lookup")]
        bench.order("v", start=True)
        bench.poked.clear()
        await bench.found()
        assert bench.line.got == ["Start"]

    asyncio.run(story())


def test_a_start_asked_for_twice_is_one(bench: Bench) -> None:
    async def story() -> None:
        bench.order("u", start=True)
        bench.order("u", start=True)
        await bench.found()
        bench.order("u", start=True)
        assert bench.line.got == ["Start"]

    asyncio.run(story())


def test_a_start_goes_before_what_was_ordered_for_it_while_no_starter_was_there() -> None:
    class Link:
        def __init__(self) -> None:
            self.got: list[str] = []

        def put(self, order: Order) -> None:
            self.got.append(type(order).__name__)

    out, link = Outgoing(), Link()
    out.start(1, NOTHING, NOTHING._replace(uid="u"))
    out.put(Kill(("u",)))
    out.up(link, 0)  # type: ignore[arg-type]
    assert link.got == ["Start", "Kill"]


def test_parts_of_one_text_share_a_template_on_the_wire() -> None:
    class Link:
        def __init__(self) -> None:
            self.got: list[Order] = []

        def put(self, order: Order) -> None:
            self.got.append(order)

    out, link = Outgoing(), Link()
    template = NOTHING._replace(user=part.User("me", 1, 1, ()), env={"A": "1"}, umask=0o077)
    parts = [template._replace(uid=uid, key=7, attempt=1, env={"B": uid}) for uid in ("u", "v")]
    for one in parts:
        out.start(1, template, one)
    out.up(link, 0)  # type: ignore[arg-type]
    [start] = link.got
    assert isinstance(start, Start)
    [(name, fields)] = start.templates.items()
    assert [part.template_of(own) for own in start.parts] == [name, name]
    assert [part.read_part(part.read_template(fields), own) for own in start.parts] == parts
