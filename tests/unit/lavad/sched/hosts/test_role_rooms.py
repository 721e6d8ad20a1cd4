"""Jobs with roles for which the hosts have too little are found at once, and no other job is taken for one of them."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.model.cluster import HostConfig, Limit
from config.model.guarantees import Amount, Loan, Pool, ServiceClass
from lavad.core.job.job import Placed
from lavad.core.job.spec import Role
from lavad.core.site.conf import ResourceConf
from lavad.core.site.pend_reason import LIMIT_RESOURCE, LIMIT_SLOTS, POOL
from lavad.sched.hosts.role_rooms import RoleRooms
from lavad.sched.hosts.roles import RolePlacer
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.examples import examples
from tests.support.worlds.world import World

HOSTS = {"h1": (4, 0), "h2": (6, 2), "h3": (3, 4), "h4": (8, 1)}
"""Host to its (slots, GPUs)."""


def world_of(few: int = 1, **conf: Any) -> World:
    world = World()
    world.memory = SchedulerCache(few=few)
    world.configure(
        hosts=(HostConfig(name="h4", resources=(("fast", ""),)),),
        resources=(
            ResourceConf(name="fast"),
            ResourceConf(name="lic", kind="numeric", consumable=True, locations=((3.0, ("h1", "h2")), (1.0, ("h3", "h4")))),
        ),
        **conf,
    )
    for host, (slots, gpus) in HOSTS.items():
        world.hosts(host, slots=slots, gpus=gpus, mem=16_000)
        world.load(host, mem=16_000.0)
    return world


def submit(world: World, *roles: Role, **fields: Any) -> int:
    slots = sum(role.least * role.slots for role in roles)
    most = sum(role.count * role.slots for role in roles)
    if any(role.gpus for role in roles):
        fields.setdefault("gpu", "num=1")
    return world.submit(roles=roles, slots=slots, max_slots=most, launch="roles", **fields)


def placed(world: World) -> dict[int, tuple[Placed, ...]]:
    """One cycle, accepted whole: job to its parts."""
    plan = world.schedule()
    assert len(world.accept(plan)) == len(plan.placements)
    return {placement.key: placement.parts for placement in plan.placements}


def placers_made(world: World) -> int:
    """For how many jobs one cycle tries to place task after task."""
    made = 0
    real = RolePlacer.__init__

    def count(self: RolePlacer, *args: Any) -> None:
        nonlocal made
        made += 1
        real(self, *args)

    with patch.object(RolePlacer, "__init__", count):
        assert world.step() == {}
    return made


REQUIREMENTS = ("", "rusage[mem=3000]", "rusage[mem=9000]", "rusage[lic=1]", "select[fast]", "select[!fast] rusage[mem=2000]")
ROLES = st.builds(
    lambda least, more, slots, gpus, resreq, spread: (least, least + more, slots, gpus, resreq, spread),
    st.integers(1, 5),
    st.integers(0, 2),
    st.integers(1, 3),
    st.integers(0, 2),
    st.sampled_from(REQUIREMENTS),
    st.booleans(),
)
JOBS = st.lists(st.tuples(st.lists(ROLES, min_size=1, max_size=3), st.sampled_from(("alice", "bob"))), min_size=1, max_size=6)


FIRST = ("h1", "h2", "h3")
BOUNDS: dict[str, dict[str, Any]] = {
    "none": {},
    "slots of a host": {"limits": (Limit(name="own", per_host=True, slots=4, users=("bob",)),)},
    "slots of hosts": {"limits": (Limit(name="some", hosts=FIRST, slots=6), Limit(name="all", hosts=("all",), slots=12))},
    "memory of hosts": {"limits": (Limit(name="some", hosts=FIRST, mem=7000.0, users=("alice",)),)},
    "GPUs of hosts": {"limits": (Limit(name="some", hosts=("all",), resources=(("ngpus_physical", 4.0),)),)},
    **{
        f"pools of {name}": {
            "service_classes": (ServiceClass(name="gold"),),
            "pools": tuple(
                Pool(name=own, type=kind, distribution=(("gold", Amount(share)),), hosts=hosts, **fields)
                for own, share, hosts in (("first", most, FIRST[:2]), ("second", most, ("h2", "h4")))
            ),
        }
        for name, kind, most, fields in (
            ("slots", "slots", 7, {}),
            ("some slots", "slots", 6, {"slots_per_host": 5}),
            ("hosts", "hosts", 1, {}),
            ("packages", "package", 3, {"slots": 2, "mem": 3000.0}),
        )
    },
}


@settings(max_examples=examples(120))
@given(JOBS, st.sampled_from((1, 64)), st.sampled_from(sorted(BOUNDS)))
def test_what_is_found_at_once_could_not_have_been_placed(jobs: list[Any], few: int, bounds: str) -> None:
    world = world_of(few, **BOUNDS[bounds])
    for roles, user in jobs:
        named = [
            Role(name=f"r{at}", least=least, count=count, slots=slots, gpus=gpus, resreq=resreq, spread=spread)
            for at, (least, count, slots, gpus, resreq, spread) in enumerate(roles)
        ]
        submit(world, *named, user=user)
    plan = world.schedule(SchedulerCache(few=few))
    with patch.object(RoleRooms, "lacking", lambda self: None), patch.object(RoleRooms, "why_not_together", lambda self: 0):
        thorough = world.schedule(SchedulerCache(few=few))
    assert plan.placements == thorough.placements
    assert len(world.accept(plan)) == len(plan.placements)


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize(
    "roles",
    [
        (Role(name="a", least=1, count=1), Role(name="b", least=21, count=21)),
        (Role(name="a", least=11, count=11), Role(name="b", least=11, count=11)),
        (Role(name="a", least=4, count=4, gpus=1), Role(name="b", least=4, count=4, gpus=1)),
        (Role(name="a", least=5, count=5, gpus=2),),
        (Role(name="a", least=5, count=5, spread=True),),
        (Role(name="a", least=2, count=2, slots=6), Role(name="b", least=1, count=1, slots=7)),
        (Role(name="a", least=5, count=5, resreq="rusage[mem=9000]"),),
        (
            Role(name="a", least=2, count=2, resreq="rusage[mem=8000]"),
            Role(name="b", least=7, count=7, resreq="rusage[mem=7500]"),
        ),
        (Role(name="a", least=9, count=9, resreq="select[fast]"),),
    ],
    ids=["slots", "slots together", "GPUs together", "GPUs", "spread", "slots of a task", "memory", "memory together", "hosts"],
)
def test_no_task_is_placed_in_vain(roles: tuple[Role, ...], few: int) -> None:
    world = world_of(few)
    submit(world, *roles)
    assert placers_made(world) == 0


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize(
    ("bounds", "roles", "reason"),
    [
        ("slots of hosts", (Role(name="a", least=13, count=13),), LIMIT_SLOTS + 1),
        ("slots of hosts", (Role(name="a", least=7, count=7, resreq="select[!fast]"),), LIMIT_SLOTS),
        (
            "memory of hosts",
            (Role(name="a", least=2, count=2, resreq="select[!fast] rusage[mem=3000]"), Role(name="b", least=1, count=1)),
            0,
        ),
        ("memory of hosts", (Role(name="a", least=3, count=3, resreq="select[!fast] rusage[mem=3000]"),), LIMIT_RESOURCE),
        ("GPUs of hosts", (Role(name="a", least=3, count=3), Role(name="b", least=5, count=5, gpus=1)), LIMIT_RESOURCE),
        ("pools of slots", (Role(name="a", least=10, count=10), Role(name="b", least=4, count=4)), POOL),
        ("pools of hosts", (Role(name="a", least=1, count=1), Role(name="b", least=17, count=17)), POOL),
        ("pools of packages", (Role(name="a", least=9, count=9, resreq="select[!fast]"),), POOL),
    ],
    ids=["slots", "of some hosts", "fits", "memory", "GPUs", "pool slots", "whole hosts", "packages"],
)
def test_no_task_is_placed_in_vain_by_what_several_hosts_share(
    bounds: str, roles: tuple[Role, ...], reason: int, few: int
) -> None:
    world = world_of(few, **BOUNDS[bounds])
    key = submit(world, *roles)
    if not reason:
        assert placed(world).keys() == {key}
        return
    assert placers_made(world) == 0
    assert world.soft.why[world.cluster.jobs.rows[key].spec].reasons == ((reason, 0, ()),)


@pytest.mark.parametrize("few", [1, 64])
def test_what_hosts_share_is_given_out_once(few: int) -> None:
    """4 tasks that take a license each, where h1 and h2 have 3 together, and h3 and h4 one more."""
    world = world_of(few)
    key = submit(world, Role(name="a", least=4, count=4, slots=3, resreq="rusage[lic=1]"))
    parts = placed(world)[key]
    assert sum(dict(part.reserved)["lic"] for part in parts if part.host in ("h1", "h2")) == 3
    assert sum(dict(part.reserved)["lic"] for part in parts if part.host in ("h3", "h4")) == 1
    assert placed(world) == {}


def test_more_licenses_than_there_are_wait() -> None:
    world = world_of()
    submit(world, Role(name="a", least=5, count=5, resreq="rusage[lic=1]"))
    assert placed(world) == {}


@pytest.mark.parametrize("few", [1, 64])
def test_what_the_job_asks_for_it_takes_once(few: int) -> None:
    """A license for the job, and one for each task: three tasks of one job, then none of the next."""
    world = world_of(few)
    role = Role(name="a", least=2, count=2, resreq="rusage[lic=1]")
    first, second = (submit(world, role, resreq="rusage[lic=1]", hosts=("h1", "h2")) for _ in range(2))
    parts = placed(world)
    assert parts.keys() == {first}
    assert sum(dict(part.reserved)["lic"] for part in parts[first]) == 3
    world.finish(first)
    assert world.step().keys() == {second}


@pytest.mark.parametrize("few", [1, 64])
def test_without_the_license_of_the_job_no_host_is_of_use(few: int) -> None:
    world = world_of(few)
    role = Role(name="a", least=2, count=2)
    keys = [submit(world, role, resreq="rusage[lic=2]", hosts=("h1", "h2")) for _ in range(2)]
    assert placed(world).keys() == {keys[0]}
    assert placed(world) == {}


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize("before", [{}, {"gpu": "num=1:mode=exclusive_process"}], ids=["no GPUs", "exclusive ones"])
def test_a_limit_on_gpus_of_each_host_counts_though_jobs_without_such_came_before(few: int, before: dict[str, str]) -> None:
    world = world_of(few, limits=(Limit(name="own", per_host=True, resources=(("ngpus_physical", 1.0),)),))
    first = submit(world, Role(name="a", least=1, count=1), **before)
    second = submit(world, Role(name="a", least=3, count=3, gpus=1))
    assert {key: len(parts) for key, parts in placed(world).items()} == {first: 1, second: 3}


@pytest.mark.parametrize("few", [1, 64])
def test_a_pool_that_lends_does_so_beside_one_that_does_not(few: int) -> None:
    """Of 10 slots 4 are kept, of 11 others 3, on no host for sure; with what the first pool lends there are 18."""
    lent, kept = ((("gold", Amount(most)),) for most in (4, 3))
    pools = (
        Pool(name="lends", type="slots", distribution=lent, hosts=("h1", "h2"), loan=Loan(queues=("all",))),
        Pool(name="keeps", type="slots", distribution=kept, hosts=("h3", "h4")),
    )
    world = world_of(few, service_classes=(ServiceClass(name="gold"),), pools=pools)
    key = submit(world, Role(name="a", least=17, count=17))
    assert placed(world).keys() == {key}
