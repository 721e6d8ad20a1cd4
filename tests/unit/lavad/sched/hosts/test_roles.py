"""Where jobs with roles go: whole on one host, each role by its own needs, all or nothing, never over what a host has."""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from config.model.queue import QueueConfig
from config.model.values import Limits, Preemption
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.job.job import Placed
from lavad.core.job.spec import Role
from lavad.core.lang.gpureq import parse
from lavad.core.site.conf import Conf
from lavad.core.site.host import Facts, Gpu
from lavad.core.site.pend_reason import PendReason
from tests.support.examples import examples
from tests.support.worlds.world import World

PS, WORKER = Role(name="ps"), Role(name="worker", count=2, least=2)


def submit(world: World, *roles: Role, **fields: Any) -> int:
    """A job with these roles."""
    slots = sum(role.least * role.slots for role in roles)
    most = sum(role.count * role.slots for role in roles)
    gpu = parse("-") if any(role.gpus for role in roles) else None
    if gpu is not None:
        fields.setdefault("gpu", "num=1")
    return world.submit(roles=roles, slots=slots, max_slots=most, launch="roles", **fields)


def placed(world: World) -> dict[int, tuple[Placed, ...]]:
    """One cycle: job to its parts. The plan is accepted whole."""
    plan = world.schedule()
    events = world.accept(plan)
    assert len(events) == len(plan.placements)
    world.soft.why.update(plan.why)
    check_invariants(world.cluster)
    return {placement.key: placement.parts for placement in plan.placements}


def by_role(parts: tuple[Placed, ...]) -> dict[int, Counter[str]]:
    """Role to its hosts, with how many tasks on each; indexes are dense along the parts."""
    found: dict[int, Counter[str]] = {}
    for part in parts:
        for role, first, count in part.roles:
            hosts = found.setdefault(role, Counter())
            assert first == sum(hosts.values()), "indexes go along the hosts"
            hosts[part.host] += count
    return found


def two_jobs(names: list[str], order: tuple[int, ...], at_once: bool, load: dict[str, float]) -> list[set[str]]:
    world = World()
    world.hosts(*names, slots=3)
    for name in names:
        world.load(name, r15s=load[name])
    found: dict[int, tuple[Placed, ...]] = {}
    for user in order:
        submit(world, PS, WORKER, user=f"user{user}")
        if not at_once:
            found |= placed(world)
    found |= placed(world)
    assert len(found) == 2
    return [{part.host for part in parts} for parts in found.values()]


def test_a_job_that_failed_on_a_host_goes_elsewhere() -> None:
    world = World()
    world.hosts("h1", "h2", slots=3)
    key = submit(world, PS, WORKER)
    (before,) = {part.host for part in placed(world)[key]}
    world.apply(ev.JobRequeued(at=world.now, key=key, avoid=(before,)))
    assert {part.host for part in placed(world)[key]} == {"h1", "h2"} - {before}


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("order", list(permutations((1, 2))))
def test_each_job_is_whole_on_its_own_host(order: tuple[int, ...], at_once: bool) -> None:
    """Two jobs of one ps and two workers on two hosts of 3 slots: always placement (c), for all orders and 1,000 seeds."""
    for seed in range(500):
        chance = random.Random(seed)
        names = [f"h{number}" for number in chance.sample(range(100), 2)]
        load = {name: chance.random() * 4 for name in names}
        first, second = two_jobs(names, order, at_once, load)
        assert len(first) == len(second) == 1
        assert first != second


def test_the_host_that_fits_best_is_taken() -> None:
    """A job goes where it leaves the least behind, so that the next one finds a host of its own."""
    world = World()
    world.hosts("big", slots=6)
    world.hosts("small", slots=3)
    submit(world, PS, WORKER)
    assert [{part.host for part in parts} for parts in placed(world).values()] == [{"small"}]
    submit(world, Role(name="worker", count=6, least=6))
    assert [{part.host for part in parts} for parts in placed(world).values()] == [{"big"}]


def test_a_job_too_large_for_one_host_uses_as_few_as_can_be() -> None:
    world = World()
    world.hosts("h1", "h2", "h3", "h4", slots=3)
    world.hosts("wide", slots=4)
    key = submit(world, PS, Role(name="worker", count=5, least=5))
    parts = placed(world)[key]
    assert sorted((part.host, part.slots) for part in parts)[-1] == ("wide", 4)
    assert len(parts) == 2
    assert parts[0].roles[0][:2] == (0, 0), "the first host has the first role's first task"


def test_roles_with_and_without_gpus_go_to_their_hosts() -> None:
    """Parameter servers on the CPU hosts, workers on the GPU hosts, though the servers would fit there too."""
    world = World()
    world.hosts("gpu1", "gpu2", slots=8, gpus=4)
    world.hosts("cpu1", "cpu2", slots=8)
    key = submit(world, Role(name="ps", count=2, least=2), Role(name="worker", count=6, least=6, gpus=1))
    parts = placed(world)[key]
    where = by_role(parts)
    assert set(where[0]) <= {"cpu1", "cpu2"}
    assert where[1] == {"gpu1": 4, "gpu2": 2} or where[1] == {"gpu1": 2, "gpu2": 4}
    for part in parts:
        assert len(part.gpus) == sum(count for role, _, count in part.roles if role == 1)


def test_where_only_gpu_hosts_have_room_all_roles_share_them() -> None:
    """Keeping off GPU hosts is a wish, not a need."""
    world = World()
    world.hosts("gpu1", slots=8, gpus=4)
    key = submit(world, Role(name="ps", count=2, least=2), Role(name="worker", count=4, least=4, gpus=1))
    assert {part.host for part in placed(world)[key]} == {"gpu1"}


def test_each_role_has_its_own_needs() -> None:
    """Memory, slots and select of a role count for that role alone."""
    world = World()
    world.hosts("small", slots=8, mem=4_000)
    world.hosts("large", slots=2, mem=64_000)
    launcher = Role(name="launcher", slots=1, resreq="select[maxmem<8000]")
    worker = Role(name="worker", count=2, least=2, resreq="rusage[mem=20000]")
    key = submit(world, launcher, worker)
    parts = placed(world)[key]
    assert by_role(parts) == {0: {"small": 1}, 1: {"large": 2}}
    assert dict(next(part for part in parts if part.host == "large").reserved) == {"mem": 40_000}


def test_tasks_that_keep_apart_have_a_host_each() -> None:
    """Anti-affinity of a role: no two of its tasks on one host; too few hosts, and the job waits."""
    world = World()
    world.hosts("h1", "h2", "h3", slots=4)
    apart = Role(name="ps", count=3, least=3, spread=True)
    key = submit(world, apart, Role(name="worker", count=3, least=3))
    assert by_role(placed(world)[key])[0] == {"h1": 1, "h2": 1, "h3": 1}
    late = submit(world, Role(name="ps", count=4, least=4, spread=True))
    assert not placed(world)
    assert late in world.pending()


def test_the_scarce_role_is_placed_first_where_packing_fails() -> None:
    world = World()
    world.hosts("a", slots=2, mem=64_000)
    world.hosts("b", slots=2, mem=1_000)
    light = Role(name="light", count=2, least=2)
    heavy = Role(name="heavy", count=2, least=2, resreq="rusage[mem=16000]")
    key = submit(world, light, heavy)
    assert by_role(placed(world)[key]) == {0: {"b": 2}, 1: {"a": 2}}


def test_a_role_starts_with_its_least_and_takes_more_where_there_is_room() -> None:
    """Min,max of a role."""
    world = World()
    world.hosts("h1", "h2", slots=3)
    key = submit(world, PS, Role(name="worker", count=10, least=2))
    assert sum(by_role(placed(world)[key])[1].values()) == 5


def test_all_roles_or_none() -> None:
    """What fits of a job is not started without the rest; the reason is that of the role that found no room."""
    world = World()
    world.hosts("h1", slots=8)
    key = submit(world, Role(name="ps"), Role(name="worker", count=2, least=2, gpus=1))
    assert not placed(world)
    assert world.why(key)[0][0] in (PendReason.GPU_NONE, PendReason.NO_SUITABLE_HOST, PendReason.NEVER_GPUS)
    world.hosts("h2", slots=2, gpus=2)
    assert set(placed(world)) == {key}


def test_a_job_with_roles_starts_when_its_slots_come_free() -> None:
    world = World()
    world.hosts("h1", slots=3)
    first, second = submit(world, PS, WORKER), submit(world, PS, WORKER)
    assert set(placed(world)) == {first}
    assert not placed(world)
    world.finish(first)
    assert set(placed(world)) == {second}


def test_limits_count_all_roles() -> None:
    """Slots of all roles count against a queue's limit."""
    world = World(Conf(queues=(QueueConfig(name="normal", qjob_limit=5),)))
    world.hosts("h1", slots=16)
    first, second = submit(world, PS, WORKER), submit(world, PS, WORKER)
    assert set(placed(world)) == {first}
    assert second in world.pending()


def test_a_job_with_roles_is_promised_a_start() -> None:
    """SLOT_RESERVE holds for it what comes free, role by role; small jobs that would delay it wait."""
    queues = (QueueConfig(name="big", priority=50, slot_reserve=100_000), QueueConfig(name="plain", priority=30))
    world = World(Conf(queues=queues))
    world.hosts("h1", slots=4)
    world.hosts("g1", slots=4, gpus=2)
    first = world.submit(queue="plain", slots=2, hosts=("h1",), limits=Limits(run=600))
    old = [first, world.submit(queue="plain", slots=2, hosts=("g1",), limits=Limits(run=1200))]
    assert set(placed(world)) == set(old)
    roles = (Role(name="ps", count=4, least=4), Role(name="worker", count=2, least=2, gpus=1, slots=2))
    key = submit(world, *roles, queue="big", limits=Limits(run=600))
    late = world.submit(queue="plain", slots=2)
    plan = world.schedule()
    assert plan.promises[key].start == world.now + 1200
    assert dict(plan.promises[key].hosts) == {"h1": 4, "g1": 4}
    assert not placed(world)
    world.now += 1200
    for one in old:
        world.finish(one)
    assert by_role(placed(world)[key]) == {0: {"h1": 4}, 1: {"g1": 2}}
    assert late in world.pending()


def test_others_are_preempted_for_all_roles_together() -> None:
    """Victims are taken only where that starts every role."""
    world = World(
        Conf(
            queues=(
                QueueConfig(name="high", priority=60, preemption=Preemption(preemptive=True)),
                QueueConfig(name="low", priority=20),
            )
        )
    )
    world.hosts("h1", "h2", slots=3)
    low = [world.submit(queue="low", slots=3, user=f"u{at}") for at in range(2)]
    assert set(placed(world)) == set(low)
    never = submit(world, PS, Role(name="worker", count=9, least=9), queue="high", user="x")
    assert not placed(world)
    world.apply(ev.JobHeld(at=world.now, key=never))
    key = submit(world, PS, WORKER, queue="high")
    plan = world.schedule()
    assert [(one.how, one.beneficiary) for one in plan.preemptions] == [("suspend", key)]
    world.accept(plan)
    check_invariants(world.cluster)
    run = world.cluster.jobs.rows[key].run
    assert run is not None
    assert [part.roles for part in run.parts] == [((0, 0, 1), (1, 0, 2))]
    assert len(run.tasks) == 3


ROLES = st.builds(
    lambda name, least, more, slots, gpus, mem, spread: Role(
        name=name,
        least=least,
        count=least + more,
        slots=slots,
        gpus=gpus,
        spread=spread,
        resreq=f"rusage[mem={mem}]" if mem else "",
    ),
    st.uuids().map(lambda u: f"r{u.hex}"),
    st.integers(1, 5),
    st.integers(0, 3),
    st.integers(1, 3),
    st.integers(0, 2),
    st.sampled_from((0, 1000, 5000)),
    st.booleans(),
)


@settings(max_examples=examples(150))
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 4), st.sampled_from((2_000, 16_000))), min_size=1, max_size=5),
    st.lists(st.lists(ROLES, min_size=1, max_size=4), min_size=1, max_size=5),
)
def test_no_plan_takes_more_than_there_is(hosts: list[tuple[int, int, int]], jobs: list[list[Role]]) -> None:
    """Random gangs: every plan is accepted whole, each role has between least and count, slots, memory, GPUs hold."""
    world = World()
    for number, (slots, gpus, mem) in enumerate(hosts):
        world.hosts(f"h{number}", slots=slots, gpus=gpus, mem=mem)
    keys = {submit(world, *roles): roles for roles in jobs}
    taken: Counter[str] = Counter()
    cards: Counter[str] = Counter()
    for key, parts in placed(world).items():
        where = by_role(parts)
        for number, role in enumerate(keys[key]):
            assert role.least <= sum(where[number].values()) <= role.count
            assert not role.spread or max(where[number].values()) == 1
        for part in parts:
            taken[part.host] += part.slots
            assert part.slots == sum(keys[key][role].slots * count for role, _, count in part.roles)
            assert len(part.gpus) == len(set(part.gpus)) == sum(keys[key][role].gpus * n for role, _, n in part.roles)
            cards.update(part.gpus)
    for number, (slots, _, mem) in enumerate(hosts):
        use = world.cluster.use.hosts.get(f"h{number}")
        assert taken[f"h{number}"] <= slots
        assert use is None or use.reserved.get("mem", 0) <= mem


@pytest.mark.parametrize("few", [1, 10_000])
def test_many_hosts_are_placed_as_few_are(few: int) -> None:
    """The masks of large clusters and the walk of small ones give the same."""
    world = World()
    world.memory.few = few
    world.hosts(*(f"h{number}" for number in range(12)), slots=4)
    world.hosts("g1", "g2", slots=4, gpus=2)
    key = submit(world, PS, Role(name="worker", count=4, least=4, gpus=1, slots=2))
    where = by_role(placed(world)[key])
    assert where[1] == {"g1": 2, "g2": 2}
    assert next(iter(where[0])).startswith("h")


def gpu_host(world: World, name: str, islands: str, slots: int = 16) -> None:
    """Its GPUs by NVLink island, as 0011; NUMA nodes of 4."""
    links = ["".join("N" if one == other else "S" for other in islands) for one in islands]
    gpus = tuple(
        Gpu(uuid=f"{name}.{at}", index=at, model="H200", memory=140_000, links=row, numa=at // 4) for at, row in enumerate(links)
    )
    facts = Facts(ncpus=slots, max_mem=640_000, gpus=gpus)
    world.apply(ev.HostJoined(at=world.now, host=name, facts=facts), ev.HostUp(at=world.now, host=name))
    world.load(name, mem=640_000.0)


def test_each_tasks_gpus_are_joined_where_glink_asks_for_it() -> None:
    """8 GPUs in two islands of 4 hold two tasks of 3 and two of 1, and not three of 2 and a task of 2 beside one of 3."""
    world = World()
    gpu_host(world, "h1", "00001111")
    large, small = Role(name="large", count=2, least=2, gpus=3), Role(name="small", count=2, least=2, gpus=1)
    key = submit(world, small, large, gpu="glink=yes")
    [part] = placed(world)[key]
    islands = [int(gpu[-1]) // 4 for gpu in part.gpus]
    assert part.roles == ((0, 0, 2), (1, 0, 2))
    assert len(set(islands[2:5])) == len(set(islands[5:8])) == 1
    world.finish(key)
    wide = Role(name="wide", count=3, least=3, gpus=2)
    never = submit(world, Role(name="large", gpus=3), wide, gpu="glink=yes")
    plain = submit(world, Role(name="large", gpus=3), Role(name="three", gpus=3), Role(name="two", gpus=2))
    assert set(placed(world)) == {plain}
    assert never in world.pending()


def test_with_gtile_the_tasks_of_a_host_are_on_so_many_gpus_of_each_node() -> None:
    world = World()
    gpu_host(world, "h1", "00001111")
    gpu_host(world, "h2", "00001111")
    key = submit(world, Role(name="worker", count=8, least=8, gpus=1), gpu="gtile=2:j_exclusive=yes")
    parts = placed(world)[key]
    assert [sorted(int(gpu[-1]) for gpu in part.gpus) for part in parts] == [[0, 1, 4, 5]] * 2


def test_the_master_takes_no_gpus_of_a_task_that_are_not_joined() -> None:
    world = World()
    gpu_host(world, "h1", "00001111")
    key = submit(world, Role(name="worker", count=2, least=2, gpus=2), gpu="glink=yes")
    plan = world.schedule()
    [placement] = plan.placements
    for gpus, taken in ((("h1.0", "h1.4", "h1.1", "h1.5"), False), (("h1.0", "h1.1", "h1.4", "h1.5"), True)):
        parts = (replace(placement.parts[0], gpus=gpus),)
        changed = replace(plan, placements=(replace(placement, parts=parts),))
        assert bool(world.accept(changed)) == taken
    assert key in world.running()


def test_roles_with_gpus_leave_whole_hosts_too() -> None:
    """Not the host with the fewest free slots, but the one that is broken already."""
    world = World()
    gpu_host(world, "h1", "0000", slots=4)
    gpu_host(world, "h2", "0000")
    first = submit(world, Role(name="worker", count=2, least=2, gpus=1), hosts=("h2",), gpu="j_exclusive=yes")
    assert {part.host for part in placed(world)[first]} == {"h2"}
    key = submit(world, Role(name="worker", count=2, least=2, gpus=1), gpu="j_exclusive=yes")
    assert {part.host for part in placed(world)[key]} == {"h2"}


def test_the_jobs_gpu_options_hold_for_its_roles() -> None:
    """Model and mode are said once for the job, numbers by each role."""
    world = World()
    world.hosts("h1", slots=4, gpus=2)
    fits = submit(world, Role(name="worker", count=2, least=2, gpus=1), gpu="num=1:gmodel=H200")
    never = submit(world, Role(name="worker", count=1, gpus=1), gpu="num=1:gmodel=K80")
    assert {part.host for part in placed(world)[fits]} == {"h1"}
    assert never in world.pending()
