"""Jobs with roles and cu[]: all tasks within the fewest racks that hold them; compared with brute force on small clusters."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lavad.core.job.job import Placed
from lavad.core.job.spec import Role
from lavad.core.site.conf import Params, UnitConf
from tests.support.examples import examples
from tests.support.worlds.world import World

RACKS = ("r1", "r2", "r3")


def world(*racks: tuple[int, ...], gpus: int = 0) -> World:
    """Racks of hosts with these slots: r1h1, r1h2, r2h1 …"""
    made = World()
    hosts = {name: tuple(f"{name}h{at}" for at in range(1, len(slots) + 1)) for name, slots in zip(RACKS, racks, strict=False)}
    made.configure(
        host_groups=tuple(hosts.items()),
        params=Params(compute_unit_types=("rack",), units=tuple(UnitConf(name, "rack") for name in hosts)),
    )
    for name, slots in zip(RACKS, racks, strict=False):
        for host, count in zip(hosts[name], slots, strict=True):
            made.hosts(host, slots=count, gpus=gpus)
    return made


def submit(made: World, *roles: Role, cu: str = "type=rack", **fields: Any) -> int:
    return made.submit(
        roles=roles,
        slots=sum(role.least * role.slots for role in roles),
        max_slots=sum(role.count * role.slots for role in roles),
        launch="roles",
        resreq=f"cu[{cu}]",
        **fields,
    )


def parts_of(made: World, job: int) -> tuple[Placed, ...]:
    plan = made.schedule()
    assert len(made.accept(plan)) == len(plan.placements)
    made.soft.why.update(plan.why)
    return next((one.parts for one in plan.placements if one.key == job), ())


def racks_of(parts: tuple[Placed, ...]) -> list[str]:
    return sorted({part.host[:2] for part in parts})


def workers(count: int, slots: int = 1, least: int = 0) -> Role:
    return Role(name="worker", count=count, least=least or count, slots=slots)


PS = Role(name="ps", slots=2)


@pytest.mark.parametrize(
    ("cu", "roles", "racks"),
    [
        ("type=rack", (PS, workers(4)), ["r1"]),
        ("pref=maxavail", (PS, workers(4)), ["r2"]),
        ("pref=bestfit", (PS, workers(3)), ["r1"]),
        ("usablecuslots=7", (PS, workers(3)), ["r1"]),  # the job is smaller than that
        ("usablecuslots=7", (PS, workers(10)), []),
        ("type=rack", (PS, workers(6)), ["r2"]),
        ("type=rack", (PS, workers(12)), ["r1", "r2"]),
        ("maxcus=1", (PS, workers(7)), []),
        ("type=rack", (workers(3, slots=4),), ["r2", "r3"]),
    ],
)
def test_the_fewest_racks_then_the_preferred(cu: str, roles: tuple[Role, ...], racks: list[str]) -> None:
    """r1 has 6 slots, r2 8, r3 6 on hosts of 4 and 2."""
    made = world((3, 3), (4, 4), (4, 2))
    job = submit(made, *roles, cu=cu)
    parts = parts_of(made, job)
    assert racks_of(parts) == racks
    assert sum(part.slots for part in parts) == (sum(role.count * role.slots for role in roles) if racks else 0)


def test_a_rack_for_all_tasks_stands_before_one_for_the_least() -> None:
    """And more than the least is not taken from a further rack."""
    made = world((4,), (3, 3), (4, 4))
    assert sum(part.slots for part in parts_of(made, submit(made, workers(6, least=2), cu="maxcus=1"))) == 6
    assert racks_of(parts_of(made, submit(made, workers(9, least=5), cu="maxcus=1"))) == ["r3"]
    few = world((4,), (3,))
    parts = parts_of(few, submit(few, workers(9, least=2), cu="maxcus=1"))
    assert (racks_of(parts), sum(part.slots for part in parts)) == (["r1"], 4)


def test_a_host_in_no_rack_is_not_used() -> None:
    made = world((4,))
    made.hosts("alone", slots=8)
    assert racks_of(parts_of(made, submit(made, workers(5)))) == []


def test_gpus_of_a_rack_are_counted_with_its_slots() -> None:
    """The first rack has slots enough, and too few GPUs."""
    made = world((8,), (8, 8), gpus=2)
    role = Role(name="worker", count=4, least=4, gpus=1)
    assert racks_of(parts_of(made, submit(made, role, cu="maxcus=1", gpu="num=1"))) == ["r2"]


def test_racks_for_itself_have_no_other_job() -> None:
    """cu[excl]: not the rack where something runs, and nothing starts beside it."""
    made = world((4, 4), (4, 4))
    made.submit(hosts=("r1h1",))
    parts_of(made, 0)
    job = submit(made, workers(3), cu="excl", exclusive=True)
    assert racks_of(parts_of(made, job)) == ["r2"]
    beside = made.submit(slots=1, hosts=("r2h2",))
    assert parts_of(made, beside) == ()


def test_a_job_that_no_rack_holds_says_what_hosts_lack() -> None:
    made = world((2, 2), (2, 2))
    job = submit(made, workers(5), cu="maxcus=1")
    assert parts_of(made, job) == ()
    assert made.soft.why[made.cluster.jobs.rows[job].spec].reasons


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 2)), min_size=1, max_size=2),
    st.integers(1, 3),
)
def test_as_few_racks_as_brute_force_finds(racks: list[list[int]], asked: list[tuple[int, int]], most: int) -> None:
    """Where tasks of one slot fill whatever is left, a set of racks holds a job when its hosts can; the fewest are taken."""
    made = world(*(tuple(rack) for rack in racks))
    roles = [Role(name=f"role{at}", count=count, least=count, slots=slots) for at, (count, slots) in enumerate(asked)]
    parts = parts_of(made, submit(made, *roles, cu=f"maxcus={most}"))
    twos = sum(role.count for role in roles if role.slots == 2)
    ones = sum(role.count for role in roles if role.slots == 1)

    def holds(chosen: tuple[list[int], ...]) -> bool:
        hosts = [slots for rack in chosen for slots in rack]
        return sum(slots // 2 for slots in hosts) >= twos and sum(hosts) >= 2 * twos + ones

    sizes = (size for size in range(1, min(most, len(racks)) + 1) if any(holds(some) for some in combinations(racks, size)))
    assert len(racks_of(parts)) == next(sizes, 0)
