"""Orders that a host has not acted on go out again, a job that cannot be told keeps no other, and what is over is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from lavad.core import events as ev
from lavad.core.decide.report.report import decide_report
from lavad.core.job.reports import PartReport, RefusedReport
from lavad.core.job.spec import JobText
from lavad.engine import Engine
from lavad.hosts.job_text_cache import JobTextCache
from lavad.hosts.leases import Leases
from lavad.hosts.outbox import Outbox
from lavad.hosts.sessions import OVERDUE, Session, Sessions
from lavad.rpc.agents import Agents, HostLinks
from tests.support.worlds.reports import report_of
from tests.support.worlds.streams import texts_and_orders
from tests.support.worlds.world import World


class Stored:
    """A store's reader: a command for each job, something odd for some."""

    def __init__(self, odd: tuple[int, ...] = ()) -> None:
        self.odd = odd

    def texts(self, jobs: list[int]) -> dict[int, JobText]:
        odd = cast(Any, 7)
        return {job: JobText(command=f"job {job}", cwd=odd if job in self.odd else "/") for job in jobs}


class Bench:
    def __init__(self, odd: tuple[int, ...] = ()) -> None:
        self.world = World()
        self.world.hosts("h", slots=8)
        self.sessions = Sessions()
        self.session = Session("h", 0)
        self.sessions.open(self.session)
        texts = JobTextCache(cast(Any, Stored(odd)))
        self.refused: list[RefusedReport] = []
        self.outbox = Outbox(self.world.cluster, self.sessions, texts, b"secret", lambda: self.world.now, self.refused.append)

    def dispatched(self) -> int:
        key = self.world.submit()
        self.world.step()
        return key

    def uid(self, key: int) -> str:
        run = self.world.cluster.jobs.rows[key].run
        assert run is not None
        return run.uid

    def told(self) -> list[int]:
        """The jobs whose start goes out now."""
        asyncio.run(self.outbox._send(self.session, self.session.take_due()))
        texts, orders = texts_and_orders(self.session)
        known = {told.number for told in self.session.texts.values()} | {text.id for text in texts}
        starts = [order for order in orders if order.HasField("start")]
        assert all(order.start.text in known for order in starts)
        return [order.key for order in starts]

    def after(self, seconds: float) -> list[int]:
        self.world.now += seconds
        self.outbox.overdue(self.session, self.world.now)
        return self.told()


def test_a_start_that_was_lost_is_sent_again_less_and_less_often() -> None:
    bench = Bench()
    key = bench.dispatched()
    bench.outbox.greeted(bench.session)
    bench.session.take_due()  # and it is lost
    bench.outbox.greeted(bench.session)
    assert bench.told() == []
    found = [bench.after(OVERDUE) == [key] for _ in range(9)]
    assert found == [False, True, True, False, True, False, False, False, True]


def test_a_start_that_was_never_offered_goes_out() -> None:
    bench = Bench()
    key = bench.dispatched()
    assert [bench.after(OVERDUE), bench.after(OVERDUE)] == [[], [key]]


def test_what_has_begun_is_not_sent_again() -> None:
    bench = Bench()
    key = bench.dispatched()
    bench.outbox.greeted(bench.session)
    due = bench.session.take_due()
    bench.world.apply(ev.PartStarted(at=bench.world.now, key=key, attempt=1, host="h", pid=1, started=1.0, cwd="/"))
    bench.session.due = due
    assert bench.told() == []
    assert [bench.after(OVERDUE) for _ in range(4)] == [[]] * 4


def test_a_job_that_cannot_be_told_keeps_no_other_from_starting() -> None:
    bench = Bench(odd=(1,))
    keys = [bench.dispatched() for _ in range(3)]
    assert keys[0] == 1
    bench.outbox.greeted(bench.session)
    assert bench.told() == keys[1:]
    assert not bench.session.due
    [refusal] = bench.refused
    assert (refusal.key, refusal.uid, refusal.host, refusal.code) == (1, bench.uid(1), "h", "order")
    bench.world.apply(*decide_report(bench.world.cluster, refusal, bench.world.now))
    ended = bench.world.cluster.find_job(1)
    assert ended is None or ended.state.name == "EXIT"


def test_a_host_that_tells_of_an_attempt_that_is_over_is_told_to_end_it() -> None:
    bench = Bench()
    key = bench.dispatched()
    clock: Callable[[], float] = lambda: 0.0  # noqa: E731

    async def kills(*reports: PartReport) -> list[str]:
        engine = Engine(bench.world.cluster, cast(Any, None), clock, {})
        none = cast(Any, None)
        links = HostLinks(bench.sessions, bench.outbox, none, Leases(0.0))
        agents = Agents(engine, links, none, none, none, (1.0, 1.0), none, none)
        await agents._end_unknown(bench.session, reports)
        return [order.uid for order in texts_and_orders(bench.session)[1] if order.HasField("kill")]

    live = report_of("started", key, bench.uid(key), "h", 1, 1.0)
    old = report_of("started", key, "old", "h", 1, 1.0)
    other = report_of("stopped", 99, "other", "h", False)
    assert asyncio.run(kills(live)) == []
    assert asyncio.run(kills(live, old, other, old)) == ["old", "other"]
    bench.session.ending.add("old")
    assert asyncio.run(kills(old)) == []
