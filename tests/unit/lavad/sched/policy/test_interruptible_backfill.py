"""INTERRUPTIBLE_BACKFILL: jobs in what is held for others, which end when that is needed."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.queue import QueueConfig
from config.model.values import Backfill, Limits
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.job.run_time import expected_of, limit_of
from lavad.core.plan.plan import Plan
from lavad.core.site.conf import Params
from lavad.sched.ask.estimate import latest
from lavad.sched.ask.trial import Moment
from lavad.sched.state.scheduler_cache import SchedulerCache
from lavad.services.plans import pieces
from tests.support.worlds.world import World

BIG = QueueConfig(name="big", priority=50, slot_reserve=100_000)
PLAIN = QueueConfig(name="plain", priority=30)
LAZY = QueueConfig(name="lazy", priority=1, backfill=True, interruptible_backfill=600, limits=Limits(run=10 * 3600))


def world_of(lazy: QueueConfig = LAZY, hosts: int = 1, backfill: str = "easy", **about: Any) -> World:
    world = World()
    params = Params(parallel_sched_by_slot=True, lava_backfill=Backfill(backfill))
    world.configure(queues=(BIG, PLAIN, lazy), params=params)
    world.hosts(*(f"h{at}" for at in range(1, hosts + 1)), slots=4, **about)
    return world


def submit(world: World, queue: str, slots: int = 1, minutes: int = 600, **fields: Any) -> int:
    return world.submit(queue=queue, slots=slots, limits=Limits(run=minutes * 60), **fields)


def held_slot(world: World, minutes: int = 60) -> int:
    """A job of three slots runs for so long on h1, and another waits for all four: its job id."""
    submit(world, "plain", 3, minutes, hosts=("h1",))
    world.step()
    big = submit(world, "big", 4, 10, hosts=("h1",))
    world.step()
    return big


def step(world: World) -> Plan:
    plan = world.schedule()
    for cache in (SchedulerCache(), SchedulerCache(few=1)):
        other = world.schedule(cache)
        assert (other.placements, other.run_limits, other.promises) == (plan.placements, plan.run_limits, plan.promises)
    world.accept(plan)
    check_invariants(world.cluster)
    return plan


def limit(world: World, key: int) -> int | None:
    job = world.cluster.jobs.rows[key]
    return limit_of(job, world.cluster.spec_of(key)) if job.run is not None else None


def test_it_starts_in_a_held_slot_and_its_run_limit_is_the_time_until_that_is_needed() -> None:
    world = world_of()
    big = held_slot(world)
    lazy = submit(world, "lazy")
    plan = step(world)
    assert plan.run_limits == {lazy: 3600}
    assert limit(world, lazy) == 3600
    start = plan.promises[big].start
    world.later(60)
    assert step(world).promises[big].start == start, "what is promised does not move"


@pytest.mark.parametrize(("minutes", "starts"), [(9, False), (10, True), (11, True)])
def test_it_starts_only_where_enough_time_is_left(minutes: int, starts: bool) -> None:
    world = world_of()
    held_slot(world, minutes)
    lazy = submit(world, "lazy")
    step(world)
    assert (lazy in world.running()) is starts


def test_what_is_not_held_for_others_is_given_out_first_and_for_the_whole_limit() -> None:
    world = world_of(hosts=2)
    held_slot(world)
    keys = [submit(world, "lazy") for _ in range(6)]
    plan = step(world)
    assert [world.running()[key] for key in keys[:4]] == [{"h2": 1}] * 4
    assert world.running()[keys[4]] == {"h1": 1}
    assert plan.run_limits == {keys[4]: 3600}
    assert keys[5] not in world.running()


def test_one_whose_limit_is_short_enough_keeps_it() -> None:
    world = world_of(replace(LAZY, limits=Limits(run=1800)))
    held_slot(world)
    lazy = submit(world, "lazy", minutes=30)
    assert step(world).run_limits == {}
    assert limit(world, lazy) == 1800


def test_elements_of_an_array_are_placed_so_too() -> None:
    world = world_of(hosts=2)
    submit(world, "plain", 1, 60, hosts=("h1",))
    submit(world, "plain", 1, 120, hosts=("h2",))
    step(world)
    submit(world, "big", 8, 10)
    step(world)
    array = submit(world, "lazy", array="1-9")
    plan = step(world)
    assert set(plan.run_limits.values()) == {7200}
    assert len([key for key in world.running() if key & 0xFFFFFFFF == array]) == 6


def test_a_job_on_several_hosts_ends_when_the_first_of_them_is_needed() -> None:
    world = world_of(hosts=2, backfill="conservative")
    submit(world, "plain", 3, 60, hosts=("h1",))
    submit(world, "plain", 3, 90, hosts=("h2",))
    step(world)
    submit(world, "big", 4, 10, hosts=("h1",))
    submit(world, "big", 4, 10, hosts=("h2",))
    assert len(step(world).promises) == 2
    lazy = submit(world, "lazy", 2)
    assert step(world).run_limits == {lazy: 3600}


def test_where_nobody_knows_the_start_it_waits() -> None:
    world = world_of()
    world.submit(queue="plain", slots=3)
    step(world)
    submit(world, "big", 4, 10)
    lazy = submit(world, "lazy")
    step(world)
    assert lazy not in world.running()


def test_without_the_parameter_a_long_job_waits() -> None:
    world = world_of(replace(LAZY, interruptible_backfill=0))
    held_slot(world)
    lazy = submit(world, "lazy")
    step(world)
    assert lazy not in world.running()


def test_a_limit_on_a_slower_host_is_what_it_is_there() -> None:
    world = world_of()
    world.configure(models=(("fast", 4.0), ("slow", 1.0)))
    world.hosts("f1", slots=1, model="fast")
    world.hosts("h1", slots=4, model="slow")
    submit(world, "plain", 3, 60, hosts=("h1",), run_host="slow")
    submit(world, "plain", 1, 600, hosts=("f1",), run_host="fast")
    step(world)
    submit(world, "big", 4, 10, hosts=("h1",), run_host="slow")
    step(world)
    lazy = submit(world, "lazy", run_host="fast")
    assert step(world).run_limits == {lazy: 900}, "a quarter of it on a host four times as fast"


def test_a_change_of_another_limit_leaves_it_its_end() -> None:
    world = world_of()
    held_slot(world)
    lazy = submit(world, "lazy")
    step(world)
    spec = world.cluster.spec_of(lazy)
    number = world.spec(**{name: getattr(spec, name) for name in ("user", "queue")}, limits=replace(spec.limits, mem=1000))
    world.apply(ev.JobModified(at=world.now, key=lazy, spec=number, name="job"))
    job = world.cluster.jobs.rows[lazy]
    assert job.run is not None
    assert job.run.limits == Limits(run=3600, mem=1000)
    other = world.spec(user=spec.user, queue=spec.queue, limits=Limits(run=7200))
    world.apply(ev.JobModified(at=world.now, key=lazy, spec=other, name="job"))
    assert limit(world, lazy) == 7200


def test_an_estimate_is_no_longer_than_its_limit() -> None:
    world = world_of()
    held_slot(world)
    lazy = submit(world, "lazy", estimate=7200)
    step(world)
    assert expected_of(world.cluster.jobs.rows[lazy], world.cluster.spec_of(lazy)) == 3600


def test_each_piece_of_a_plan_has_them() -> None:
    world = world_of()
    held_slot(world)
    lazy = submit(world, "lazy")
    plan = world.schedule()
    assert [one.run_limits for one in pieces(plan) if one.placements] == [{lazy: 3600}]


def test_estimates_of_starts_count_with_them() -> None:
    world = world_of()
    big = held_slot(world)
    submit(world, "lazy")
    step(world)
    moment = Moment(world.cluster, world.soft, world.now, world.local)
    world.cluster.forget_changes()
    assert latest(moment, big) == world.now + 3600
