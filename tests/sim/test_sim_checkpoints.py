"""Checkpointable jobs in virtual time: GPUs and hosts break under them and their memory limit is too small; none is done twice.

Each goes on from its newest generation, on GPUs that are well, and what is told as lost is what was lost.
"""

from __future__ import annotations

import random
import signal

import pytest

from lavad.core.decide.report.gpus import Cause, open_gpu
from lavad.core.job.job import End
from lavad.core.job.reports import GpuFault
from lavad.core.lang.states import JobState, PartState, TermReason
from tests.support.worlds.bench import Bench

TICK = 60.0
KILLED = int(signal.SIGKILL)
HOSTS = ("g1", "g2", "g3")
MEMORY = 64
"""GB of a host."""


class Work:
    """What a job has to do, in seconds, and what of that is done and saved; ``need`` in KB."""

    def __init__(self, total: float, need: int) -> None:
        self.total, self.need = total, need
        self.done = self.lost = 0.0
        self.saved: dict[int, float] = {}
        self.runs = False
        self.broken: set[str] = set()
        """GPUs that broke under it and are still closed."""


class Story:
    """Until every job is done: ticks in which jobs run, save, break and start again."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.bench = Bench()
        for host in ("h1", "h2", "h3"):
            self.bench.host_switch(host, closed=True)
        self.bench.hosts(*HOSTS, slots=8, mem=MEMORY * 1024, gpus=2)
        self.works: dict[int, Work] = {}
        self.faults: dict[str, int] = dict.fromkeys(("gpu", "host", "memory"), 0)

    def submit(self) -> None:
        options = {"k": "/ck", "M": "auto", "gpu": "num=1:j_exclusive=yes"}
        key = self.bench.bsub(command=self.chance.choice(("./train", "./solve")), **options)["job"]  # type: ignore[arg-type]
        self.works[key] = Work(self.chance.uniform(3600, 20_000), self.chance.choice((0, 3, 20)) << 20)

    def run(self, jobs: int) -> None:
        for _ in range(jobs):
            self.submit()
        while any(key in self.bench.cluster.jobs.rows for key in self.works):
            self.bench.now += TICK
            assert self.bench.now < 3_000_000, "they end"
            self.reset()
            self.bench.step()
            for key in list(self.bench.cluster.started):
                self.tick(key, self.works[key])

    def reset(self) -> None:
        """GPUs that broke an hour ago are well again."""
        for row in list(self.bench.cluster.hosts.rows.values()):
            for gpu in row.closed_gpus:
                if gpu.at < self.bench.now - 3600:
                    self.bench.take(open_gpu(self.bench.cluster, row.name, gpu.uuid, "well", self.bench.now))
                    for work in self.works.values():
                        work.broken.discard(gpu.uuid)

    def tick(self, key: int, work: Work) -> None:
        part = self.bench.run(key).parts[0]
        if part.state is not PartState.RUNNING:
            self.begin(key, work)
            return
        work.done += TICK
        kind = self.chance.choices(("", "save", "gpu", "host"), (100, 10, 1, 1))[0]
        limit = self.bench.cluster.spec_of(key).limits.mem
        assert limit is not None
        if work.done > work.total / 2 and work.need > limit:
            self.ends(key, work, "memory", End(status=KILLED, at=self.bench.now, limit=TermReason.TERM_MEMLIMIT))
        elif kind == "save":
            generation = max(work.saved, default=0) + 1
            work.saved[generation] = work.done
            self.bench.said("checkpointed", key, part.host, generation)
        elif kind == "gpu":
            self.break_gpu(key, work)
        elif kind == "host":
            self.ends(key, work, "host", End(at=self.bench.now, lost=f"host {part.host} was lost"))
        elif work.done >= work.total:
            self.bench.ended(key, part.host, 0, max_mem=work.need)

    def begin(self, key: int, work: Work) -> None:
        """It starts, from the newest that it has saved, where nothing is broken."""
        run = self.bench.run(key)
        assert run.checkpoint == max(work.saved, default=-1)
        assert not work.broken & set(run.parts[0].gpus)
        kept = work.saved.get(run.checkpoint, 0.0)
        work.lost += work.done - kept
        work.done = kept
        self.bench.start(key, run.parts[0].host)

    def ends(self, key: int, work: Work, kind: str, end: End, faults: tuple[GpuFault, ...] = ()) -> None:
        self.faults[kind] += 1
        self.bench.said("ended", key, self.bench.run(key).parts[0].host, end, True, faults)
        assert self.bench.job(key).state is JobState.PEND, kind

    def break_gpu(self, key: int, work: Work) -> None:
        """Xid 79: the job dies with it."""
        part = self.bench.run(key).parts[0]
        (uuid,) = part.gpus
        work.broken.add(uuid)
        fault = GpuFault(uuid=uuid, error="lost (Xid 79)", cause=Cause.LOST.value)
        self.ends(key, work, "gpu", End(status=256, at=self.bench.now), (fault,))


@pytest.mark.parametrize("seed", range(5))
def test_no_fault_costs_more_than_the_work_since_the_newest_generation(seed: int) -> None:
    story = Story(seed)
    story.run(12)
    assert min(story.faults.values()) > 2, story.faults
    for key, work in story.works.items():
        job = story.bench.finished(key)
        assert job.state is JobState.DONE
        known = job.checkpoints
        assert (known.lost if known is not None else 0.0) == pytest.approx(work.lost)
    story.submit()
    (newest,) = story.works.keys() & story.bench.cluster.jobs.rows.keys()
    learnt = story.bench.cluster.spec_of(newest).limits.mem
    assert learnt is not None
    assert learnt > 1 << 20, "the next job begins with what they needed"
