"""A blocked class is tried again only where hosts that it may use have changed, and of thousands some in each cycle."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from config.model.cluster import HostConfig
from config.model.queue import QueueConfig
from config.model.values import Preemption
from lavad.core.job.spec import Role
from lavad.core.site.conf import ResourceConf
from lavad.sched.cycle import still_blocked
from lavad.sched.cycle.place_class import ClassPlacer
from lavad.sched.cycle.still_blocked import StillBlocked
from lavad.sched.state.changed_hosts import KEPT
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.world import World


def world_of(few: int = 1) -> World:
    """Two hosts for anybody, h1 and h2, and one for those who ask for it."""
    world = World()
    world.memory = SchedulerCache(few=few)
    world.configure(
        hosts=(HostConfig(name="h3", resources=(("fast", ""),)),),
        resources=(
            ResourceConf(name="fast"),
            ResourceConf(name="lic", kind="numeric", consumable=True, locations=((2.0, ("all",)),)),
        ),
    )
    world.hosts("h1", "h2", "h3", slots=4)
    for host in ("h1", "h2", "h3"):
        world.load(host, mem=1000.0, r1m=0.0)
    return world


def tried(world: World, looks: int = still_blocked.LOOKS) -> list[int]:
    """The classes that all hosts were asked for in a cycle."""
    found: list[int] = []
    real = ClassPlacer.__init__

    def begin(self: ClassPlacer, builder: Any, need: Any, entry: Any) -> None:
        found.append(need.number)
        real(self, builder, need, entry)

    with patch.object(ClassPlacer, "__init__", begin), patch.object(still_blocked, "LOOKS", looks):
        plan = world.schedule()
    world.accept(plan)
    return found


def fill(world: World, *hosts: str) -> list[int]:
    """A job on all slots of each host."""
    keys = [world.submit(slots=4, resreq="span[hosts=1]", hosts=(host,)) for host in hosts]
    assert world.step().keys() == set(keys)
    return keys


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize(
    "resreq",
    ["select[fast] span[ptile=2]", "1*{select[fast]}+1*{select[fast]}", "{select[fast]} || {select[fast] span[hosts=1]}"],
)
def test_more_room_elsewhere_is_of_no_use(few: int, resreq: str) -> None:
    world = world_of(few)
    elsewhere, here = fill(world, "h1", "h3")
    waiting = world.submit(slots=2, resreq=resreq)
    assert len(tried(world)) == 1
    world.finish(elsewhere)
    assert tried(world) == []
    world.finish(here)
    assert world.step().keys() == {waiting}


@pytest.mark.parametrize("resreq", ["select[mem>2000]", "select[mem>2000] span[ptile=1]"])
def test_one_that_reads_the_load_is_tried_when_a_host_comes_to_fit(resreq: str) -> None:
    world = world_of()
    waiting = world.submit(slots=2, resreq=resreq)
    assert len(tried(world)) == 1
    world.load("h1", mem=1500.0)
    assert tried(world) == []
    for host in ("h1", "h2"):
        world.load(host, mem=2500.0)
    assert world.step().keys() == {waiting}


def test_what_hosts_share_comes_back_from_any_of_them() -> None:
    world = world_of()
    holder = world.submit(resreq="rusage[lic=2]", hosts=("h1",))
    assert world.step().keys() == {holder}
    waiting = world.submit(slots=2, resreq="select[fast] rusage[lic=1]")
    assert world.step() == {}
    world.finish(holder)
    assert world.step().keys() == {waiting}


def test_one_that_no_host_can_ever_hold_is_not_tried_until_hosts_are_others() -> None:
    world = world_of()
    running = fill(world, "h1", "h2", "h3")
    waiting = world.submit(slots=13)
    assert len(tried(world)) == 1
    world.finish(running[0])
    assert tried(world) == []
    for key in running[1:]:
        world.finish(key)
    world.hosts("h4", slots=4)
    world.load("h4", mem=1000.0)
    assert world.step().keys() == {waiting}


def test_of_many_that_cannot_fit_each_is_asked_about_in_its_turn() -> None:
    world = world_of()
    running = fill(world, "h1", "h2", "h3")
    for slots in range(9, 13):
        world.submit(slots=slots, user="bob")
    assert len(tried(world)) == 4
    world.finish(running.pop())  # 4 free
    asked = []
    for at in range(4):
        world.load("h1", mem=900.0 + at)
        turn = tried(world, looks=1)
        assert len(turn) == 1
        asked += turn
    assert len(set(asked)) == 4
    world.load("h1", mem=800.0)
    assert tried(world, looks=1) == []
    world.finish(running.pop())  # 8 free
    assert world.step() == {}
    world.finish(running.pop())
    assert len(world.step()) == 1


def test_one_alternative_that_may_fit_is_enough() -> None:
    """Also where there is no time to ask why classes wait."""
    world = world_of()
    running = fill(world, "h1", "h2", "h3")
    waiting = world.submit(slots=4, resreq="{select[fast] span[ptile=1]} || {span[hosts=1]}")
    assert len(tried(world, looks=0)) == 1
    world.finish(running[0])
    assert len(tried(world, looks=0)) == 1
    assert waiting in world.running()


def test_one_that_was_not_looked_at_for_long_is_tried() -> None:
    world = world_of()
    elsewhere, _ = fill(world, "h1", "h3")
    world.submit(slots=2, resreq="select[fast] span[ptile=2]")
    assert len(tried(world)) == 1
    with patch.object(StillBlocked, "passes", lambda self, need, entry: True):
        for at in range(KEPT + 2):
            world.load("h1", mem=500.0 + at)
            world.schedule()
    world.finish(elsewhere)
    assert len(tried(world)) == 1


@pytest.mark.parametrize("resreq", ["select[mem>5000]", "select[maxmem>99999]", "1*{select[mem>5000]}+1*{select[mem>6000]}"])
@pytest.mark.parametrize("queue", ["reserves", "preempts"])
def test_one_that_may_use_no_host_is_not_tried_whatever_its_queue_may_do(queue: str, resreq: str) -> None:
    world = world_of()
    world.configure(
        queues=(
            QueueConfig(name="normal"),
            QueueConfig(name="reserves", priority=50, slot_reserve=100),
            QueueConfig(name="preempts", priority=60, preemption=Preemption(preemptive=True)),
        )
    )
    running = fill(world, "h1", "h2")
    waiting = world.submit(slots=2, resreq=resreq, queue=queue)
    assert len(tried(world)) == 1
    world.finish(running[0])
    assert tried(world) == []
    if "maxmem" not in resreq:
        for host in ("h1", "h3"):
            world.load(host, mem=7000.0)
        assert waiting in world.step()


def submit_roles(world: World, *roles: Role) -> int:
    slots = sum(role.count * role.slots for role in roles)
    return world.submit(slots=slots, max_slots=slots, roles=roles, launch="roles")


@pytest.mark.parametrize("few", [1, 64])
def test_one_with_roles_is_tried_where_hosts_of_a_role_have_changed(few: int) -> None:
    world = world_of(few)
    elsewhere, here = fill(world, "h1", "h3")
    fast = "select[fast]"
    waiting = submit_roles(world, Role(name="a", resreq=fast), Role(name="b", count=2, least=2, resreq=fast))
    assert len(tried(world)) == 1
    world.finish(elsewhere)
    assert tried(world) == []
    world.finish(here)
    assert world.step().keys() == {waiting}


def test_one_with_roles_is_not_tried_where_too_little_has_come_back() -> None:
    """Also where there is no time to ask why classes wait."""
    world = world_of()
    running = fill(world, "h1", "h2", "h3")
    waiting = submit_roles(world, Role(name="a", slots=2), Role(name="b", count=5, least=5))
    assert len(tried(world, looks=0)) == 1
    world.finish(running[0])
    assert tried(world, looks=0) == []
    world.finish(running[1])
    assert len(tried(world, looks=0)) == 1
    assert waiting in world.running()


def test_one_with_a_role_that_no_host_may_have_is_not_tried() -> None:
    world = world_of()
    running = fill(world, "h1", "h2")
    waiting = submit_roles(world, Role(name="a"), Role(name="b", resreq="select[mem>5000]"))
    assert len(tried(world)) == 1
    world.finish(running[0])
    assert tried(world) == []
    world.load("h2", mem=7000.0)
    world.finish(running[1])
    assert waiting in world.step()
