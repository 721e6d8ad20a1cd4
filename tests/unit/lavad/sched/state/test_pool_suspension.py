"""What a job that is suspended for another has of a guaranteed pool: the same in that cycle as in those after it."""

from __future__ import annotations

import pytest

from config.model.guarantees import Amount, Pool, ServiceClass
from lavad.core.job.job import Placed
from lavad.core.rules.guarantees.pools import use_of
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.world import World


@pytest.mark.parametrize(("kind", "mem", "used"), [("slots", 0.0, 0), ("package", 100.0, 1), ("hosts", 0.0, 1)])
def test_a_suspended_job_keeps_its_memory_and_its_place_on_a_host(kind: str, mem: float, used: int) -> None:
    world = World()
    pool = Pool(name="pool", type=kind, mem=mem, distribution=(("gold", Amount(1)),))
    world.configure(service_classes=(ServiceClass(name="gold"),), pools=(pool,))
    world.hosts("h1")
    spec = world.cluster.specs.rows[world.spec(service_class="gold", resreq="rusage[mem=100]")]
    state = CycleState(world.cluster, world.soft, world.now, world.local, SchedulerCache())
    assert state.pools is not None
    (use,) = state.pools._pools
    part = Placed(host="h1", slots=1, reserved=(("mem", 100.0),))
    use.take("h1", use_of(part, "gold", 1))
    assert use.used["gold"] == 1
    state.pools.shift_slots(spec, [part], -1)
    assert use.used["gold"] == used
    state.pools.shift_slots(spec, [part], 1)
    assert use.used["gold"] == 1
