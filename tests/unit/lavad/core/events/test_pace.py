"""How long jobs of service classes with goals take is noted as they end: of those that nobody ended, of such classes alone."""

from __future__ import annotations

import pytest

from config.model.guarantees import Goal, ServiceClass
from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.snapshot import restore, take
from lavad.core.job.pace import Pace
from lavad.core.lang.states import JobState
from tests.support.worlds.world import World


def world_of() -> World:
    world = World()
    goals = (Goal("velocity", 9),)
    classes = (ServiceClass(name="a", goals=goals), ServiceClass(name="b", goals=goals, users=("bob",)), ServiceClass(name="g"))
    world.configure(queues=(QueueConfig(name="q"),), service_classes=classes)
    world.hosts("h1", slots=8)
    return world


def ran(world: World, service: str, seconds: float, status: int = 0) -> None:
    key = world.submit(service_class=service)
    assert key in world.step()
    world.later(seconds)
    world.finish(key, status)


def test_the_mean_of_those_that_have_ended() -> None:
    world = world_of()
    ran(world, "a", 100.0)
    ran(world, "a", 200.0, status=256)
    assert world.cluster.paces.rows == {"a": Pace("a", 2, 150.0)}


@pytest.mark.parametrize("service", ["", "g", "b"])
def test_nothing_is_noted_of_jobs_without_a_goal(service: str) -> None:
    world = world_of()
    ran(world, service, 100.0)
    assert not world.cluster.paces.rows


def test_nor_of_jobs_that_somebody_ended_or_that_never_started() -> None:
    world = world_of()
    started, waiting = world.submit(service_class="a"), world.submit(service_class="a", slots=99)
    assert list(world.step()) == [started]
    world.later(50.0)
    for key in (started, waiting):
        world.apply(ev.JobFinished(at=world.now, key=key, state=JobState.EXIT, by="alice"))
    assert not world.cluster.paces.rows


def test_elements_that_end_together_all_count() -> None:
    world = world_of()
    job = world.submit(array="1-4", service_class="a")
    assert len(world.step()) == 4
    world.later(30.0)
    for key in list(world.cluster.started):
        world.finish(key)
    assert job not in world.cluster.arrays.rows
    assert world.cluster.paces.rows["a"] == Pace("a", 4, 30.0)


def test_a_batch_that_could_not_be_committed_leaves_no_trace() -> None:
    world = world_of()
    ran(world, "a", 100.0)
    world.cluster.forget_changes()
    ran(world, "a", 300.0)
    world.cluster.undo_changes()
    assert world.cluster.paces.rows == {"a": Pace("a", 1, 100.0)}


def test_a_replica_begins_with_it() -> None:
    world = world_of()
    ran(world, "a", 100.0)
    assert restore(take(world.cluster)).paces.rows == world.cluster.paces.rows
