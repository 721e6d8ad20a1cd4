"""EXTENDABLE_RUNLIMIT: whose soft run limits are extended, and whose slots others get."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import ExtendableRunlimit, Limits
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.plan.plan import Plan
from lavad.core.site.conf import Params
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.world import World

HOUR = 3600
RULE = ExtendableRunlimit(base=HOUR, increment=HOUR // 2, grace=300)
SOFT = QueueConfig(name="soft", priority=30, extendable_runlimit=RULE)
HIGH = QueueConfig(name="high", priority=50)
BIG = QueueConfig(name="big", priority=40, slot_reserve=100_000)
LOW = QueueConfig(name="low", priority=10)


def world_of(hosts: int = 1, **about: Any) -> World:
    world = World()
    world.configure(queues=(SOFT, HIGH, BIG, LOW), params=Params(parallel_sched_by_slot=True), **about)
    world.hosts(*(f"h{at}" for at in range(1, hosts + 1)), slots=4)
    return world


def step(world: World, seconds: float = 0.0) -> Plan:
    """Time passes; one cycle, accepted, whose jobs run at once."""
    world.now += seconds
    plan = world.schedule()
    fresh = world.schedule(SchedulerCache())
    columns = world.schedule(SchedulerCache(few=1))
    assert plan.placements == fresh.placements == columns.placements
    assert plan.extensions == fresh.extensions == columns.extensions
    world.accept(plan)
    for placement in plan.placements:
        run = world.cluster.jobs.rows[placement.key].run
        assert run is not None
        for part in run.parts if len(run.parts) > 1 else ():
            world.hear("prepared", placement.key, run.uid, part.host, f"{part.host}:1")
        for part in run.parts:
            world.hear("started", placement.key, run.uid, part.host, 7, world.now, "/")
    check_invariants(world.cluster)
    return plan


def softs(plan: Plan) -> dict[int, int]:
    return {one.key: one.soft for one in plan.extensions if one.soft}


def hards(plan: Plan) -> dict[int, int]:
    return {one.key: one.hard for one in plan.extensions if one.hard}


def test_nothing_is_decided_before_the_soft_limit_and_the_scheduler_wakes_then() -> None:
    world = world_of()
    key = world.submit(queue="soft")
    assert step(world).extensions == ()
    plan = step(world, 10)
    assert plan.extensions == ()
    assert plan.wake_at == world.now - 10 + HOUR
    assert softs(step(world, HOUR - 10)) == {key: HOUR * 3 // 2}
    assert step(world, 10).extensions == ()


def test_what_came_late_is_extended_beyond_now() -> None:
    world = world_of()
    key = world.submit(queue="soft")
    step(world)
    assert softs(step(world, 3 * HOUR)) == {key: HOUR * 7 // 2}


@pytest.mark.parametrize("queue", ["soft", "high"])
def test_a_job_of_the_same_or_a_higher_priority_claims_as_few_as_will_do(queue: str) -> None:
    world = world_of()
    first = [world.submit(queue="soft") for _ in range(2)]
    step(world)
    large = world.submit(queue="soft", slots=2)
    step(world, 10)
    waiting = world.submit(queue=queue, slots=2)
    plan = step(world, HOUR - 10)
    assert hards(plan) == dict.fromkeys(first, HOUR + 300)
    assert large not in softs(plan), "it is not due yet"
    for key in first:
        world.finish(key)
    step(world)
    assert waiting in world.running()


def test_one_large_job_is_claimed_where_it_is_enough() -> None:
    world = world_of()
    large = world.submit(queue="soft", slots=3)
    small = world.submit(queue="soft")
    step(world)
    world.submit(queue="high", slots=3)
    plan = step(world, HOUR)
    assert (set(hards(plan)), set(softs(plan))) == ({large}, {small})


def test_each_waiting_job_of_a_class_claims() -> None:
    world = world_of()
    keys = {world.submit(queue="soft") for _ in range(4)}
    step(world)
    world.submit(queue="high", array="1-3")
    plan = step(world, HOUR)
    assert len(hards(plan)) == 3
    assert hards(plan).keys() | softs(plan).keys() == keys


def test_two_classes_do_not_claim_the_same_job() -> None:
    world = world_of()
    for _ in range(4):
        world.submit(queue="soft")
    step(world)
    world.submit(queue="high")
    world.submit(queue="high", slots=2)
    assert len(hards(step(world, HOUR))) == 3


def test_jobs_that_would_not_start_anyway_and_those_of_lower_queues_claim_nothing() -> None:
    world = world_of()
    world.submit(queue="high", slots=2)
    for _ in range(2):
        world.submit(queue="soft")
    step(world)
    world.submit(queue="high", slots=4)
    world.submit(queue="low")
    assert hards(step(world, HOUR)) == {}


def test_a_slot_reservation_claims_what_it_counts_on() -> None:
    world = world_of(hosts=2)
    world.submit(queue="high", slots=2, limits=Limits(run=HOUR + 600), hosts=("h1",))
    mine = world.submit(queue="soft", slots=2, hosts=("h1",))
    other = world.submit(queue="soft", slots=4, hosts=("h2",))
    step(world)
    big = world.submit(queue="big", slots=4, limits=Limits(run=600), hosts=("h1",))
    plan = step(world)
    assert plan.promises[big].start == world.now + HOUR + 600, "it counts on the soft limit"
    plan = step(world, HOUR)
    assert (set(hards(plan)), set(softs(plan))) == ({mine}, {other})


def test_a_reservation_that_comes_later_than_the_next_soft_limit_claims_nothing() -> None:
    world = world_of()
    world.submit(queue="high", slots=2, limits=Limits(run=4 * HOUR))
    soft = world.submit(queue="soft", slots=2)
    step(world)
    world.submit(queue="big", slots=4, limits=Limits(run=600))
    assert set(softs(step(world, HOUR))) == {soft}


def test_a_run_limit_that_comes_first_is_what_counts() -> None:
    world = world_of()
    short = world.submit(queue="soft", limits=Limits(run=HOUR // 2))
    long = world.submit(queue="soft", limits=Limits(run=HOUR * 5 // 4))
    step(world)
    assert set(softs(step(world, HOUR))) == {long}
    assert step(world, HOUR).extensions == (), "its run limit ends it"
    assert short in world.running()


def test_a_suspended_job_is_looked_at_once_it_goes_on() -> None:
    world = world_of()
    key = world.submit(queue="soft")
    step(world)
    world.now += HOUR - 10
    world.apply(ev.JobSuspended(at=world.now, key=key, by="ann"))
    assert step(world, HOUR).extensions == ()
    world.apply(ev.JobResumed(at=world.now, key=key, by="ann"))
    assert step(world, 5).extensions == ()
    assert set(softs(step(world, 60))) == {key}


def test_the_application_profile_comes_before_the_queue() -> None:
    apps = (ApplicationConfig(name="brief", extendable_runlimit=replace(RULE, base=600)),)
    world = world_of(apps=apps)
    brief, usual = world.submit(queue="soft", app="brief"), world.submit(queue="soft")
    assert usual != brief
    step(world)
    assert softs(step(world, 600)) == {brief: 600 + HOUR // 2}


def test_a_plan_that_was_not_taken_is_made_again() -> None:
    world = world_of()
    key = world.submit(queue="soft")
    step(world)
    world.now += HOUR
    assert set(softs(world.schedule())) == {key}
    assert set(softs(step(world, 60))) == {key}


def test_on_a_faster_host_the_soft_limit_is_as_much_shorter() -> None:
    world = world_of(models=(("fast", 10.0), ("slow", 1.0)))
    world.hosts("h1", slots=4, model="fast")
    key = world.submit(queue="soft", run_host="slow")
    assert step(world).wake_at == world.now + HOUR / 10
    assert softs(step(world, HOUR / 10)) == {key: HOUR * 3 // 2}
    world.submit(queue="high", slots=4)
    assert hards(step(world, HOUR / 20)) == {key: HOUR * 3 // 2 + 3000}, "five minutes there"
