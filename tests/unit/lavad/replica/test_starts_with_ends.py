"""Ends of jobs and the starts that take their slots are one commit, of which nobody but the scheduler hears before it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.snapshot import restore, take
from lavad.core.decide.base.decided import Decided
from lavad.core.job.job import End
from lavad.core.lang.asks import Faulty, Refused
from lavad.core.lang.states import JobState
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import Soft
from lavad.core.site.conf import Conf
from lavad.core.site.host import Facts
from lavad.engine import Engine
from lavad.replica import protocol as feed
from lavad.replica import publisher as publisher_module
from lavad.replica.publisher import AFTER_FAILURE, QUICK, Publisher
from lavad.requests import Decide
from lavad.sched.cycle.cycle import schedule
from lavad.sched.state.scheduler_cache import SchedulerCache
from lavad.services.plans import Plans
from lavad.store.batch import Batch
from lavad.store.errors import StoreFull
from lavad.store.rows import StoredText
from tests.support.worlds.office import Office, bsub, gather, unwritable
from tests.support.worlds.snapshot import snapshot
from tests.support.worlds.world import QUIET

SLOTS, JOBS = 2, 6
NOON = (1, 12 * 3600)


def site(cluster: Cluster, now: float) -> Decided:
    """A host with two slots."""
    configured = ev.Configured(at=now, conf=Conf(queues=(QueueConfig(name="normal"),)))
    joined = ev.HostJoined(at=now, host="h", facts=Facts(ncpus=SLOTS))
    return Decided(events=[configured, joined, ev.HostUp(at=now, host="h")])


def end(*keys: int, status: int = 0) -> Decide:
    """Jobs are done."""
    return lambda _, now: Decided(
        events=[ev.JobFinished(at=now, key=key, state=JobState.DONE, status=status, end=End(at=now)) for key in keys]
    )


def switch(active: bool) -> Decide:
    """Jobs of the queue may start or not."""
    return lambda _, now: Decided(events=[ev.QueueSwitched(at=now, queue="normal", open=True, active=active, by="ann")])


class Copy:
    """A replica in this process."""

    def __init__(self, master: Cluster) -> None:
        self._master = master
        self.cluster = Cluster()
        self.there = False
        self.begin()

    def begin(self) -> None:
        """Start from what is committed."""
        self.there = True
        self.cluster = restore(take(self._master))

    def send_frame(self, frame: bytes) -> None:
        news = feed.decode_news(frame[feed.HEAD.size :])
        if self.there and isinstance(news, feed.Events):
            feed.fold(self.cluster, Soft(), list(news.events))
            self.heard(news)

    def heard(self, news: feed.Events) -> None:
        """It was told of a batch."""


class Scheduler(Copy):
    """Plans where the master waits for a plan, if it ``answers``, and when it is told to."""

    def __init__(self, master: Cluster) -> None:
        self.started = 1
        self.answers = True
        self.asked = 0
        self.called = asyncio.Event()
        """Set when it is asked for a plan."""
        self.done: list[feed.PlanDone] = []
        self.took = 0.0
        self._planning: set[asyncio.Task[Plan]] = set()
        self._pass: Callable[[feed.FromReplica], Awaitable[None]] | None = None
        self._cache = SchedulerCache()
        super().__init__(master)

    async def run(self, took: Callable[[feed.FromReplica], Awaitable[None]], ended: Callable[[], None]) -> None:
        self._pass = took

    def send(self, message: msgspec.Struct) -> None:
        if isinstance(message, feed.PlanDone):
            self.done.append(message)

    def start_again(self) -> None:
        self.started += 1
        self.there = False
        self._cache = SchedulerCache()

    def heard(self, news: feed.Events) -> None:
        self.asked += news.plan
        if news.plan:
            self.called.set()
        if news.plan and self.answers:
            task = asyncio.ensure_future(self.plan())
            self._planning.add(task)
            task.add_done_callback(self._planning.discard)

    async def plan(self) -> Plan:
        """A cycle, whose plan the master takes."""
        assert self._pass is not None
        soft = Soft()
        soft.load = {"h": QUIET}
        plan = schedule(self.cluster, soft, 1000.0, NOON, self._cache)
        plan = replace(plan, took=self.took)
        await self._pass(plan)
        return plan


class Site:
    """An office with two slots, a scheduler and a query process; the first jobs run, the others are pending."""

    def __init__(self, office: Office) -> None:
        self.office, self.engine = office, office.engine
        self.at = 0.0
        self.scheduler = Scheduler(office.cluster)
        self.queries = Copy(office.cluster)
        queries: Any = SimpleNamespace(process=self.queries)
        scheduler: Any = self.scheduler
        self.publisher = Publisher(scheduler, self.queries, lambda: self.at)  # type: ignore[arg-type]
        self.plans = Plans(self.engine, scheduler, queries, Soft(), self.publisher.plan, [])
        self.shown: list[int] = []
        """Versions that queries had when a batch came to the store."""

    async def begin(self, jobs: int = JOBS) -> None:
        """Submit the jobs and start the first."""
        self.engine.ahead = self.publisher
        self.engine.listen(self.publisher.committed)
        await self.plans.run()
        self.scheduler.begin()
        self.queries.begin()
        await self.engine.ask(site)
        for _ in range(jobs):
            await self.engine.ask(bsub)
        await self.scheduler.plan()
        assert sorted(self.office.cluster.started) == [*range(1, min(SLOTS, jobs) + 1)]
        self.office.store.batches.clear()

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Note what queries know when a batch is written."""
        commit = self.office.store.commit

        def watched(batch: Batch) -> Sequence[StoredText]:
            self.shown.append(self.queries.cluster.version)
            return commit(batch)

        monkeypatch.setattr(self.office.store, "commit", watched)

    def batches(self) -> list[list[str]]:
        """The kinds of events of each commit."""
        return [[type(event).__name__ for event in batch.events] for batch in self.office.store.batches]

    def check(self) -> None:
        """All know what is on disk."""
        self.office.check()
        mine, theirs = snapshot(self.office.cluster), snapshot(self.queries.cluster)
        assert self.scheduler.cluster.version == self.queries.cluster.version == self.office.cluster.version
        assert mine["jobs"] == theirs["jobs"] == snapshot(self.scheduler.cluster)["jobs"]


@pytest.fixture
def here(office: Office, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(publisher_module, "MOST", 20.0)
    return Site(office)


ENDED, STARTED = "JobFinished", "JobDispatched"


def test_ends_and_the_starts_that_take_their_slots_are_one_commit(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    here.watch(monkeypatch)
    versions: list[int] = []

    async def work(engine: Engine) -> None:
        await here.begin()
        here.shown.clear()
        for keys in ((1, 2), (3,), (4, 5)):
            versions.append(here.office.cluster.version)
            await engine.ask(end(*keys))

    here.office.serve(work)
    assert here.batches() == [[ENDED, ENDED, STARTED, STARTED], [ENDED, STARTED], [ENDED, ENDED, STARTED]]
    assert here.shown == versions
    assert len(here.scheduler.done) == 4
    assert [*here.office.cluster.started] == [6]
    here.check()


def test_what_users_ask_while_a_plan_is_made_is_in_the_same_commit(here: Site) -> None:
    async def work(engine: Engine) -> Any:
        await here.begin()
        ending = engine.hand_in([end(1)])
        asked = asyncio.Event()
        plan = here.scheduler.plan

        async def slow() -> Plan:
            await asked.wait()
            return await plan()

        here.scheduler.plan = slow  # type: ignore[method-assign]
        await here.scheduler.called.wait()
        answers = [engine.ask(bsub, user="ann"), engine.ask(bsub, user="eve")]
        asked.set()
        return await gather(*answers, ending)

    jobs = here.office.serve(work)
    assert [answer["job"] for answer in jobs[:2]] == [JOBS + 1, JOBS + 2]
    assert [sorted(kinds) for kinds in here.batches()] == [[STARTED, ENDED, "JobSubmitted", "JobSubmitted"]]
    here.check()


def test_of_a_batch_that_fails_nothing_is_left_in_the_scheduler(here: Site) -> None:
    async def work(engine: Engine) -> None:
        await here.begin()
        before = snapshot(here.office.cluster)
        here.office.store.failure = StoreFull("full")
        with pytest.raises(Refused):
            await engine.ask(end(1))
        assert snapshot(here.office.cluster) == before
        assert here.queries.cluster.version == here.office.cluster.version < here.scheduler.cluster.version
        assert (here.scheduler.asked, here.scheduler.started) == (1, 2)
        here.scheduler.begin()
        await engine.ask(end(1))
        assert here.scheduler.asked == 1, "it is not told ahead of a commit soon after one that failed"
        await here.scheduler.plan()
        here.at = AFTER_FAILURE
        await engine.ask(end(2))

    here.office.serve(work)
    assert here.batches() == [[ENDED], [STARTED], [ENDED, STARTED]]
    here.check()


def test_a_record_that_the_store_cannot_hold_fails_its_own_caller_only(here: Site) -> None:
    async def work(engine: Engine) -> Any:
        await here.begin()
        answers = await gather(engine.ask(bsub, user="ann"), engine.ask(unwritable, user="eve"), engine.ask(end(1)))
        assert here.scheduler.started == 2
        here.scheduler.begin()
        await here.scheduler.plan()
        return answers

    answers = here.office.serve(work)
    assert answers[0]["job"] == JOBS + 1
    assert isinstance(answers[1], Faulty)
    assert sorted(here.office.cluster.started) == [2, 3]
    here.check()


def test_a_decision_that_cannot_be_applied_while_a_plan_is_waited_for_fails_its_own_caller_only(here: Site) -> None:
    async def work(engine: Engine) -> Any:
        await here.begin()
        ending = engine.hand_in([end(1)])
        await here.scheduler.called.wait()
        wrong = engine.hand_in([end(1)])
        answers = await gather(ending, wrong)
        assert here.scheduler.started == 2, "what it was told of was undone"
        here.scheduler.begin()
        await here.scheduler.plan()
        return answers

    answers = here.office.serve(work)
    assert not isinstance(answers[0], Exception)
    assert isinstance(answers[1], Faulty)
    assert sorted(here.office.cluster.started) == [2, 3]
    here.check()


def test_an_end_that_cannot_be_told_is_committed_as_any_other(here: Site) -> None:
    async def work(engine: Engine) -> Any:
        await here.begin()
        answers = await gather(engine.ask(end(1, status=1 << 70)), engine.ask(end(2)))
        await here.scheduler.plan()
        return answers

    answers = here.office.serve(work)
    assert isinstance(answers[0], Faulty)
    assert (here.scheduler.asked, here.scheduler.started) == (0, 1)
    assert sorted(here.office.cluster.started) == [1, 3]
    here.check()


def test_no_plan_is_waited_for_where_no_job_is_pending(here: Site) -> None:
    async def work(engine: Engine) -> None:
        await here.begin(jobs=2)
        await engine.ask(end(1))

    here.office.serve(work)
    assert here.scheduler.asked == 0
    assert here.batches() == [[ENDED]]
    here.check()


def test_no_plan_is_waited_for_where_no_slot_is_freed(here: Site) -> None:
    async def work(engine: Engine) -> None:
        await here.begin()
        await engine.ask(end(JOBS))

    here.office.serve(work)
    assert here.scheduler.asked == 0
    assert here.batches() == [[ENDED]]
    here.check()


def test_no_plan_is_waited_for_after_one_that_starts_nothing(here: Site) -> None:
    """Until one starts something again: those that are pending wait for something else than slots."""

    async def work(engine: Engine) -> None:
        await here.begin()
        await engine.ask(switch(active=False))
        for key in (1, 2):
            await engine.ask(end(key))
        assert here.scheduler.asked == 1
        await engine.ask(switch(active=True))
        await here.scheduler.plan()
        await engine.ask(end(3))

    here.office.serve(work)
    assert here.scheduler.asked == 2
    assert here.batches()[-1] == [ENDED, STARTED]
    here.check()


def test_no_plan_is_waited_for_where_cycles_take_long(here: Site) -> None:
    async def work(engine: Engine) -> None:
        here.scheduler.took = 2 * QUICK
        await here.begin()
        await engine.ask(end(1))

    here.office.serve(work)
    assert here.scheduler.asked == 0
    assert here.batches() == [[ENDED]]
    here.check()


def test_a_batch_does_not_wait_long_for_a_scheduler_that_is_busy(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is it asked again before it has said something."""
    monkeypatch.setattr(publisher_module, "MOST", 0.001)

    async def work(engine: Engine) -> None:
        await here.begin()
        here.scheduler.answers = False
        await engine.ask(end(1))
        await engine.ask(end(2))
        assert here.scheduler.asked == 1
        here.scheduler.answers = True
        await here.scheduler.plan()
        await engine.ask(end(3))

    here.office.serve(work)
    assert here.scheduler.asked == 2
    assert here.batches() == [[ENDED], [ENDED], [STARTED, STARTED], [ENDED, STARTED]]
    here.check()
