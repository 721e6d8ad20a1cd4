"""What the process that sends traces is told of why jobs wait."""

from __future__ import annotations

import asyncio
import socket

from lavad.committed import Committed
from lavad.core import events as ev
from lavad.core.events.apply import apply
from lavad.core.lang.states import JobState
from lavad.core.plan.volatile import SoftUpdate, WhyClass, update
from lavad.replica import protocol as feed
from lavad.replica.replica import Replica
from lavad.services.traces import KEPT, Traces
from tests.support.worlds.world import World


class Told:
    """A master that hands on reasons, and the process, as much as it has taken."""

    def __init__(self) -> None:
        self.world = World()
        settings = feed.ReplicaSettings(master="h1", lsf={}, database="x", confdir="")
        self.begun = asyncio.Event()
        self.traces = Traces(settings, self.world.cluster, self.world.soft, None)

    def say(self, spec: int, reason: int, at: float) -> None:
        news = SoftUpdate(why={spec: WhyClass(((reason, 1, ("h1",)),), at)})
        update(self.world.soft, news)
        self.traces.take(news)

    def end(self, key: int, at: float) -> None:
        cluster = self.world.cluster
        event = ev.JobFinished(at=at, key=key, state=JobState.EXIT)
        apply(cluster, event)
        finished = list(cluster.finished.values())
        cluster.forget_changes()
        self.traces.committed(Committed(cluster.version, [event], [], finished))

    async def heard(self, last: float) -> list[tuple[int, int, float]]:
        """(spec, reason, since when) as a process hears them that starts now, up to the last."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        found: list[tuple[int, int, float]] = []

        def noted(news: SoftUpdate) -> None:
            for spec, one in (news.why or {}).items():
                found.append((spec, one.reasons[0][0] if one.reasons else 0, one.at))

        replica = Replica(theirs)
        replica.noted = noted
        feeder = asyncio.create_task(self.traces._feed(ours))
        async with asyncio.timeout(60):
            while not replica.site.database:
                await asyncio.to_thread(replica.wait, 0.1)
            self.begun.set()
            while not any(at == last for *_, at in found):
                await asyncio.to_thread(replica.wait, 0.1)
        feeder.cancel()
        ours.close()
        theirs.close()
        return found


def test_a_reason_ends_with_the_last_job_that_waits() -> None:
    async def story() -> None:
        told = Told()
        first, second, other = told.world.submit(), told.world.submit(), told.world.submit(user="bob")
        spec, others = (told.world.cluster.jobs.rows[key].spec for key in (first, other))
        hearing = asyncio.create_task(told.heard(9.0))
        await told.begun.wait()
        told.say(spec, 7, 1.0)
        told.say(others, 7, 2.0)
        told.end(first, 3.0)
        told.end(second, 4.0)
        told.say(spec, 7, 5.0)  # of a plan that was made before
        told.say(others, 8, 9.0)
        assert await hearing == [(spec, 7, 1.0), (others, 7, 2.0), (spec, 0, 4.0), (others, 8, 9.0)]

    asyncio.run(story())


def test_a_process_that_starts_or_is_far_behind_hears_how_things_are() -> None:
    async def story() -> None:
        told = Told()
        key = told.world.submit()
        spec = told.world.cluster.jobs.rows[key].spec
        for at in range(1, KEPT + 10):
            told.say(spec, at % 2 + 7, float(at))
        newest = KEPT + 9.0
        assert await told.heard(newest) == [(spec, int(newest) % 2 + 7, newest)]
        for at in range(500, 500 + KEPT + 10):
            told.say(spec, at % 2 + 7, float(at))
        assert told.traces._news.qsize() < KEPT

    asyncio.run(story())


def test_that_a_class_waits_no_more_is_told_however_far_behind_the_process_is() -> None:
    async def story() -> None:
        told = Told()
        first, second, other = told.world.submit(), told.world.submit(user="bob"), told.world.submit(user="carol")
        over, last, others = (told.world.cluster.jobs.rows[key].spec for key in (first, second, other))
        told.say(over, 7, 1.0)
        told.say(last, 7, 1.5)
        told.end(first, 2.0)
        for at in range(1000, 1000 + KEPT - 3):
            told.say(others, 8, float(at))
        assert told.traces._news.full()
        told.end(second, 3.0)
        told.say(others, 9, 5000.0)
        assert await told.heard(5000.0) == [(over, 0, 2.0), (last, 0, 3.0), (others, 9, 5000.0)]

    asyncio.run(story())
