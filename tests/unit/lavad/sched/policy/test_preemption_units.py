"""Victims and who they make room for: as few as needed, together or not at all, and what they give up beyond the need."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.lang.states import JobState
from lavad.core.plan.plan import Placement, Plan
from tests.support.worlds.preempting import HIGH, REQUEUE, run, states, step, world_of


def test_a_victim_and_its_beneficiary_are_taken_together_or_not_at_all() -> None:
    world = world_of()
    (low,) = run(world, queue="low", slots=4)
    high = world.submit(queue="high", slots=4)
    plan = world.schedule()
    world.apply(ev.JobFinished(at=world.now, key=high, state=JobState.EXIT))
    assert world.accept(plan) == []
    assert states(world, low) == ["RUN"]
    high = world.submit(queue="high", slots=4)
    plan = world.schedule()
    world.finish(low)
    assert world.accept(plan) == [], "the victim is over: the next plan says more"
    step(world)
    assert states(world, high) == ["RUN"]


def test_only_victims_that_are_needed_are_taken() -> None:
    """The youngest job is on another host than the one that is emptied for a job that must be on one."""
    world = world_of(hosts=("h1", "h2"), slots=2)
    old = [world.submit(queue="low", slots=1, hosts=("h1",)) for _ in range(2)]
    step(world)
    world.now += 60
    (other,) = run(world, queue="low", slots=1, hosts=("h2",))
    (kept,) = run(world, queue="high", slots=1, hosts=("h2",))
    high = world.submit(queue="high", slots=2, resreq="span[hosts=1]")
    step(world)
    assert states(world, *old, other, kept, high) == ["SSUSP", "SSUSP", "RUN", "RUN", "RUN"]


def test_what_the_first_of_two_victims_leaves_is_held() -> None:
    world = world_of(HIGH, REQUEUE)
    lows = run(world, 2, queue="low", slots=2)
    high = world.submit(queue="high", slots=4)
    step(world)
    key = lows[0]
    world.apply(ev.PartGone(at=world.now, key=key, attempt=1, host="h1"), ev.JobRequeued(at=world.now, key=key))
    thief = world.submit(queue="high", slots=1, priority=99)
    step(world)
    assert states(world, high, thief) == ["PEND", "PEND"]
    parts = world.cluster.jobs.rows[high].promised
    early = Plan(world.cluster.version, (Placement(high, parts),))
    assert world.accept(early) == [], "one victim is still there"


def test_what_a_victim_gives_up_beyond_the_need_is_nobodys_in_this_cycle() -> None:
    """It goes on with all its slots: a lower job that took the rest of them would keep it from doing so."""
    world = world_of()
    (low,) = run(world, queue="low", slots=4)
    lower = world.submit(queue="low", slots=1)
    high = world.submit(queue="high", slots=1)
    step(world)
    assert states(world, low, high, lower) == ["SSUSP", "RUN", "PEND"]
    world.finish(high)
    step(world)
    assert states(world, low, lower) == ["RUN", "PEND"]
