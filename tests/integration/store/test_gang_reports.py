"""What the hosts of a large job report at once is one request and one fold; and no host waits for, or fails with, another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.report import gang
from lavad.core.events.base import Event
from lavad.core.job.job import End, PendingSignal
from lavad.core.job.reports import EndedReport, PartReport
from lavad.core.lang.states import JobState, PartState, SignalKind, TermReason
from lavad.engine import Engine
from lavad.rpc import gang_reports, report_stream
from lavad.rpc.gang_reports import GangReports
from lavad.rpc.report_stream import ReportStream, SetAside
from lavad.store.writer import Store
from tests.support.stores.stored_world import StoredWorld
from tests.support.stores.stores import store, store_url  # noqa: F401
from tests.support.worlds.office import Watched
from tests.support.worlds.reports import report_of

HOSTS = [f"h{number:02d}" for number in range(80)]


class Bench:
    """A job on all hosts, a stream of each, and an engine over a real store."""

    def __init__(self, kept: Store) -> None:
        self.world = StoredWorld(kept)
        self.world.hosts(*HOSTS, slots=1)
        self.key = self.world.submit(slots=len(HOSTS))
        self.world.step()
        self.store = Watched(kept)
        self.engine = Engine(self.world.cluster, self.store, lambda: self.world.now, {})  # type: ignore[arg-type]
        self.aside = SetAside()
        self.gangs = GangReports(self.engine)
        self.streams = {host: ReportStream(self.engine, host, self.aside, self.gangs) for host in HOSTS}
        run = self.world.cluster.jobs.rows[self.key].run
        assert run is not None
        self.uid = run.uid

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            running = asyncio.ensure_future(self.engine.run())
            doing = asyncio.ensure_future(work())
            await asyncio.wait({doing, running}, return_when=asyncio.FIRST_COMPLETED)
            assert not running.done(), running.exception()
            running.cancel()
            await doing

        asyncio.run(main())

    def report(self, what: str, host: str, *values: Any) -> PartReport:
        return report_of(what, self.key, self.uid, host, *values)

    def ended(self, host: str, status: int = 0) -> PartReport:
        end = End(at=self.world.now, status=status)
        return EndedReport(host=host, key=self.key, uid=self.uid, attempt=1, end=end, gone=True)

    async def told(self, *each: Callable[[str], PartReport]) -> None:
        """Every host reports, one after the other, in one message, and has its acknowledgement."""
        for host, stream in self.streams.items():
            await stream.take([of(host) for of in each])
        for host, stream in self.streams.items():
            assert [report.host for report in await stream.settled()] == [host] * len(each)

    async def runs(self) -> None:
        """The job runs on all hosts."""
        await self.told(lambda host: self.report("prepared", host, "10.0.0.1:7"))
        await self.told(lambda host: self.report("started", host, 7, self.world.now, "/"))

    async def ask(self, kind: SignalKind) -> None:
        """Somebody asks for it: the first request about the job."""
        pending = PendingSignal(kind=kind, at=self.world.now, by="ann", reason=TermReason.TERM_OWNER)
        event = ev.SignalRequested(at=self.world.now, key=self.key, pending=pending)
        await self.engine.ask(lambda _, now: Decided(events=[event]))

    def states(self) -> set[PartState]:
        run = self.world.cluster.jobs.rows[self.key].run
        assert run is not None
        return {part.state for part in run.parts}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAUSE", "ACK_PAUSE", "ACK_LONGER"):
        monkeypatch.setattr(report_stream, name, 0.0)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The kind and the number of the reports of each request."""
    found: list[tuple[str, int]] = []
    decide = gang.decide_told

    def noted(cluster: Cluster, told: Any, now: float) -> list[Event]:
        kinds = [type(report).__name__.removesuffix("Report") for report in told]
        found.append((kinds[0], len(kinds)))
        return decide(cluster, told, now)

    monkeypatch.setattr(gang_reports, "decide_told", noted)
    return found


@pytest.mark.parametrize("most", [256, 7])
def test_all_reports_of_a_gang_from_its_start_to_its_end(
    store: Store,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    asked: list[tuple[str, int]],
    most: int,
) -> None:
    monkeypatch.setattr(gang_reports, "MOST", most)
    bench = Bench(store)

    async def work() -> None:
        await bench.told(lambda host: bench.report("prepared", host, "10.0.0.1:7"))
        assert bench.states() == {PartState.STARTING}
        await bench.told(lambda host: bench.report("started", host, 7, bench.world.now, "/"))
        assert bench.states() == {PartState.RUNNING}
        await bench.told(bench.ended)

    bench.run(work)
    assert bench.key not in bench.world.cluster.jobs.rows
    others = len(HOSTS) - 1
    sizes = [most if at + most < others else others - at for at in range(0, others, most)]
    assert asked == [(kind, size) for kind in ("Prepared", "Started", "Ended") for size in sizes]
    events = [event for batch in bench.store.batches for event in batch.events]
    assert sum(isinstance(event, ev.GangReleased) for event in events) == 1
    [finished] = [event for event in events if isinstance(event, ev.JobFinished)]
    assert finished.state is JobState.DONE


@pytest.mark.parametrize("kind", [SignalKind.KILL, SignalKind.REQUEUE])
def test_that_a_request_was_carried_out_and_the_end_that_follows_go_together(
    store: Store,  # noqa: F811
    asked: list[tuple[str, int]],
    kind: SignalKind,
) -> None:
    """One message of each host has both; the job is over with the last of them, once."""
    bench = Bench(store)

    async def work() -> None:
        await bench.runs()
        asked.clear()
        await bench.ask(kind)
        await bench.told(lambda host: bench.report("granted", host, 1, True), lambda host: bench.ended(host, status=9))

    bench.run(work)
    assert asked == [("Granted", len(HOSTS) - 1), ("Ended", len(HOSTS) - 1)]
    events = [event for batch in bench.store.batches for event in batch.events]
    ended = [event for event in events if isinstance(event, ev.JobFinished | ev.JobRequeued)]
    assert [type(event).__name__ for event in ended] == ["JobFinished" if kind is SignalKind.KILL else "JobRequeued"]
    assert sorted(event.host for event in events if isinstance(event, ev.PartGone)) == HOSTS


def test_stopped_and_gone_parts_are_one_request(store: Store, asked: list[tuple[str, int]]) -> None:  # noqa: F811
    bench = Bench(store)

    async def work() -> None:
        await bench.runs()
        asked.clear()
        await bench.told(lambda host: bench.report("stopped", host, True))
        run = bench.world.cluster.jobs.rows[bench.key].run
        assert run is not None
        assert all(part.stopped for part in run.parts)
        await bench.ask(SignalKind.KILL)
        await bench.told(lambda host: bench.report("gone", host))

    bench.run(work)
    assert asked == [("Stopped", len(HOSTS) - 1), ("Gone", len(HOSTS) - 1)]
    assert bench.key not in bench.world.cluster.jobs.rows


def test_that_all_hosts_refuse_is_one_request(store: Store, asked: list[tuple[str, int]]) -> None:  # noqa: F811
    bench = Bench(store)

    async def work() -> None:
        await bench.told(lambda host: bench.report("refused", host, "no_user", f"no such user on {host}"))

    bench.run(work)
    assert asked == [("Refused", len(HOSTS) - 1)]
    job = bench.world.cluster.jobs.rows[bench.key]
    assert (job.state.name, job.failures, sorted(job.avoid)) == ("PEND", 1, sorted(HOSTS))
    (requeued,) = (event for batch in bench.store.batches for event in batch.events if isinstance(event, ev.JobRequeued))
    assert requeued.why.startswith("no such user on ")


def test_a_part_that_is_gone_while_the_job_is_to_run_is_decided_by_itself(
    store: Store,  # noqa: F811
    asked: list[tuple[str, int]],
) -> None:
    """What becomes of the job depends on which is gone first."""
    bench = Bench(store)

    async def work() -> None:
        first = HOSTS[7]
        await bench.streams[first].take([bench.report("gone", first)])
        await bench.streams[first].settled()

    bench.run(work)
    run = bench.world.cluster.jobs.rows[bench.key].run
    assert run is not None
    assert run.refused == "the host no longer had it"
    assert not asked


def test_that_a_signal_was_sent_is_recorded_once(store: Store, asked: list[tuple[str, int]]) -> None:  # noqa: F811
    """The first host's answer settles it, so that each is decided by itself."""
    bench = Bench(store)

    async def work() -> None:
        await bench.runs()
        asked.clear()
        await bench.ask(SignalKind.SIGNAL)
        await bench.told(lambda host: bench.report("granted", host, 1, True))

    bench.run(work)
    assert not asked
    events = [event for batch in bench.store.batches for event in batch.events]
    assert sum(isinstance(event, ev.SignalHandled) for event in events) == 1


def test_a_host_that_starts_and_ends_meanwhile_is_decided_in_its_order(store: Store) -> None:  # noqa: F811
    """Two messages of each host wait for the same turn, one host's again in a new stream; the job ends as its first host."""
    bench = Bench(store)

    async def work() -> None:
        await bench.told(lambda host: bench.report("prepared", host, "10.0.0.1:7"))
        for host, stream in reversed(bench.streams.items()):
            await stream.take([bench.report("started", host, 7, bench.world.now, "/")])
            await stream.take([bench.ended(host, status=256 * (host in HOSTS[3:9]))])
        again = ReportStream(bench.engine, HOSTS[5], bench.aside, bench.gangs)
        await again.take([bench.report("started", HOSTS[5], 7, bench.world.now, "/")])
        for stream in (*bench.streams.values(), again):
            await stream.settled()

    bench.run(work)
    assert bench.key not in bench.world.cluster.jobs.rows
    events = [event for batch in bench.store.batches for event in batch.events]
    began, over = ([event.host for event in events if isinstance(event, kind)] for kind in (ev.PartStarted, ev.PartGone))
    assert sorted(began) == HOSTS
    assert sorted(over) == sorted(HOSTS)
    for host in HOSTS:
        own = [type(event).__name__ for event in events if getattr(event, "host", "") == host]
        assert own[-1] in ("PartGone", "PartEnded")
        assert own.index("PartStarted") < own.index("PartEnded")
    assert [event.state for event in events if isinstance(event, ev.JobFinished)] == [JobState.DONE]


def test_a_fault_of_one_report_and_the_end_of_a_stream_keep_no_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    bench = Bench(store)
    decide = gang.decide_told

    def fails(cluster: Cluster, told: Any, now: float) -> list[Event]:
        if any(report.host == HOSTS[4] for report in told):
            raise ZeroDivisionError("a fault of the decision")
        return decide(cluster, told, now)

    monkeypatch.setattr(gang_reports, "decide_told", fails)

    async def work() -> None:
        for host, stream in bench.streams.items():
            await stream.take([bench.report("prepared", host, "10.0.0.1:7")])
        left = asyncio.ensure_future(bench.streams[HOSTS[9]].settled())
        await asyncio.sleep(0)
        left.cancel()
        for host in HOSTS:
            if host != HOSTS[9]:
                await bench.streams[host].settled()
        await ReportStream(bench.engine, HOSTS[9], bench.aside, bench.gangs).take(
            [bench.report("prepared", HOSTS[9], "10.0.0.1:7")]
        )
        await bench.engine.ask(lambda cluster, now: Decided())

    bench.run(work)
    assert bench.aside.count == 0
    assert bench.states() == {PartState.STARTING}
