"""GPUs that are held for a big job: who may use them meanwhile."""

from __future__ import annotations

import pytest

from config.model.queue import QueueConfig
from config.model.values import Limits
from lavad.core.site.conf import Params
from tests.support.worlds.preempting import step
from tests.support.worlds.world import World

QUEUES = (
    QueueConfig(name="big", priority=50, slot_reserve=100_000),
    QueueConfig(name="fill", priority=40, backfill=True),
    QueueConfig(name="plain", priority=30),
)


def submit(world: World, queue: str, gpus: int, minutes: int = 0) -> int:
    gpu = f"num={gpus}:j_exclusive=yes" if gpus else ""
    return world.submit(queue=queue, gpu=gpu, limits=Limits(run=minutes * 60 or None))


def held() -> World:
    """One host with four GPUs: two are in use for half an hour, and a job that wants all four is promised a start then."""
    world = World()
    world.configure(queues=QUEUES, params=Params(parallel_sched_by_slot=True))
    world.hosts("h1", slots=16, gpus=4)
    submit(world, "plain", 2, 30)
    step(world)
    big = submit(world, "big", 4, 10)
    assert step(world).promises[big].start == world.now + 1800
    return world


@pytest.mark.parametrize(
    ("queue", "gpus", "minutes", "starts"),
    [
        ("plain", 1, 10, False),
        ("fill", 1, 20, True),
        ("fill", 2, 20, True),
        ("fill", 1, 40, False),
        ("fill", 1, 0, False),
        ("plain", 0, 0, True),
        ("fill", 0, 40, True),
    ],
)
def test_gpus_that_are_held_are_used_by_backfill_that_ends_in_time(queue: str, gpus: int, minutes: int, starts: bool) -> None:
    world = held()
    job = submit(world, queue, gpus, minutes)
    step(world)
    assert (job in world.cluster.started) is starts


def test_the_big_job_has_its_gpus_at_the_promised_time() -> None:
    world = held()
    short = submit(world, "fill", 2, 20)
    step(world)
    world.now += 1200
    world.finish(short)
    step(world)
    world.now += 600
    world.finish(1)
    step(world)
    assert list(world.cluster.started) == [2]
