"""The scheduler hears of a batch while it is committed; of one that fails it is rid before anything that it said counts."""

from __future__ import annotations

import asyncio
import threading
from asyncio import gather
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.snapshot import restore, take
from lavad.core.decide.base.decided import Decided
from lavad.core.events import JobSubmitted
from lavad.core.lang.asks import Faulty, Refused
from lavad.core.plan.volatile import PartUsage, Soft, SoftUpdate, joined
from lavad.engine import Engine
from lavad.replica import protocol as feed
from lavad.replica import publisher as publisher_module
from lavad.replica.publisher import AFTER_FAILURE, LONG_AFTER, TOGETHER, Publisher
from lavad.store.batch import Batch
from lavad.store.errors import StoreFull
from lavad.store.rows import StoredText
from tests.support.worlds.office import Office, bsub

SOON = 20.0


class Copy:
    """A replica in this process, which starts from a snapshot of what is committed."""

    def __init__(self, master: Cluster) -> None:
        self._master = master
        self.cluster: Cluster | None = None
        self.starts = 0
        self.told: list[feed.ToReplica] = []
        self.heard = asyncio.Event()
        """Set once it was told something."""

    def send_frame(self, frame: bytes) -> None:
        if self.cluster is not None:
            news = feed.decode_news(frame[feed.HEAD.size :])
            self.told.append(news)
            self.heard.set()
            if isinstance(news, feed.Events):
                feed.fold(self.cluster, Soft(), list(news.events))

    def start_again(self) -> None:
        self.cluster = None

    def started(self) -> None:
        self.starts += 1
        self.cluster = restore(take(self._master))

    def jobs(self) -> list[int]:
        return sorted(self.cluster.jobs.rows) if self.cluster is not None else []


@pytest.mark.parametrize("later", [AFTER_FAILURE / 2, AFTER_FAILURE])
def test_a_failed_commit_leaves_nothing_in_the_scheduler(office: Office, monkeypatch: pytest.MonkeyPatch, later: float) -> None:
    scheduler, queries = Copy(office.cluster), Copy(office.cluster)
    at = 0.0
    publisher = Publisher(scheduler, queries, lambda: at)  # type: ignore[arg-type]
    office.engine.ahead = publisher
    office.engine.listen(publisher.committed)
    seen, shown = list[list[int]](), list[list[int]]()
    commit, under_way, told = office.store.commit, publisher.under_way, threading.Event()

    def tell() -> None:
        under_way()
        told.set()

    def watched(batch: Batch) -> Sequence[StoredText]:
        assert told.wait(SOON)
        told.clear()
        seen.append(scheduler.jobs())
        shown.append(queries.jobs())
        return commit(batch)

    async def work(engine: Engine) -> Any:
        nonlocal at
        scheduler.started()
        queries.started()
        monkeypatch.setattr(office.store, "commit", watched)
        monkeypatch.setattr(publisher, "under_way", tell)
        await engine.ask(bsub)
        office.store.failure = StoreFull("full")
        with pytest.raises(Refused):
            await engine.ask(bsub)
        assert scheduler.cluster is None
        scheduler.started()
        at = later
        return await engine.ask(bsub)

    assert office.serve(work) == {"job": 2}
    assert seen == [[1], [1, 2], [1, 2] if later >= AFTER_FAILURE else [1]]
    assert shown == [[], [1], [1]]
    assert scheduler.jobs() == queries.jobs() == [1, 2]
    office.check()


def _unencodable(cluster: Cluster, now: float) -> Decided:
    """A job whose number of elements at once is none of 64 bits."""
    decided = bsub(cluster, now)
    decided.events = [replace(event, limit=1 << 70) if isinstance(event, JobSubmitted) else event for event in decided.events]
    return decided


def test_an_event_that_cannot_be_told_fails_its_own_caller_only(office: Office) -> None:
    scheduler, queries = Copy(office.cluster), Copy(office.cluster)
    publisher = Publisher(scheduler, queries, lambda: 0.0)  # type: ignore[arg-type]
    office.engine.ahead = publisher
    office.engine.listen(publisher.committed)

    async def work(engine: Engine) -> Any:
        scheduler.started()
        queries.started()
        return await gather(engine.ask(bsub), engine.ask(_unencodable), engine.ask(bsub), return_exceptions=True)

    answers = office.serve(work)
    assert [answers[0], answers[2]] == [{"job": 1}, {"job": 2}]
    assert isinstance(answers[1], Faulty)
    assert scheduler.jobs() == queries.jobs() == [1, 2]
    office.check()


def test_who_has_commits_fail_again_and_again_does_not_have_the_scheduler_started_each_time() -> None:
    scheduler, at, starts = Copy(Cluster()), 0.0, 0
    publisher = Publisher(scheduler, Copy(Cluster()), lambda: at)  # type: ignore[arg-type]
    for _ in range(24 * 60):
        scheduler.started()
        publisher.begun([])
        publisher.under_way()
        publisher.undone()
        starts += scheduler.cluster is None
        at += AFTER_FAILURE
    assert starts < 30 < at / LONG_AFTER * 2


def test_heartbeats_of_many_hosts_are_one_message() -> None:
    """Each message is a wake-up of the scheduler, and a cycle."""
    scheduler, queries = Copy(Cluster()), Copy(Cluster())
    publisher = Publisher(scheduler, queries, hosts=lambda: 100)  # type: ignore[arg-type]
    used = [("h", PartUsage(key=key, attempt=1, at=3.0)) for key in range(99)]
    beats = [SoftUpdate(load={f"h{number}": {"r1m": float(number)}}, usage=used) for number in range(TOGETHER // 100 + 10)]
    first = TOGETHER // 100

    async def work() -> None:
        scheduler.started()
        queries.started()
        for beat in beats:
            publisher.soft(beat)
        assert scheduler.told == [joined(beats[:first])], "callers wait while more are encoded"
        scheduler.heard.clear()
        await asyncio.wait_for(scheduler.heard.wait(), SOON)

    asyncio.run(work())
    assert scheduler.told == queries.told == [joined(beats[:first]), joined(beats[first:])]


def test_news_of_a_job_goes_before_what_happens_to_it_later(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher_module, "LONGEST", 3600.0)
    scheduler, queries = Copy(office.cluster), Copy(office.cluster)
    publisher = Publisher(scheduler, queries, hosts=lambda: 10**9)  # type: ignore[arg-type]
    office.engine.ahead = publisher
    office.engine.listen(publisher.committed)
    used = SoftUpdate(usage=[("h", PartUsage(key=1, attempt=1, at=3.0))])

    async def work(engine: Engine) -> Any:
        scheduler.started()
        queries.started()
        publisher.soft(used)
        return await engine.ask(bsub)

    office.serve(work)
    for replica in (scheduler, queries):
        assert [type(news) for news in replica.told] == [SoftUpdate, feed.Events]
