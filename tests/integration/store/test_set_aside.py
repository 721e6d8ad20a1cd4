"""Reports and plans that cannot be recorded, on both databases: the one is set aside, and everything else goes on."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.placement import placement
from lavad.core.decide.report import report as deciding
from lavad.core.events.base import Event
from lavad.core.job.job import End
from lavad.core.job.reports import EndedReport, PartReport
from lavad.core.lang.asks import Refused
from lavad.core.lang.states import JobState
from lavad.core.plan.plan import Plan
from lavad.core.site.pend_reason import PendReason
from lavad.engine import Engine
from lavad.rpc import report_stream
from lavad.rpc.gang_reports import GangReports
from lavad.rpc.report_stream import ReportStream, SetAside
from lavad.services import plans
from lavad.services.plans import Acceptance
from lavad.store.errors import StoreFull
from lavad.store.load import load
from lavad.store.writer import Store
from tests.support.stores.stored_world import StoredWorld
from tests.support.stores.stores import store, store_url  # noqa: F401
from tests.support.worlds.office import Watched, bsub
from tests.support.worlds.reports import report_of

UNWRITABLE = "\udcff"


class Bench:
    """Jobs on a host, and an engine over a real store."""

    def __init__(self, kept: Store, jobs: int) -> None:
        self.world = StoredWorld(kept)
        self.world.hosts("h", slots=jobs)
        self.keys = [self.world.submit() for _ in range(jobs)]
        self.store = Watched(kept)
        self.engine = Engine(self.world.cluster, self.store, lambda: self.world.now, {})  # type: ignore[arg-type]
        self.aside = SetAside()

    def run(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        async def main() -> Any:
            running = asyncio.ensure_future(self.engine.run())
            doing = asyncio.ensure_future(work())
            await asyncio.wait({doing, running}, return_when=asyncio.FIRST_COMPLETED)
            assert not running.done(), running.exception()
            running.cancel()
            return await doing

        return asyncio.run(main())

    def stream(self) -> ReportStream:
        return ReportStream(self.engine, "h", self.aside, GangReports(self.engine))

    def ended(self, key: int, **end: Any) -> PartReport:
        run = self.world.cluster.jobs.rows[key].run
        assert run is not None
        return EndedReport(host="h", key=key, uid=run.uid, attempt=1, end=End(at=self.world.now, **end), gone=True, serial=key)

    def states(self) -> list[str]:
        """Of all jobs, from the database."""
        kept = load(self.store.real).jobs.rows
        return [kept[key].state.name if key in kept else "over" for key in self.keys]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_stream, "PAUSE", 0.0)


def undecidable(monkeypatch: pytest.MonkeyPatch, mark: int) -> None:
    decide = deciding._decide

    def fails(cluster: Cluster, report: PartReport, now: float) -> list[Event]:
        if getattr(getattr(report, "end", None), "max_mem", 0) == mark:
            raise ZeroDivisionError("a fault of the decision")
        return decide(cluster, report, now)

    monkeypatch.setattr(deciding, "_decide", fails)


def unappliable(monkeypatch: pytest.MonkeyPatch, mark: int) -> None:
    decide = deciding._decide

    def illegal(cluster: Cluster, report: PartReport, now: float) -> list[Event]:
        events = decide(cluster, report, now)
        marked = getattr(getattr(report, "end", None), "max_mem", 0) == mark
        return [*events, ev.JobHeld(at=now, key=report.key)] if marked else events

    monkeypatch.setattr(deciding, "_decide", illegal)


@pytest.mark.parametrize("fault", ["decided", "applied", "stored"])
@pytest.mark.parametrize("together", [True, False])
def test_an_end_that_cannot_be_recorded_blocks_no_other(
    store: Store,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: str,
    together: bool,
) -> None:
    """Ends of six jobs, in one message or in one each; the third is poison."""
    bench = Bench(store, 6)
    bench.world.step()
    if fault != "stored":
        (undecidable if fault == "decided" else unappliable)(monkeypatch, 77)
    poison = {"output": UNWRITABLE} if fault == "stored" else {"max_mem": 77}
    ends = [bench.ended(key, **(poison if key == 3 else {"max_mem": 1})) for key in bench.keys]

    async def work() -> list[PartReport]:
        stream = bench.stream()
        for reports in [ends] if together else [[end] for end in ends]:
            await stream.take(reports)
        done: list[PartReport] = []
        while len(done) < len(ends):
            done += await stream.settled()
        await stream.take([report_of("gone", 1, "old", "h", 0)])
        return [*done, *await stream.settled()]

    done = bench.run(work)
    assert [report.serial for report in done] == [1, 2, 3, 4, 5, 6, 0]
    assert bench.aside.count == 1
    [line] = bench.aside.notices()
    assert line.startswith("host h: reports that could not be recorded: 1, the last about job ")
    assert bench.states() == ["over"] * 6
    assert caplog.text.count("is set aside") == 1
    events = [event for batch in bench.store.batches for event in batch.events if getattr(event, "key", 0) == 3]
    assert "what host h reported of its end could not be recorded" in str(events)


def test_reports_that_come_after_one_that_was_set_aside_go_together_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    bench = Bench(store, 9)
    bench.world.step()
    undecidable(monkeypatch, 77)

    async def work() -> None:
        stream = bench.stream()
        await stream.take([bench.ended(1, max_mem=77)])
        await stream.settled()
        bench.store.batches.clear()
        await stream.take([bench.ended(key) for key in bench.keys[1:]])
        await stream.settled()

    bench.run(work)
    assert len(bench.store.batches) == 1
    assert bench.states() == ["over"] * 9


def test_while_the_store_is_full_reports_wait(store: Store, caplog: pytest.LogCaptureFixture) -> None:  # noqa: F811
    """Each is recorded once there is room, on the same stream; the log has the line of the store, and nothing about reports."""
    bench = Bench(store, 2)
    bench.world.step()

    async def work() -> list[PartReport]:
        stream = bench.stream()
        bench.store.full = StoreFull("full")
        await stream.take([bench.ended(1)])
        await stream.take([bench.ended(2)])
        settled = asyncio.ensure_future(stream.settled())
        with pytest.raises(Refused, match="full"):
            await bench.engine.ask(bsub)
        assert not settled.done()
        bench.store.full = None
        return await settled

    assert [report.serial for report in bench.run(work)] == [1, 2]
    assert bench.aside.count == 0
    assert bench.states() == ["over", "over"]
    gc.collect()
    assert "never retrieved" not in caplog.text


def test_a_stream_on_which_many_reports_wait_for_a_full_store_ends(store: Store) -> None:  # noqa: F811
    """Its heartbeats would wait behind them; the host comes back with all that it has to say."""
    bench = Bench(store, 1)
    bench.world.step()

    async def work() -> None:
        stream = bench.stream()
        bench.store.full = StoreFull("full")
        await stream.take([bench.ended(1)])
        settled = asyncio.ensure_future(stream.settled())
        for _ in range(report_stream.UNDER_WAY):
            await stream.take([report_of("gone", 1, "old", "h", 0)])
        with pytest.raises(Refused, match="full"):
            await settled

    bench.run(work)
    assert bench.aside.count == 0
    assert "over" not in bench.states()


@pytest.mark.parametrize("fault", ["applied", "stored"])
def test_a_placement_that_cannot_be_recorded_holds_its_job_and_no_other(
    store: Store,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: str,
) -> None:
    bench = Bench(store, 5)
    plan = bench.world.schedule()
    assert len(plan.placements) == 5
    poison = plan.placements[2].key
    bad = replace(plan.placements[2], alone=(UNWRITABLE,)) if fault == "stored" else plan.placements[2]
    plan = replace(plan, placements=(*plan.placements[:2], bad, *plan.placements[3:]))
    if fault == "applied":
        accept = placement.accept

        def illegal(cluster: Cluster, plan: Plan, *rest: Any) -> Any:
            decided, more = accept(cluster, plan, *rest)
            if any(one.key == poison for one in plan.placements):
                decided.events = [*decided.events, ev.JobHeld(at=1.0, key=poison)]
            return decided, more

        monkeypatch.setattr(plans, "accept", illegal)

    acceptance = Acceptance(bench.engine)

    async def work() -> None:
        assert await acceptance.accept(plan) is False
        before = len(bench.store.batches)
        await acceptance.accept(plan)  # the same proposal again is not tried for a while
        assert len(bench.store.batches) == before

    bench.run(work)
    states = dict(zip(bench.keys, bench.states(), strict=True))
    assert states.pop(poison) == JobState.PSUSP.name
    assert JobState.PEND.name not in states.values()
    assert acceptance.reasons(plan)[poison] == PendReason.SYS_UNABLE
    assert f"job {poison} is held, as its start could not be recorded" in caplog.text
