"""GPU seconds held and used by a job: over requeues, hosts that left, suspensions and attempts that ended at once."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.cluster.charge import gpus_used_by, gpus_with_attempt
from lavad.core.events.part import with_end
from lavad.core.events.resize import left
from lavad.core.job.gpu_use import GpuSums, GpuUse
from lavad.core.job.job import Attempt, End, Job, Part
from lavad.core.lang.states import JobState
from tests.support.worlds.world import World


def end(world: World, started: float, *gpus: GpuUse) -> End:
    return End(at=world.now, started=started, gpus=gpus)


def use(uuid: str, held: float, used: float, idle: float = 0.0, energy: float = -1.0) -> GpuUse:
    return GpuUse(uuid=uuid, held=held, known=held, used=used, idle=idle, energy=energy)


def gpu_world() -> World:
    world = World()
    world.hosts("h1", slots=8, gpus=4)
    return world


def start(world: World, key: int) -> None:
    run = world.cluster.jobs.rows[key].run
    assert run is not None
    host = run.parts[0].host
    world.apply(ev.PartStarted(at=world.now, key=key, attempt=run.number, host=host, started=world.now, pid=7))


def running(world: World) -> tuple[int, Job]:
    key = world.submit(gpu="num=2")
    world.step()
    start(world, key)
    return key, world.cluster.jobs.rows[key]


def test_average_and_idle_are_of_the_time_that_is_known() -> None:
    half = GpuUse(uuid="a", held=100.0, known=50.0, used=20.0, idle=10.0)
    assert (half.average, half.idle_share) == (40.0, 0.2)
    assert (GpuUse(uuid="a", held=9.0).average, GpuUse(uuid="a", held=9.0).idle_share) == (-1.0, 0.0)


def test_each_attempt_of_a_requeued_job_counts_once() -> None:
    world = gpu_world()
    key, job = running(world)
    assert job.run is not None
    uuids = job.run.parts[0].gpus
    world.later(100.0)
    first = end(world, job.run.started, use(uuids[0], 100.0, 90.0, energy=500.0), use(uuids[1], 100.0, 0.0, 100.0))
    world.apply(ev.JobRequeued(at=world.now, key=key, state=JobState.PEND, end=first))
    assert world.cluster.jobs.rows[key].gpus_before == GpuSums(200.0, 90.0, 100.0, 500.0)
    world.later(50.0)
    world.step()
    start(world, key)
    run = world.cluster.jobs.rows[key].run
    assert run is not None
    world.later(10.0)
    second = end(world, run.started, use(uuids[0], 10.0, 10.0, energy=7.0))
    world.apply(ev.JobFinished(at=world.now, key=key, state=JobState.DONE, end=second))
    done = world.cluster.finished[key]
    assert gpus_with_attempt(done, done.run, done.since) == GpuSums(220.0, 100.0, 100.0, 507.0)


def test_a_suspended_job_holds_its_gpus() -> None:
    world = gpu_world()
    key, job = running(world)
    assert job.run is not None
    world.later(40.0)
    done = Job(key=key, spec=job.spec, name="", submitted=0.0, run=job.run, state=JobState.USUSP)
    assert gpus_used_by(job.run, world.now).held == pytest.approx(80.0)
    assert gpus_with_attempt(done, done.run, world.now) == GpuSums(80.0)


def test_a_host_that_left_counts_until_it_left() -> None:
    parts = tuple(Part(host=host, slots=1, gpus=(f"GPU-{host}",)) for host in ("h1", "h2"))
    run = Attempt(number=1, uid="u", dispatched=0.0, started=100.0, parts=parts, elastic=True)
    gone = End(at=130.0, started=100.0, gpus=(use("GPU-h2", 30.0, 15.0, energy=3.0),))
    run = left(run, ev.PartLeft(at=130.0, key=1, attempt=1, host="h2", end=gone))
    run = with_end(run, "h1", End(at=200.0, started=100.0, gpus=(use("GPU-h1", 100.0, 100.0, energy=4.0),)))
    assert gpus_used_by(run, 200.0) == GpuSums(130.0, 115.0, 0.0, 7.0)


def test_an_attempt_without_a_known_start_held_what_its_host_says() -> None:
    part = Part(host="h1", slots=1, gpus=("a",), end=End(at=9.0, started=8.5, gpus=(use("a", 0.5, 0.25),)))
    run = Attempt(number=1, uid="u", dispatched=8.0, parts=(part,))
    assert gpus_used_by(run, 9.0) == GpuSums(0.5, 0.25)
    assert gpus_with_attempt(Job(key=1, spec=1, name="", submitted=0.0), None, 9.0) is None
