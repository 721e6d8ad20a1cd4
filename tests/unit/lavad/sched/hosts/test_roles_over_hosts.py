"""Jobs with roles keep within limits and pools that count several hosts together, and are not held back where hosts suffice."""

from __future__ import annotations

from typing import Any

import pytest

from config.model.cluster import Limit
from config.model.guarantees import Amount, Pool, ServiceClass
from lavad.core.job.spec import Role
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.world import World

HERE = ("h0", "h1")


def world_of(few: int, **conf: Any) -> World:
    world = World()
    world.memory = SchedulerCache(few=few)
    world.configure(service_classes=(ServiceClass(name="gold"),), **conf)
    world.hosts("h0", "h1", "h2", slots=4, gpus=2)
    return world


def pool(kind: str, guaranteed: int, **fields: Any) -> dict[str, Any]:
    shares = (("gold", Amount(guaranteed)),)
    return {"pools": (Pool(name="p", type=kind, distribution=shares, hosts=HERE, **fields),)}


def limit(**fields: Any) -> dict[str, Any]:
    return {"limits": (Limit(name="l", hosts=HERE, **fields),)}


def role(name: str = "a", count: int = 2, **fields: Any) -> Role:
    return Role(name=name, count=count, least=count, **fields)


def submit(world: World, *roles: Role) -> int:
    return world.submit(roles=roles, slots=sum(one.least * one.slots for one in roles), gpu="num=1")


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize(
    ("conf", "roles"),
    [
        (limit(slots=1), (role(spread=True),)),
        (limit(slots=5), (role(count=8),)),
        (limit(slots=5), (role(count=4), role("b", count=4))),
        (limit(mem=1000.0), (role(spread=True, resreq="rusage[mem=600]"),)),
        (limit(resources=(("ngpus_physical", 3.0),)), (role(gpus=2, spread=True),)),
        (pool("slots", 5), (role(slots=3, spread=True),)),
        (pool("hosts", 1), (role(slots=2, spread=True), role("b", slots=2, spread=True))),
        (pool("package", 3, slots=2, mem=8000.0), (role(slots=2, spread=True, resreq="rusage[mem=8000]"),)),
    ],
    ids=["slots", "one role", "two roles", "memory", "GPUs", "pool of slots", "pool of hosts", "packages"],
)
def test_the_hosts_beyond_them_are_used(conf: dict[str, Any], roles: tuple[Role, ...], few: int) -> None:
    world = world_of(few, **conf)
    key = submit(world, *roles)
    plan = world.schedule()
    assert [one.key for one in plan.placements] == [key]
    assert "h2" in {part.host for part in plan.placements[0].parts}
    assert len(world.accept(plan)) == 1


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize(
    ("conf", "roles"),
    [
        (limit(slots=1), (role(slots=3, spread=True),)),
        (limit(slots=4), (role(count=9),)),
        (limit(mem=1000.0), (role(count=3, spread=True, resreq="rusage[mem=600]"),)),
        (pool("hosts", 1), (role(count=3, spread=True),)),
        (pool("slots", 8), (role(spread=True),)),
    ],
)
def test_they_hold_where_these_do_not_suffice(conf: dict[str, Any], roles: tuple[Role, ...], few: int) -> None:
    world = world_of(few, **conf)
    submit(world, *roles)
    assert world.step() == {}
