"""The master takes of a plan what still holds, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from config.model.queue import QueueConfig
from config.model.values import Limits
from lavad.core import events as ev
from lavad.core.decide.placement import placement
from lavad.core.decide.placement.placement import accept_part, accept_plan
from lavad.core.job.job import Placed
from lavad.core.lang.ids import key_of
from lavad.core.lang.ranges import Ranges
from lavad.core.plan.plan import Placement, Plan
from lavad.core.site.limit_book import LimitBook
from lavad.core.site.reservation import Reservation
from tests.support.worlds.world import World


def two_hosts() -> World:
    world = World()
    world.hosts("h1", "h2", slots=2, gpus=1)
    return world


def accepted(world: World, *placements: Placement) -> list[int]:
    plan = Plan(version=0, placements=placements)
    return [event.key for event in accept_plan(world.cluster, plan, world.now, "s") if isinstance(event, ev.JobDispatched)]


def test_attempts_get_numbers_and_uids():
    world = two_hosts()
    a, b = world.submit(), world.submit(array="1-2")
    events = accept_plan(world.cluster, world.schedule(), world.now, "seed")
    assert [(e.key, e.attempt, e.uid) for e in events if isinstance(e, ev.JobDispatched)] == [
        (a, 1, "seed0"),
        (key_of(b, 1), 1, "seed1"),
        (key_of(b, 2), 1, "seed2"),
    ]


CHANGES = {
    "job killed": lambda w, key: w.apply(ev.JobFinished(at=w.now, key=key, state=w.cluster.jobs.rows[key].state.EXIT)),
    "job held": lambda w, key: w.apply(ev.JobHeld(at=w.now, key=key)),
    "job modified": lambda w, key: w.apply(ev.JobModified(at=w.now, key=key, spec=w.spec(user="bob"), name="job")),
    "host closed": lambda w, key: w.host_switch("h1", closed=True),
    "host down": lambda w, key: w.apply(ev.HostDown(at=w.now, host="h1")),
    "queue inactive": lambda w, key: w.queue_switch("normal", active=False),
    "queue gone": lambda w, key: w.queues(QueueConfig(name="other")),
    "limit set": lambda w, key: w.queues(QueueConfig(name="normal", qjob_limit=0)),
    "slots gone": lambda w, key: w.hosts("h1", slots=0),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_stale_placement_is_dropped(what):
    world = two_hosts()
    key = world.submit(hosts=("h1",))
    plan = world.schedule()
    assert len(plan.placements) == 1
    CHANGES[what](world, key)
    assert accept_plan(world.cluster, plan, world.now, "s") == []


def test_a_gang_is_dropped_whole_when_one_host_is_taken():
    world = two_hosts()
    gang = world.submit(slots=4)
    plan = world.schedule()
    thief = world.submit()
    world.apply(ev.JobDispatched(at=world.now, key=thief, attempt=1, uid="x", parts=(Placed(host="h2", slots=1),)))
    assert accept_plan(world.cluster, plan, world.now, "s") == []
    assert gang in world.pending()


def test_placements_of_one_plan_see_each_other():
    world = two_hosts()
    a, b, c = (world.submit(gpu="num=1:j_exclusive=yes") for _ in range(3))
    part = (Placed(host="h1", slots=1, gpus=("GPU-h1-0",)),)
    other = (Placed(host="h2", slots=1, gpus=("GPU-h1-0",)),)
    assert accepted(world, Placement(a, part), Placement(b, part), Placement(c, other)) == [a]
    assert accepted(world, Placement(a, part), Placement(a, (Placed(host="h2", slots=1, gpus=("GPU-h2-0",)),))) == [a]


@pytest.mark.parametrize("parts", [(Placed("h1", 1),), (Placed("h1", 3),), (Placed("h1", 2), Placed("h9", 1)), ()])
def test_a_placement_that_is_not_what_the_job_asks_for(parts):
    world = two_hosts()
    key = world.submit(slots=3)
    assert accepted(world, Placement(key, parts)) == []


def test_an_element_that_was_killed_meanwhile():
    world = two_hosts()
    array = world.submit(array="1-3")
    plan = world.schedule()
    world.apply(ev.ElementsKilled(at=world.now, key=array, elements=Ranges.parse("2")))
    assert [e.key for e in world.accept(plan) if isinstance(e, ev.JobDispatched)] == [
        key_of(array, 1),
        key_of(array, 3),
    ]


def test_no_more_elements_than_the_array_lets_run():
    world = two_hosts()
    array = world.submit(array="1-3", limit=1)
    both = [Placement(key_of(array, index), (Placed(host="h1", slots=1),)) for index in (1, 2)]
    assert accepted(world, *both) == [key_of(array, 1)]
    world.apply(ev.JobDispatched(at=world.now, key=key_of(array, 3), attempt=1, uid="x", parts=(Placed(host="h2", slots=1),)))
    assert accepted(world, *both) == []


@pytest.mark.parametrize(("begins_in", "minutes", "kept"), [(0, 1, False), (30, 60, False), (30, 10, True)])
def test_slots_that_were_reserved_meanwhile(begins_in, minutes, kept):
    """A job starts on what a reservation is to have only if it is over by then."""
    world = two_hosts()
    key = world.submit(hosts=("h1",), slots=2, limits=Limits(run=60 * minutes))
    plan = world.schedule()
    begin = world.now + 60 * begins_in
    row = Reservation(name="bob#0", users=("bob",), hosts=(("h1", 2),), begin=begin, end=begin + 3600)
    world.apply(ev.AdvanceReservationSet(at=world.now, value=row))
    assert accepted(world, *plan.placements) == ([key] if kept else [])


def in_parts(world: World, plan: Plan, between: Callable[[], object] = lambda: None) -> list[list[ev.JobDispatched]]:
    """What each part of the plan starts, when they are taken one after the other."""
    found: list[list[ev.JobDispatched]] = []
    rest: Plan | None = plan
    while rest is not None:
        events, rest = accept_part(world.cluster, rest, world.now, f"s{len(found)}.", LimitBook(world.cluster.conf))
        world.apply(*events)
        found.append([event for event in events if isinstance(event, ev.JobDispatched)])
        between()
    return found


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_a_plan_that_is_taken_in_parts_starts_the_same(at_once, monkeypatch):
    """Whole jobs, in the same order, each attempt under a uid of its own."""
    monkeypatch.setattr(placement, "AT_ONCE", at_once)
    world = World()
    world.hosts(*(f"h{number}" for number in range(6)), slots=4, gpus=2)
    world.submit(array="1-5", limit=3)
    world.submit(slots=7)
    for number in range(4):
        world.submit(user=f"u{number}", gpu="num=1:j_exclusive=yes")
    world.submit(slots=3, resreq="span[ptile=1]")
    plan = world.schedule()
    events = accept_plan(world.cluster, plan, world.now, "s")
    whole = [(event.key, event.parts) for event in events if type(event) is ev.JobDispatched]
    parts = in_parts(world, plan)
    assert [(event.key, event.parts) for part in parts for event in part] == whole
    assert len(whole) == 9
    assert len({event.uid for part in parts for event in part}) == 9
    for part in parts:
        assert sum(len(event.parts) for event in part[:-1]) < at_once
    assert len(parts) == {1: 9, 3: 4, 100: 1}[at_once]


def test_what_changes_between_two_parts_counts(monkeypatch):
    monkeypatch.setattr(placement, "AT_ONCE", 1)
    world = two_hosts()
    keys = [world.submit() for _ in range(4)]
    plan = world.schedule()
    world.apply(ev.JobHeld(at=world.now, key=keys[0]))

    def hold() -> None:
        if keys[2] in world.pending():
            world.apply(ev.JobHeld(at=world.now, key=keys[2]))

    assert [[event.key for event in part] for part in in_parts(world, plan, hold)] == [[keys[1]], [keys[3]]]
