"""A simulated site: jobs with a length run in virtual time through the real scheduler, ``accept_plan`` and ``apply``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from heapq import heappop, heappush

from lavad.core import events as ev
from lavad.core.job.job import End
from lavad.core.lang.states import JobState
from lavad.core.plan.volatile import PartUsage
from tests.support.worlds.world import World


class VirtualSite:
    """``length``: how long a job of a user runs, in seconds; every slot of it computes all the time."""

    def __init__(self, world: World, length: Callable[[str], float], sample: float = 300.0) -> None:
        self.world = world
        self.length = length
        self.sample = sample
        self.slot_seconds: defaultdict[str, float] = defaultdict(float)
        self.gpu_seconds: defaultdict[str, float] = defaultdict(float)
        self.waited: defaultdict[str, float] = defaultdict(float)
        self.started = 0
        self._ends: list[tuple[float, int]] = []
        self._begin = world.now

    def run(self, until: float, refill: Callable[[World], None]) -> None:
        """Go on for so many seconds; ``refill`` submits what is to wait at each step."""
        world = self.world
        end_at = world.now + until
        next_sample = world.now + self.sample
        while world.now < end_at:
            refill(world)
            self._start()
            soonest = self._ends[0][0] if self._ends else end_at
            world.now = min(soonest, end_at, next_sample)
            while self._ends and self._ends[0][0] <= world.now:
                self._finish(heappop(self._ends)[1])
            if world.now >= next_sample:
                next_sample += self.sample
                self._report()
        for key in list(world.cluster.started):
            self._count(key, end_at)

    def _start(self) -> None:
        world = self.world
        for key in world.step():
            job = world.cluster.jobs.rows[key]
            assert job.run is not None
            spec = world.cluster.specs.rows[job.spec]
            for part in job.run.parts:
                world.apply(ev.PartStarted(at=world.now, key=key, attempt=job.attempt, host=part.host, started=world.now))
            heappush(self._ends, (world.now + self.length(spec.user), key))
            self.started += 1
            self.waited[spec.user] = max(self.waited[spec.user], world.now - job.submitted)

    def _count(self, key: int, at: float) -> None:
        job = self.world.cluster.jobs.rows[key]
        assert job.run is not None
        user = self.world.cluster.specs.rows[job.spec].user
        self.slot_seconds[user] += (at - job.run.started) * sum(part.slots for part in job.run.parts)
        self.gpu_seconds[user] += (at - job.run.started) * sum(len(part.gpus) for part in job.run.parts)

    def _finish(self, key: int) -> None:
        world = self.world
        self._count(key, world.now)
        job = world.cluster.jobs.rows[key]
        assert job.run is not None
        ran = world.now - job.run.started
        for part in job.run.parts:
            end = End(at=world.now, started=job.run.started, utime=ran * part.slots)
            world.apply(ev.PartEnded(at=world.now, key=key, attempt=job.attempt, host=part.host, end=end))
            world.apply(ev.PartGone(at=world.now, key=key, attempt=job.attempt, host=part.host))
        world.apply(ev.JobFinished(at=world.now, key=key, state=JobState.DONE))
        world.soft.usage.pop(key, None)

    def _report(self) -> None:
        """Agents say what running jobs use."""
        world = self.world
        for key in world.cluster.started:
            job = world.cluster.jobs.rows[key]
            assert job.run is not None
            ran = world.now - job.run.started
            world.soft.usage[key] = {
                part.host: PartUsage(key=key, attempt=job.attempt, at=world.now, cpu=ran * part.slots) for part in job.run.parts
            }
