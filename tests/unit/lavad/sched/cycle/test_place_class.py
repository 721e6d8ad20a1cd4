"""Many jobs of a class: those that look at all hosts are placed in several cycles, those that need a slot each many at once."""

from __future__ import annotations

import pytest

from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.site.pend_reason import PendReason
from lavad.sched.cycle import place_class
from lavad.sched.cycle.place_class import ClassPlacer
from lavad.sched.hosts.fit import units
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.topologies import regular
from tests.support.worlds.world import World


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize("resreq", ["order[spread]", "1*{}+1*{select[ncpus>1]}", "same[model]", "affinity[core(1)]"])
def test_the_rest_is_placed_in_the_next_cycles(monkeypatch, few, resreq):
    monkeypatch.setattr(place_class, "MAX_LOOKS", 9)
    world = World()
    world.memory = SchedulerCache(few=few)
    world.hosts("h1", "h2", "h3", slots=8, topology=regular(1, 1, 8, 1))
    world.submit(array="1-5", slots=2, resreq=resreq)
    for _ in range(5):
        world.submit(slots=2, resreq=resreq)
    counts: list[int] = []
    while (placed := world.step()) and len(counts) < 9:
        counts.append(len(placed))
    assert sum(counts) == 10
    assert max(counts) <= (10 if "affinity" in resreq else 3)


@pytest.mark.parametrize("few", [1, 64])
def test_hosts_that_have_nothing_for_a_class_are_asked_once_a_cycle(monkeypatch, few):
    asked: list[str] = []

    def looked(state: CycleState, need: Need, row: Row) -> tuple[int, int]:
        asked.append(row.name)
        return units(state, need, row)

    monkeypatch.setattr(place_class, "units", looked)
    world = World()
    world.memory = SchedulerCache(few=few)
    world.hosts(*(f"h{at}" for at in range(20)), slots=8, topology=regular(1, 1, 1, 1))
    world.hosts("z", slots=64, topology=regular(1, 1, 64, 1))
    world.submit(array="1-60", resreq="affinity[core(1)]")
    assert len(world.step()) == 60
    assert len(asked) < 150


def mixed_line(few: int, most: int) -> World:
    """Separate jobs of two users by turns, one of alice's requeued, and an array between; at most so many slots for each."""
    world = World()
    world.memory = SchedulerCache(few=few)
    world.queues(QueueConfig(name="normal", priority=30, ujob_limit=most))
    for name, slots in (("h1", 3), ("h2", 5), ("h3", 2), ("h4", 4)):
        world.hosts(name, slots=slots, model=f"m{slots}")
    again = world.submit(user="alice")
    world.step()
    for at in range(4):
        world.now += 1
        world.submit(user="alice")
        world.submit(user="bob", resreq="select[model!=m5]" if at % 2 else "")
    world.submit(array="1-3", user="alice")
    world.apply(ev.JobRequeued(at=world.now, key=again, avoid=("h1",), failures=1))
    for _ in range(8):
        world.submit(user="alice")
        world.submit(user="bob")
    return world


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize("most", [2, 6, 30])
def test_jobs_that_are_placed_together_are_placed_as_one_by_one(monkeypatch: pytest.MonkeyPatch, few: int, most: int) -> None:
    together = mixed_line(few, most).schedule()
    monkeypatch.setattr(ClassPlacer, "_place_run", lambda *_: False)
    alone = mixed_line(few, most).schedule()
    assert len(together.placements) == min(2 * most, 14)
    assert (together.placements, together.why, together.why_job) == (alone.placements, alone.why, alone.why_job)


@pytest.mark.parametrize(("reason", "waits"), [(PendReason.JOB_MIG, True), (PendReason.JOB_REQUEUED, False)])
def test_only_a_migrated_job_waits_for_hosts_that_it_has_not_left(reason: PendReason, waits: bool) -> None:
    """One whose host was lost and is back starts there, where no other is."""
    world = World()
    world.hosts("h1", slots=2)
    key = world.submit(slots=2)
    world.step()
    world.apply(ev.JobRequeued(at=world.now, key=key, avoid=("h1",), reason=reason))
    assert bool(world.step()) is not waits
    if waits:
        assert world.soft.why_job[key] == PendReason.JOB_MIG
        world.now += 60
        assert list(world.step()) == [key]


@pytest.mark.parametrize("span", ["", " span[stripe]", " span[hosts=1]"])
def test_a_host_with_less_than_nothing_left_is_no_first_host(span: str) -> None:
    """More is reserved there than is measured to be free."""
    world = World()
    world.hosts("h1", slots=8)
    world.load("h1", mem=16_000.0)
    running = world.submit(slots=2, resreq="rusage[mem=12000/job]")
    assert world.step().keys() == {running}
    world.load("h1", mem=500.0)
    world.submit(slots=2, resreq=f"rusage[mem=6000/job]{span}")
    assert world.schedule().placements == ()
