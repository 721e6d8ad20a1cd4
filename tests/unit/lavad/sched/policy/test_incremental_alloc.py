"""Gangs start whole or not at all; without gangs two jobs can wait for each other for ever, and that is reported."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from config.model.cluster import Limit
from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.lang.states import JobState
from lavad.core.site.conf import Params, ResourceConf
from lavad.core.site.pend_reason import PendReason
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.examples import examples
from tests.support.topologies import regular
from tests.support.worlds.world import World

GANG = QueueConfig(name="gang", priority=30)
PARTS = QueueConfig(name="parts", priority=30, gang=False)


def world_of(hosts: int = 4, slots: int = 1, gpus: int = 1) -> World:
    world = World()
    world.configure(queues=(GANG, PARTS), params=Params(parallel_sched_by_slot=True))
    world.hosts(*(f"h{at}" for at in range(1, hosts + 1)), slots=slots, gpus=gpus)
    return world


def cycle(world: World) -> list[ev.Event]:
    plan = world.schedule()
    fresh = world.schedule(SchedulerCache())
    columns = world.schedule(SchedulerCache(few=1))
    assert (plan.placements, plan.holds, plan.deadlocked) == (fresh.placements, fresh.holds, fresh.deadlocked)
    assert (plan.placements, plan.holds, plan.deadlocked) == (columns.placements, columns.holds, columns.deadlocked)
    assert plan.why_job == fresh.why_job == columns.why_job
    events = world.accept(plan)
    world.soft.why_job = plan.why_job
    check_invariants(world.cluster)
    return events


def held_gpus(world: World) -> dict[int, int]:
    rows = world.cluster.jobs.rows
    return {key: sum(len(part.gpus) for part in rows[key].promised) for key in world.cluster.promised}


@pytest.mark.parametrize(("hosts", "slots"), [(4, 1), (1, 4), (2, 2)])
def test_two_gangs_of_four_gpus_on_four_gpus(hosts: int, slots: int) -> None:
    """One runs, one waits for all four; then the second runs. Nothing is held idle."""
    world = world_of(hosts, slots, slots)
    one, two = (world.submit(queue="gang", slots=4, gpu="num=1/task") for _ in range(2))
    cycle(world)
    assert list(world.cluster.started) == [one]
    assert not held_gpus(world)
    world.finish(one)
    cycle(world)
    assert list(world.cluster.started) == [two]


@pytest.mark.parametrize(("hosts", "slots"), [(4, 1), (1, 4), (2, 2)])
def test_without_gangs_both_hold_two_and_the_deadlock_is_reported(hosts: int, slots: int) -> None:
    """Off, both hold 2, and the watchdog reports it."""
    world = world_of(hosts, slots, slots)
    one, two = (world.submit(queue="parts", slots=4, gpu="num=1/task") for _ in range(2))
    cycle(world)
    assert held_gpus(world) == {one: 2, two: 2}
    events = cycle(world)
    assert [type(event) for event in events] == [ev.JobDeadlocked] * 2
    assert [world.soft.why_job[key] for key in (one, two)] == [PendReason.JOB_DEADLOCK] * 2
    assert not cycle(world), "it is told once"
    world.apply(ev.JobFinished(at=world.now, key=one, state=JobState.EXIT))
    cycle(world)
    cycle(world)
    assert list(world.cluster.started) == [two], "killing one of them ends it"


def test_a_deadlock_over_the_last_slot_of_each_is_reported() -> None:
    """Two hosts of one slot, two jobs of two."""
    world = world_of(2)
    jobs = [world.submit(queue="parts", slots=2) for _ in range(2)]
    cycle(world)
    cycle(world)
    assert [world.soft.why_job[key] for key in jobs] == [PendReason.JOB_DEADLOCK] * 2


@pytest.mark.parametrize("queue", ["gang", "parts"])
@pytest.mark.parametrize(
    "fields", [{"gpu": "num=1:j_exclusive=yes"}, {"resreq": "rusage[mem=600]"}, {"resreq": "rusage[licence=1]"}]
)
def test_what_it_takes_once_a_host_or_once_it_takes_once(queue: str, fields: dict[str, Any]) -> None:
    """One GPU, memory for one such reservation, and one licence are enough for all its slots."""
    licence = ResourceConf(name="licence", kind="numeric", consumable=True, locations=((1.0, ("h1",)),))
    world = World()
    world.configure(queues=(GANG, PARTS), params=Params(parallel_sched_by_slot=True), resources=(licence,))
    world.hosts("h1", slots=3, gpus=1, mem=1000)
    job = world.submit(queue=queue, slots=3, **fields)
    cycle(world)
    cycle(world)
    assert job in world.cluster.started


@pytest.mark.parametrize("queue", ["gang", "parts"])
def test_a_limit_on_gpus_that_a_job_has_reached_leaves_it_further_slots_there(queue: str) -> None:
    world = world_of(1, 3)
    world.configure(queues=tuple(replace(one, gpu_capability=1) for one in (GANG, PARTS)))
    job = world.submit(queue=queue, slots=3, gpu="num=1")
    cycle(world)
    cycle(world)
    assert job in world.cluster.started


@pytest.mark.parametrize(
    "resreq", ["affinity[core]", "affinity[core(1):cpubind=core]", "rusage[mem=100/task:duration=5:decay=1]"]
)
@pytest.mark.parametrize("at_once", [True, False])
def test_it_has_the_processors_and_the_decay_of_what_it_reserves_as_a_gang_has(resreq: str, at_once: bool) -> None:
    found = []
    for queue in ("gang", "parts"):
        world = World()
        world.configure(queues=(GANG, PARTS), params=Params(parallel_sched_by_slot=True))
        world.hosts("h1", slots=4, topology=regular(1, 1, 4, 1))
        filler = world.submit(queue="gang", slots=2)
        cycle(world)
        if at_once:
            world.finish(filler)
        job = world.submit(queue=queue, slots=3, resreq=resreq)
        cycle(world)
        if not at_once:
            world.finish(filler)
        cycle(world)
        cycle(world)
        run = world.cluster.jobs.rows[job].run
        assert run is not None
        found.append([(part.slots, part.binds, part.decays, part.reserved) for part in run.parts])
    assert found[0] == found[1]


LATER: dict[str, Any] = {
    "on a host": {"limits": (Limit(name="one", hosts=("h1",), slots=2),)},
    "of jobs": {"limits": (Limit(name="one", jobs=1),)},
    "of the queue": {"queues": (GANG, replace(PARTS, qjob_limit=2))},
}


@pytest.mark.parametrize("limit", LATER)
def test_what_a_limit_forbids_since_the_plan_was_made_is_not_held(limit: str) -> None:
    world = world_of(1, 8)
    jobs = [world.submit(queue="parts", slots=slots) for slots in (2, 3)]
    plan = world.schedule()
    assert [hold.key for hold in plan.holds] == jobs
    world.configure(**LATER[limit])
    assert [event.key for event in world.accept(plan) if isinstance(event, ev.SlotsReserved)] == jobs[:1]
    check_invariants(world.cluster)


def test_what_it_holds_does_not_count_against_itself() -> None:
    """A limit of as many slots as the job asks for lets it grow to them."""
    world = world_of()
    world.configure(queues=(GANG, QueueConfig(name="parts", priority=30, gang=False, qjob_limit=4)))
    first = world.submit(queue="gang", slots=2)
    cycle(world)
    job = world.submit(queue="parts", slots=4)
    cycle(world)
    assert sum(part.slots for part in world.cluster.jobs.rows[job].promised) == 2
    world.finish(first)
    cycle(world)
    cycle(world)
    assert job in world.cluster.started


def test_one_that_takes_its_slots_one_by_one_starts_when_it_has_all() -> None:
    world = world_of()
    first = world.submit(queue="gang", slots=2, gpu="num=1/task")
    cycle(world)
    job = world.submit(queue="parts", slots=4, gpu="num=1/task")
    cycle(world)
    assert held_gpus(world) == {job: 2}
    assert not any(isinstance(event, ev.JobDeadlocked) for event in cycle(world)), "the other one will end"
    small = world.submit(queue="gang")
    cycle(world)
    assert small not in world.cluster.started, "what is held is nobody else's"
    world.finish(first)
    cycle(world)
    world.finish(small)
    cycle(world)
    cycle(world)
    assert job in world.cluster.started


jobs = st.lists(st.tuples(st.integers(1, 8), st.sampled_from(["", "num=1/task", "num=2"])), min_size=1, max_size=8)


@settings(max_examples=examples(150), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(jobs, st.sampled_from([(4, 2), (2, 4), (8, 1), (1, 8)]))
def test_of_random_gangs_some_job_always_makes_progress(gangs: list[tuple[int, str]], shape: tuple[int, int]) -> None:
    """While any job waits that could run alone, some job runs."""
    world = world_of(shape[0], shape[1], max(2, shape[1]))
    for slots, gpu in gangs:
        world.submit(queue="gang", slots=slots, gpu=gpu)
    left = len(gangs)
    while True:
        cycle(world)
        assert not held_gpus(world)
        if not world.cluster.started:
            break
        world.finish(next(iter(world.cluster.started)))
        left -= 1
    waiting = list(world.cluster.jobs.rows)
    for key in waiting:
        for other in waiting:
            if other != key:
                world.apply(ev.JobHeld(at=world.now, key=other))
        cycle(world)
        assert key not in world.cluster.started, "it could have run"
        for other in waiting:
            if other != key:
                world.apply(ev.JobReleased(at=world.now, key=other))
