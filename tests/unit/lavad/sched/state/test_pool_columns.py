"""Columns of a guaranteed pool say of all hosts what the pool says of each, and never too little of all together."""

from __future__ import annotations

from math import inf
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from config.model.guarantees import Amount, Pool, ServiceClass
from lavad.core.rules.guarantees.pools import PoolUse
from lavad.core.rules.ledger import UNLIMITED
from lavad.sched.needs.arrays import np
from lavad.sched.needs.rows import Row
from lavad.sched.state.pool_columns import PoolColumns
from lavad.sched.state.pool_limits import PoolRoom
from tests.support.examples import examples
from tests.support.worlds.pools import use_of
from tests.support.worlds.world import World

NAMES = ("h1", "h2", "h3", "h4")
MEMBERS = NAMES[:3]
CLASSES = ("", "gold", "silver")
POOLS = st.one_of(
    st.builds(lambda cap: {"type": "slots", "slots_per_host": cap}, st.sampled_from((None, 2, 3))),
    st.just({"type": "hosts"}),
    st.builds(
        lambda slots, mem: {"type": "package", "slots": slots, "mem": mem},
        st.sampled_from((0, 1, 2)),
        st.sampled_from((1000.0, 3000.0)),
    ),
)
JOBS = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(CLASSES), st.sampled_from(("", "rusage[mem=900]"))), max_size=6)


def world_of(pool: dict[str, Any], shares: tuple[int, int], jobs: list[tuple[int, str, str]]) -> World:
    world = World()
    distribution = (("gold", Amount(shares[0])), ("silver", Amount(shares[1])))
    pools = (Pool(name="pool", distribution=distribution, hosts=MEMBERS, **pool),)
    world.configure(service_classes=tuple(map(ServiceClass, CLASSES[1:])), pools=pools)
    world.hosts(*NAMES, slots=5, mem=8000)
    for name in NAMES:
        world.load(name, mem=8000.0)
    for slots, service, resreq in jobs:
        world.submit(slots=slots, service_class=service, resreq=resreq)
    world.step()
    return world


def columns_of(use: PoolUse) -> PoolColumns:
    return PoolColumns(use, {name: Row(at, name) for at, name in enumerate(NAMES)})


def check_each(use: PoolUse, columns: PoolColumns) -> None:
    for service in CLASSES:
        for spare in {use.spare(service), 0, 1, use.idle}:
            slots, mem = columns.slots_left(service, spare), columns.mem_left(spare)
            for at, name in enumerate(NAMES):
                assert slots[at] == (use.slots_left(name, service, spare) if name in MEMBERS else UNLIMITED)
                left = use.mem_left(name, spare) if name in MEMBERS else None
                assert (inf if mem is None else mem[at]) == (inf if left is None else left)


@settings(max_examples=examples(60))
@given(POOLS, st.tuples(st.integers(0, 6), st.integers(0, 4)), JOBS, st.sampled_from(MEMBERS), st.integers(1, 2))
def test_each_host(pool: dict[str, Any], shares: tuple[int, int], jobs: list[Any], host: str, taken: int) -> None:
    use = use_of(world_of(pool, shares, jobs))
    columns = columns_of(use)
    check_each(use, columns)
    use.take(host, ("silver", taken, 900.0))
    use.ledger.host(host).taken += taken
    use.renew(host)
    check_each(use, columns)


@settings(max_examples=examples(60))
@given(POOLS, st.tuples(st.integers(0, 6), st.integers(0, 4)), JOBS, st.permutations(NAMES), st.lists(st.integers(0, 5)))
def test_no_job_gets_more_than_all_hosts_together_may_give(
    pool: dict[str, Any], shares: tuple[int, int], jobs: list[Any], order: list[str], wanted: list[int]
) -> None:
    use = use_of(world_of(pool, shares, jobs))
    columns = columns_of(use)
    for service in CLASSES:
        spare = use.spare(service)
        offered = np.array([use.ledger.host(name).free for name in NAMES])
        room, got = PoolRoom(use, service, spare), 0
        for name, most in zip(order, [*wanted, 5, 5, 5, 5], strict=False):
            if room.on_host(name):
                count = min(most, use.ledger.host(name).free, room.count(name, {}, {}))
                room.take(name, count, {}, {})
                got += count
        assert got <= columns.most_slots(offered, spare) <= offered[: len(MEMBERS)].sum()
