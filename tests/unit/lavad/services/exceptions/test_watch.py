"""Each exception of an attempt is told once: not in the next look, and not by the next master."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control import control
from lavad.core.decide.control.faulty_hosts import EXITS
from lavad.core.decide.report.report import decide_report
from lavad.core.job.job import End, Job
from lavad.core.lang.asks import Requeue, Select
from lavad.core.lang.states import JobState
from lavad.core.plan.volatile import PartUsage, Soft
from lavad.services.exceptions.found import Found
from lavad.services.exceptions.watch import Exceptions
from lavad.store.asked import Find
from lavad.store.errors import StoreAway
from lavad.store.read import Reader
from tests.support.worlds.reports import report_of
from tests.support.worlds.watched import Watched, told_to

QUEUE = QueueConfig(name="normal", priority=30, job_overrun=600, job_underrun=60, job_idle=0.5)
PLAIN = QueueConfig(name="night", priority=20)


class Ended:
    """What the store has of finished jobs."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.away = False

    def finished_jobs(self, find: Find) -> list[Job]:
        if self.away:
            raise StoreAway("store: gone")
        return [job for job in self.jobs if job.outcome is not None and (find.since or 0) <= job.outcome.at]


class Watches(Watched):
    """With a watch for exceptions; ``said``: what it tells."""

    def __init__(self) -> None:
        super().__init__()
        self.bench.configure(queues=(QUEUE, PLAIN))
        self.bench.cluster.forget_changes()
        self.soft, self.past, self.mails = Soft(), Ended(), True
        self.watch = self.restarted()

    def restarted(self) -> Exceptions:
        """The watch of a new master, which has in memory nothing of the one before."""
        self.watch = Exceptions(self.engine, self.soft, lambda: cast(Reader, self.past), self, lambda: self.bench.now)
        self.engine._listeners.clear()
        self.engine.listen(self.watch.committed)
        self.engine.listen(lambda committed: self.past.jobs.extend(committed.finished))
        return self.watch

    async def jobs(self, found: Sequence[Found]) -> bool:
        self.said += [f"{one.key} {one.name}" for one in found] if self.mails else []
        return self.mails

    async def hosts(self, hosts: Sequence[tuple[str, str]]) -> bool:
        self.said += [f"{name} {why}" for name, why in hosts] if self.mails else []
        return self.mails

    def runs(self, **fields: Any) -> int:
        """A job that runs, and has used all its time by its host's report."""
        key = self.bench.placed(**fields)
        self.bench.cluster.forget_changes()
        self.soft.usage[key] = {"h1": PartUsage(key=key, attempt=1, at=self.bench.now, cpu=1e6)}
        return key

    def idles(self, key: int) -> None:
        self.soft.usage[key] = {"h1": PartUsage(key=key, attempt=1, at=self.bench.now, cpu=1.0)}

    async def ends(self, key: int) -> None:
        done = ev.JobFinished(at=self.bench.now, key=key, state=JobState.DONE)
        await self.engine.ask(lambda cluster, now: Decided(events=[done]))

    async def looks(self) -> list[str]:
        """What a look tells of."""
        self.said.clear()
        self.bench.now += 1
        await self.watch.turn()
        return self.said


told = told_to(Watches)


@told
async def test_each_exception_is_told_once_also_by_the_next_master(w: Watches) -> None:
    key, other = w.runs(), w.runs(queue="night")
    assert await w.looks() == []
    w.bench.now += 601
    assert await w.looks() == [f"{key} overrun"]
    assert w.bench.run(key).exceptions == ("overrun",)
    assert await w.looks() == []
    w.restarted()
    await w.watch.look_back()
    w.bench.now += 1200
    w.idles(key)
    w.idles(other)
    assert await w.looks() == [f"{key} idle"]
    assert w.bench.run(key).exceptions == ("overrun", "idle")
    assert await w.looks() == []


@told
async def test_a_job_that_is_over_too_soon_is_told_of_once(w: Watches) -> None:
    await w.watch.look_back()
    first, second = w.runs(), w.runs()
    await w.ends(first)
    assert await w.looks() == [f"{first} underrun"]
    w.bench.now += 10
    await w.ends(second)  # and the master ends before it looks again
    w.restarted()
    w.past.away = True
    assert not await w.watch.look_back()
    w.past.away = False
    assert await w.watch.look_back()
    assert await w.looks() == [f"{second} underrun"]
    w.restarted()
    await w.watch.look_back()
    assert await w.looks() == []


@told
async def test_a_job_so_short_that_its_host_tells_of_its_start_with_its_end(w: Watches) -> None:
    await w.watch.look_back()
    key = w.bench.submit()
    w.bench.step()
    report = report_of("ended", key, w.bench.uid(key), "h1", End(at=w.bench.now, started=w.bench.now), True)
    await w.engine.ask(lambda cluster, now: Decided(events=decide_report(cluster, report, now)))
    assert await w.looks() == [f"{key} underrun"]


@told
async def test_what_ended_before_anybody_asked_is_not_told_of(w: Watches) -> None:
    w.bench.configure(queues=(PLAIN, QueueConfig(name="normal", priority=30)))
    await w.ends(w.runs())
    w.bench.configure(queues=(QUEUE, PLAIN))
    w.bench.cluster.forget_changes()
    w.restarted()
    await w.watch.look_back()
    assert await w.looks() == []


@told
async def test_what_could_not_be_told_is_told_later(w: Watches) -> None:
    key, short = w.runs(), w.runs()
    await w.ends(short)
    w.bench.now += 601
    w.mails = False
    assert await w.looks() == []
    assert w.bench.run(key).exceptions == ()
    w.mails = True
    assert sorted(await w.looks()) == [f"{key} overrun", f"{short} underrun"]
    assert await w.looks() == []


@told
async def test_what_a_full_store_does_not_note_is_not_told_again(w: Watches) -> None:
    key = w.runs()
    w.bench.now += 601
    w.disk(full=True)
    assert await w.looks() == [f"{key} overrun"]
    assert await w.looks() == []
    w.disk(full=False)


@told
async def test_a_new_attempt_has_exceptions_of_its_own(w: Watches) -> None:
    key = w.runs()
    w.bench.now += 601
    assert await w.looks() == [f"{key} overrun"]
    w.bench.asked(control.requeue, Requeue(jobs=Select(ids=[str(key)])))
    w.bench.ended(key, "h1", status=9)
    w.bench.step()
    w.bench.start(key, w.bench.run(key).parts[0].host)
    w.bench.cluster.forget_changes()
    w.soft.usage[key] = {"h1": PartUsage(key=key, attempt=2, at=w.bench.now, cpu=1e6)}
    assert await w.looks() == []
    w.bench.now += 601
    assert await w.looks() == [f"{key} overrun"]


@told
async def test_very_many_jobs_are_told_of_together(w: Watches) -> None:
    w.bench.hosts("big", slots=1200)
    keys = [w.bench.submit(hosts=("big",)) for _ in range(1200)]
    w.bench.step()
    for key in keys:
        w.bench.hear("started", key, w.bench.uid(key), "big", 77, w.bench.now, "/")
    w.bench.cluster.forget_changes()
    w.bench.now += 601
    assert len(await w.looks()) == 1200
    assert await w.looks() == []


@told
async def test_a_host_that_is_closed_for_bad_ends_is_told_of(w: Watches) -> None:
    other = ev.HostSwitched(at=w.bench.now, host="h2", closed=True, by="lava", comment="ill", cause="health")
    bad = ev.HostSwitched(at=w.bench.now, host="h1", closed=True, by="lava", comment=EXITS, cause="exits")
    w.mails = False
    await w.engine.ask(lambda cluster, now: Decided(events=[other, bad]))
    assert not await w.watch.turn_hosts()
    w.mails = True
    assert await asyncio.wait_for(w.watch.turn_hosts(), 10)
    assert w.said == [f"h1 {EXITS}"]
