"""Classes of one kind wait for the same, and each still says what is so of itself."""

from __future__ import annotations

from typing import Any

import pytest

from config.model.queue import QueueConfig
from config.model.values import FairShare
from lavad.core.plan.plan import Plan
from lavad.core.site.pend_reason import JOB_RUSAGE, NEVER_RUSAGE, PendReason
from lavad.sched.cycle.same_kind import SameKind
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.world import World

MEM = 10
"""Its number among the resources, in reasons."""


def world_of(few: int = 1, **fields: Any) -> World:
    world = World()
    world.memory = SchedulerCache(few=few)
    world.queues(QueueConfig(name="normal", **fields))
    world.hosts("h1", "h2", slots=2)
    for host in ("h1", "h2"):
        world.load(host, mem=1000.0)
    return world


def reasons(world: World, *keys: int) -> list[tuple[int, int]]:
    return [world.why(key)[0] for key in keys]


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize("order", [1, -1])
def test_only_what_no_host_can_ever_have_says_so(few: int, order: int) -> None:
    """Whichever of them comes first."""
    world = world_of(few)
    keys = {amount: world.submit(resreq=f"rusage[mem={amount}]") for amount in [15_000, 15_001, 17_000, 17_001][::order]}
    world.step()
    assert reasons(world, keys[15_000], keys[15_001]) == [(JOB_RUSAGE + MEM, 2)] * 2
    assert reasons(world, keys[17_000], keys[17_001]) == [(NEVER_RUSAGE + MEM, 0)] * 2


@pytest.mark.parametrize("few", [1, 64])
def test_one_that_fits_starts_behind_those_that_do_not(few: int) -> None:
    world = world_of(few)
    large = [world.submit(resreq=f"rusage[mem={amount}]") for amount in (1_500, 1_600)]
    small = world.submit(resreq="rusage[mem=500]")
    two = world.submit(resreq="rusage[mem=700]")
    assert world.step().keys() == {small, two}
    third = world.submit(resreq="rusage[mem=600]")
    assert world.step() == {}
    assert reasons(world, *large, third) == [(JOB_RUSAGE + MEM, 2)] * 3
    world.finish(small)
    assert world.step().keys() == {third}


@pytest.mark.parametrize("share", [None, FairShare(shares=(("default", 1),))])
def test_a_closed_queue_keeps_all_and_lets_them_go(share: FairShare | None) -> None:
    world = world_of(share=share)
    keys = [world.submit(resreq=f"rusage[mem={amount}]") for amount in (1, 2, 3)]
    world.queue_switch("normal", active=False)
    assert world.step() == {}
    assert reasons(world, *keys) == [(PendReason.QUE_INACT, 0)] * 3
    assert len({id(world.soft.why[world.cluster.get(key).spec]) for key in keys}) == 1, "sent once"
    world.queue_switch("normal")
    assert world.step().keys() == set(keys)


def test_limits_keep_a_user_and_no_other() -> None:
    world = world_of(ujob_limit=1)
    mine = [world.submit(resreq=f"rusage[mem={amount}]") for amount in (1, 2, 3)]
    other = world.submit(user="bob", resreq="rusage[mem=4]")
    assert world.step().keys() == {mine[0], other}
    assert reasons(world, *mine[1:]) == [(PendReason.QUE_USR_JLIMIT, 0)] * 2


def test_classes_of_several_jobs_and_arrays_wait_for_the_same() -> None:
    """They are looked at by themselves, and say what the others say."""
    world = world_of()
    for _ in range(4):
        world.submit()
    world.step()
    keys = [world.submit(resreq=f"rusage[mem={amount}]") for amount in (1, 2, 2, 3)]
    keys.append(world.submit(array="1-3", resreq="rusage[mem=4]"))
    assert world.step() == {}
    assert len(set(reasons(world, *keys))) == 1


def test_all_of_a_kind_but_the_first_cost_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their needs are not even made."""
    answered = []
    waits = SameKind.waits

    def count(self: SameKind, number: int, entry: Any) -> bool:
        found = waits(self, number, entry)
        answered.append(found)
        return found

    monkeypatch.setattr(SameKind, "waits", count)
    world = world_of()
    for amount in range(50):
        world.submit(resreq=f"rusage[mem={5_000 + amount}]")
    plan: Plan = world.schedule()
    assert len(plan.why) == 50
    assert len({id(why) for why in plan.why.values()}) == 1
    assert (answered.count(True), answered.count(False)) == (49, 1)
