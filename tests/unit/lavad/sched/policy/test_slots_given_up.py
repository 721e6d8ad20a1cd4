"""What is held for a job until those preempted for it are gone, and what makes it useless meanwhile."""

from __future__ import annotations

import pytest

from config.model.cluster import HostConfig
from config.model.queue import QueueConfig
from config.model.values import Preemption
from lavad.core import events as ev
from lavad.core.decide.control import gpus
from lavad.core.job.job import Placed
from lavad.core.lang import asks
from lavad.core.lang.asks import Caller
from tests.support.worlds.preempting import HIGH, REQUEUE, run, states, step, world_of
from tests.support.worlds.world import World

ROOT = Caller(user="root", uid=0, host="h1")
WINDOW = QueueConfig(name="high", priority=60, preemption=Preemption(preemptive=True), dispatch_window="8:00-18:00")


def held(world: World, key: int) -> int:
    return sum(part.slots for part in world.cluster.jobs.rows[key].promised)


def gone(world: World, key: int, host: str = "h1") -> None:
    """A preempted job is gone, and waits again."""
    world.apply(ev.PartGone(at=world.now, key=key, attempt=1, host=host), ev.JobRequeued(at=world.now, key=key))


def with_a_victim() -> tuple[World, int, int, int]:
    """A full host of four slots with two jobs: the one that is preempted, the one that stays, and the one that waits for it."""
    world = world_of(HIGH, REQUEUE)
    world.host_conf(HostConfig(name="h1", slots=4))
    low, other = run(world, 2, queue="low", slots=2)
    high = world.submit(queue="high", slots=2)
    step(world)
    victim, stays = (low, other) if world.cluster.jobs.rows[low].preempted_for else (other, low)
    return world, victim, stays, high


def released(events: list[ev.Event]) -> list[str]:
    return [event.why for event in events if isinstance(event, ev.SlotsReleased)]


def test_no_job_starts_on_more_slots_than_its_host_has_by_now() -> None:
    world, victim, stays, high = with_a_victim()
    world.host_conf(HostConfig(name="h1", slots=2))
    plan = world.schedule()
    assert plan.releases == (high,)
    assert released(world.accept(plan)) == ["host h1 has fewer slots than are in use"]
    gone(world, victim)
    step(world)
    assert states(world, stays, high) == ["RUN", "PEND"]
    assert world.cluster.jobs.rows[stays].preempted_for == high, "it is next: there is room for one of them"
    assert [step(world).releases for _ in range(3)] == [()] * 3, "what it leaves is enough"


def test_no_job_starts_on_a_gpu_that_was_closed_meanwhile() -> None:
    world = world_of(HIGH, REQUEUE, gpus=1)
    (low,) = run(world, queue="low", slots=1, gpu="num=1")
    high = world.submit(queue="high", slots=1, gpu="num=1:j_exclusive=yes")
    step(world)
    assert held(world, high) == 1
    world.apply(*gpus.switch_gpus(world.cluster, asks.Gpus(gpus=["h1:0"], close=True), ROOT, world.now).events)
    plan = world.schedule()
    assert released(world.accept(plan)) == ["a GPU of host h1 is closed or gone"]
    gone(world, low)
    step(world)
    assert states(world, high) == ["PEND"]


@pytest.mark.parametrize("how", ["inactive", "window"])
def test_no_job_starts_on_it_once_its_queue_starts_none(how: str) -> None:
    world = world_of(WINDOW, REQUEUE)
    world.local = (1, 17 * 3600)
    (low,) = run(world, queue="low", slots=4)
    high = world.submit(queue="high", slots=4)
    step(world)
    assert held(world, high) == 4
    if how == "inactive":
        world.queue_switch("high", active=False)
    else:
        world.local = (1, 18 * 3600 + 1)
    assert released(world.accept(world.schedule())) == ["it may not start now"]
    gone(world, low)
    step(world)
    assert states(world, high, low) == ["PEND", "RUN"], "what is free is for those that may start"


def test_a_plan_that_was_made_before_starts_it_on_none_of_these() -> None:
    world, victim, _, high = with_a_victim()
    gone(world, victim)
    plan = world.schedule()
    assert [placement.key for placement in plan.placements] == [high]
    world.host_conf(HostConfig(name="h1", slots=2))
    world.accept(plan)
    assert states(world, high) == ["PEND"]


def test_a_plan_of_before_its_queue_was_inactivated_starts_it_not() -> None:
    world = world_of(HIGH, REQUEUE)
    (low,) = run(world, queue="low", slots=4)
    high = world.submit(queue="high", slots=4)
    step(world)
    gone(world, low)
    plan = world.schedule()
    assert [placement.key for placement in plan.placements] == [high]
    world.queue_switch("high", active=False)
    world.accept(plan)
    assert states(world, high) == ["PEND"]


def test_a_host_with_too_much_on_it_costs_no_more_jobs_than_make_room() -> None:
    """An administrator has started one more there (brun -f): one victim is not enough, two are, and no third one goes."""
    world = world_of(HIGH, REQUEUE, slots=6)
    lows = run(world, 3, queue="low", slots=2)
    forced = world.submit(queue="low")
    parts = (Placed(host="h1", slots=1),)
    world.apply(ev.JobDispatched(at=world.now, key=forced, attempt=1, uid="forced", parts=parts, forced=True))
    high = world.submit(queue="high", slots=2)
    for _ in range(5):
        step(world)
        world.now += 1
    rows = world.cluster.jobs.rows
    assert sum(rows[key].preempted_for == high for key in (*lows, forced)) == 2
    assert held(world, high) == 2
