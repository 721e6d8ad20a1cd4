"""Many jobs of a class that looks at all hosts: a cycle places some, the next ones the rest; none is forgotten."""

from __future__ import annotations

import pytest

from lavad.core.lang.topology import regular
from lavad.sched.cycle import place_class
from lavad.sched.hosts.fit import units
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.scheduler_cache import SchedulerCache
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
