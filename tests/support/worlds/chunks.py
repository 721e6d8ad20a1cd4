"""A world whose queue puts jobs into chunks, on hosts whose agents know them."""

from __future__ import annotations

from typing import Any

from config.model.queue import QueueConfig
from lavad.core.job.job import Attempt, End, Job
from lavad.core.lang.states import OVER
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.world import World


class ChunkWorld(World):
    """Queue ``q`` with CHUNK_JOB_SIZE; hosts h1 and h2 with two slots each, or the ``hosts``."""

    def __init__(self, size: int = 3, hosts: tuple[str, ...] = ("h1", "h2"), slots: int = 2, **queue: Any) -> None:
        super().__init__()
        self.memory = SchedulerCache(chunks=True)
        self.queues(QueueConfig(name="q", chunk_job_size=size, **queue))
        self.hosts(*hosts, slots=slots, chunks=True)

    def starts(self) -> list[Job]:
        """One cycle, accepted whole: the jobs that it starts, in their order."""
        plan = self.schedule()
        events = self.accept(plan)
        assert len(events) == plan.started, "a plan made on this very version is accepted whole"
        self.soft.why.update(plan.why)
        return [self.cluster.jobs.rows[event.key] for event in events if hasattr(event, "key")]

    def chunks(self) -> dict[str, list[int]]:
        """Each chunk, by its name or that of its one job, to the keys of those of its jobs that are not over."""
        found: dict[str, list[int]] = {}
        for key in self.cluster.started:
            run = self.cluster.jobs.rows[key].run
            if run is not None and run.parts[0].state not in OVER:
                found.setdefault(run.chunk or run.uid, []).append(key)
        return found

    def run_of(self, key: int) -> Attempt:
        run = self.cluster.jobs.rows[key].run
        assert run is not None
        return run

    def begins(self, key: int) -> None:
        """The job's host tells that it runs."""
        run = self.run_of(key)
        self.hear("started", key, run.uid, run.parts[0].host, 77, self.now, "/")

    def ends(self, key: int, status: int = 0) -> None:
        """The job's host tells of its end."""
        run = self.run_of(key)
        self.hear("ended", key, run.uid, run.parts[0].host, End(status=status, at=self.now, started=self.now), True)
