"""Guaranteed resource pools in the scheduler: what is kept for service classes, what is lent, whom a guarantee guards."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from config.model.cluster import HostConfig
from config.model.guarantees import Amount, Loan, Pool, ServiceClass
from config.model.queue import QueueConfig
from config.model.values import Limits, Preemption
from lavad.core import events as ev
from lavad.core.job.spec import Role
from lavad.core.site.conf import Params
from lavad.core.site.pend_reason import POOL, PendReason
from lavad.core.site.service_classes import ServiceClasses
from tests.support.examples import examples
from tests.support.worlds.pools import use_of
from tests.support.worlds.preempting import step
from tests.support.worlds.world import World

GOLD = ServiceClass(name="gold", queues=("gold",), auto_attach=True)
SILVER = ServiceClass(name="silver")
QUEUES = (QueueConfig(name="gold", priority=30), QueueConfig(name="normal", priority=30), QueueConfig(name="short", priority=30))


def slots(amount: int, *others: tuple[str, int], **about: Any) -> Pool:
    shares = (("gold", Amount(amount)), *((name, Amount(number)) for name, number in others))
    return Pool(name="pool", type="slots", distribution=shares, **about)


def world_of(*pools: Pool, hosts: int = 2, per_host: int = 4, queues: tuple[QueueConfig, ...] = QUEUES, **about: Any) -> World:
    world = World()
    params = Params(parallel_sched_by_slot=True)
    world.configure(queues=queues, params=params, service_classes=(GOLD, SILVER), pools=pools)
    world.hosts(*(f"h{at}" for at in range(1, hosts + 1)), slots=per_host, **about)
    return world


def many(world: World, count: int, **fields: Any) -> list[int]:
    return [world.submit(**fields) for _ in range(count)]


def running(world: World, keys: list[int]) -> int:
    return sum(key in world.cluster.started for key in keys)


def test_others_leave_free_what_a_class_does_not_use() -> None:
    world = world_of(slots(3))
    others = many(world, 8, queue="normal")
    step(world)
    assert running(world, others) == 5
    waiting = next(key for key in others if key not in world.cluster.started)
    assert world.why(waiting) == [(PendReason.HOST_JOB_LIMIT, 1), (POOL, 1)]
    gold = many(world, 4, queue="gold")
    step(world)
    assert running(world, gold) == 3, "it has its guarantee, and there is no more"
    world.finish(gold[0])
    step(world)
    assert running(world, gold) == 3
    assert running(world, others) == 5
    world.finish(others[0])
    step(world)
    assert running(world, others) == 5, "what is beyond the guarantee is anybody's, in the order of the line"


def test_an_array_leaves_it_too_and_takes_the_rest() -> None:
    world = world_of(slots(3), hosts=3)
    array = world.submit("a[1-20]", array="1-20", queue="normal")
    step(world)
    assert len(world.cluster.started) == 9
    assert world.why(array) == [(PendReason.HOST_JOB_LIMIT, 2), (POOL, 1)]


def test_a_parallel_job_over_several_hosts_leaves_it_free() -> None:
    world = world_of(slots(3))
    [large] = many(world, 1, queue="normal", slots=6)
    [small] = many(world, 1, queue="normal", slots=5)
    step(world)
    assert running(world, [large]) == 0
    assert running(world, [small]) == 1
    [gold] = many(world, 1, queue="gold", slots=3)
    step(world)
    assert running(world, [gold]) == 1


def test_what_hosts_outside_the_pool_have_is_everybodys() -> None:
    world = world_of(slots(4, hosts=("h1",)))
    others = many(world, 8, queue="normal")
    step(world)
    assert {part for key in others if key in world.cluster.started for part in world.running()[key]} == {"h2"}
    assert running(world, others) == 4


def test_a_class_beyond_its_guarantee_is_as_any_other() -> None:
    world = world_of(slots(2, ("silver", 3)))
    gold = many(world, 8, queue="gold")
    step(world)
    assert running(world, gold) == 5
    silver = many(world, 4, queue="normal", service_class="silver")
    step(world)
    assert running(world, silver) == 3


def test_percentages_are_of_the_hosts_that_are_there() -> None:
    pool = Pool(name="pool", type="slots", distribution=(("gold", Amount(50, True)),))
    world = world_of(pool)
    others = many(world, 8, queue="normal")
    step(world)
    assert running(world, others) == 4
    world.host_switch("h2", closed=True)
    assert use_of(world).guaranteed == {"gold": 2}


def test_whole_hosts_are_kept_and_shared_ones_fill_up() -> None:
    pool = Pool(name="pool", type="hosts", distribution=(("gold", Amount(1)),))
    world = world_of(pool, hosts=3)
    others = many(world, 12, queue="normal")
    step(world)
    assert running(world, others) == 8
    gold = many(world, 1, queue="gold")
    step(world)
    assert running(world, gold) == 1
    assert step(world).placements == ()
    assert use_of(world).used["gold"] == 1, "the rest of its host is its own"
    more = many(world, 4, queue="gold")
    step(world)
    assert running(world, more) == 3


def test_a_parallel_job_opens_no_more_hosts_than_are_left() -> None:
    pool = Pool(name="pool", type="hosts", distribution=(("gold", Amount(1)),))
    world = world_of(pool, hosts=3)
    [three, two] = [*many(world, 1, queue="normal", slots=9), *many(world, 1, queue="normal", slots=8)]
    step(world)
    assert running(world, [three]) == 0
    assert running(world, [two]) == 1


def test_packages_keep_slots_and_memory_together() -> None:
    pool = Pool(name="pool", type="package", slots=1, mem=1000.0, distribution=(("gold", Amount(2)),))
    world = world_of(pool, hosts=1, per_host=8, max_mem=4000)
    fat = many(world, 3, queue="normal", resreq="rusage[mem=1000]")
    step(world)
    assert running(world, fat) == 2, "2 of 4 packages are kept"
    thin = many(world, 8, queue="normal")
    step(world)
    assert running(world, thin) == 4, "slots without memory make no package"
    gold = many(world, 2, queue="gold", resreq="rusage[mem=1000]")
    step(world)
    assert running(world, gold) == 2


def test_a_package_of_memory_alone_leaves_slots_to_all() -> None:
    pool = Pool(name="pool", type="package", slots=0, mem=1000.0, distribution=(("gold", Amount(4)),))
    world = world_of(pool, hosts=1, per_host=8, max_mem=4000)
    assert running(world, many(world, 1, queue="normal")) == 0
    fat, thin = many(world, 1, queue="normal", resreq="rusage[mem=100]"), many(world, 8, queue="short")
    step(world)
    assert running(world, fat) == 0
    assert running(world, thin) == 7


def test_slots_per_host_bounds_the_jobs_of_the_class() -> None:
    world = world_of(slots(4, slots_per_host=1), hosts=3)
    assert use_of(world).total == 3
    gold = many(world, 8, queue="gold")
    step(world)
    assert [sum(spread.values()) for spread in world.running().values()] == [1, 1, 1]
    others = many(world, 12, queue="normal")
    step(world)
    assert running(world, others) == 9
    assert running(world, gold) == 3


def test_what_is_idle_is_lent_to_short_jobs_after_all_others_had_their_turn() -> None:
    loan = Loan(queues=("short",), duration=600)
    world = world_of(slots(4, loan=loan), hosts=1)
    long, unknown = many(world, 1, queue="short", limits=Limits(run=601)), many(world, 1, queue="short")
    fits = many(world, 2, queue="short", limits=Limits(run=600))
    normal = many(world, 1, queue="normal", limits=Limits(run=60))
    gold = many(world, 3, queue="gold")
    step(world)
    assert running(world, gold) == 3, "the class is last in line, and first on what is its own"
    assert running(world, fits) == 1
    assert running(world, [*long, *unknown, *normal]) == 0


def test_what_is_retained_is_not_lent() -> None:
    world = world_of(slots(4, loan=Loan(queues=("all",), retain=Amount(25, True))), hosts=1)
    others = many(world, 4, queue="normal")
    step(world)
    assert running(world, others) == 3
    gold = many(world, 2, queue="gold")
    step(world)
    assert running(world, gold) == 1, "no job is taken its slot for it"


def test_nothing_is_lent_while_the_class_waits() -> None:
    loan = Loan(queues=("all",), close_on_demand=True)
    world = world_of(slots(4, loan=loan), hosts=1)
    [first] = many(world, 1, queue="normal")
    step(world)
    assert running(world, [first]) == 1
    [gold] = many(world, 1, queue="gold", slots=4)
    others = many(world, 2, queue="normal")
    step(world)
    assert running(world, [gold, *others]) == 0
    world.finish(first)
    step(world)
    assert running(world, [gold]) == 1
    world.finish(gold)
    step(world)
    assert running(world, others) == 2


def test_the_loan_is_open_again_when_the_waiting_job_is_gone() -> None:
    loan = Loan(queues=("all",), close_on_demand=True)
    world = world_of(slots(4, loan=loan), hosts=1)
    many(world, 1, queue="normal")
    step(world)
    [gold] = many(world, 1, queue="gold", slots=4)
    [other] = many(world, 1, queue="normal")
    step(world)
    assert running(world, [other]) == 0
    world.apply(ev.JobHeld(at=world.now, key=gold, by="alice"))
    step(world)
    assert running(world, [other]) == 1


def test_a_class_that_asks_for_what_no_host_has_keeps_nobody_waiting() -> None:
    world = world_of(slots(4, loan=Loan(queues=("all",), close_on_demand=True)), hosts=1)
    many(world, 1, queue="gold", resreq="select[ncpus>100]")
    others = many(world, 2, queue="normal")
    world.step()
    world.step()
    assert running(world, others) == 2


def test_a_class_whose_queue_is_closed_keeps_nobody_waiting() -> None:
    world = world_of(slots(4, loan=Loan(queues=("all",), close_on_demand=True)), hosts=1)
    world.queue_switch("gold", active=False)
    many(world, 1, queue="gold")
    others = many(world, 2, queue="normal")
    world.step()
    world.step()
    assert running(world, others) == 2


def test_a_queue_that_ignores_guarantees_takes_all() -> None:
    queues = (*QUEUES, QueueConfig(name="boss", priority=60, sla_guarantees_ignore=True))
    world = world_of(slots(4), hosts=1, queues=queues)
    boss = many(world, 4, queue="boss")
    step(world)
    assert running(world, boss) == 4


@pytest.mark.parametrize("ignores", [False, True])
def test_jobs_of_a_class_are_preempted_only_by_queues_that_ignore_guarantees(ignores: bool) -> None:
    high = QueueConfig(name="high", priority=60, preemption=Preemption(preemptive=True), sla_guarantees_ignore=ignores)
    world = world_of(slots(2), hosts=1, queues=(*QUEUES, high))
    gold = many(world, 4, queue="gold")
    step(world)
    assert running(world, gold) == 4
    [boss] = many(world, 1, queue="high")
    plan = step(world)
    assert bool(plan.preemptions) is ignores
    assert running(world, [boss]) == ignores


def test_a_class_preempts_for_its_guarantee() -> None:
    queues = (QueueConfig(name="gold", priority=60, preemption=Preemption(preemptive=True)), *QUEUES[1:])
    world = world_of(slots(2, loan=Loan(queues=("all",))), hosts=1, queues=queues)
    others = many(world, 4, queue="normal")
    step(world)
    assert running(world, others) == 4
    gold = many(world, 2, queue="gold")
    step(world)
    assert sum(key in world.running() for key in gold) == 2


def test_hosts_of_an_active_reservation_and_closed_ones_are_in_no_pool() -> None:
    world = world_of(slots(8))
    assert use_of(world).total == 8
    world.host_switch("h1", closed=True)
    assert use_of(world).total == 4
    assert set(use_of(world).free) == {"h2"}


def test_the_hosts_of_a_pool_are_those_that_meet_its_requirement() -> None:
    world = world_of(slots(8, res_select="mem>1000"), hosts=1, max_mem=500)
    world.hosts("big", slots=4, max_mem=2000)
    world.load("big", mem=10.0)
    assert set(use_of(world).free) == {"big"}, "what is in use now does not count"
    assert not use_of(world_of(slots(8, res_select="maxmem>("))).free


def test_a_job_with_roles_keeps_out_of_what_is_guaranteed() -> None:
    world = world_of(slots(4))
    roles = (Role(name="launcher"), Role(name="worker", count=4, least=4))
    [job] = many(world, 1, queue="normal", slots=5, max_slots=5, roles=roles)
    step(world)
    assert running(world, [job]) == 0
    [gold] = many(world, 1, queue="gold", slots=5, max_slots=5, roles=roles)
    step(world)
    assert running(world, [gold]) == 1


def test_a_host_that_takes_any_number_of_jobs_counts_with_its_cpus_and_keeps_none() -> None:
    world = world_of(slots(3))
    world.host_conf(HostConfig(name="h1", slots=-1), HostConfig(name="h2"))
    assert use_of(world).total == 8
    others = many(world, 20, queue="normal")
    step(world)
    assert running(world, others) == 20


def test_a_limit_of_lsb_resources_still_holds() -> None:
    queues = (QueueConfig(name="gold", priority=30, hjob_limit=1), *QUEUES[1:])
    world = world_of(slots(4), queues=queues)
    gold = many(world, 4, queue="gold")
    step(world)
    assert running(world, gold) == 2
    waiting = next(key for key in gold if key not in world.cluster.started)
    assert world.why(waiting) == [(PendReason.QUE_HOST_JLIMIT, 2)]


JOBS = st.tuples(
    st.sampled_from([("gold", ""), ("normal", "silver"), ("normal", ""), ("short", "")]),
    st.integers(1, 4),  # what never fits would be known by the cycles before alone
    st.sampled_from(["", "rusage[mem=400]", "span[hosts=1]", "span[ptile=2]"]),
    st.sampled_from([None, 300, 900]),
)
POOLS = st.builds(
    lambda kind, gold, silver, loan, cap: Pool(
        name="pool",
        type=kind,
        slots=1 if kind != "package" else 2,
        mem=500.0 if kind == "package" else 0.0,
        distribution=(("gold", Amount(gold)), ("silver", Amount(silver, True))),
        loan=loan,
        slots_per_host=cap if kind == "slots" else None,
    ),
    st.sampled_from(["slots", "hosts", "package"]),
    st.integers(0, 4),
    st.integers(0, 60),
    st.sampled_from(
        [None, Loan(("short",), 600), Loan(("all",), None, Amount(50, True)), Loan(("short",), None, Amount(0), True)]
    ),
    st.sampled_from([None, 2]),
)


SHARES = (("gold", Amount(4)), ("silver", Amount(34, True)))
TIGHT = Pool(name="pool", type="slots", distribution=SHARES, loan=Loan(("short",), None, Amount(0), True), slots_per_host=2)


@example(TIGHT, [(("gold", ""), 1, "", None), (("gold", ""), 4, "", None), (("short", ""), 3, "span[hosts=1]", None)])
@settings(max_examples=examples(80), deadline=None)
@given(POOLS, st.lists(st.one_of(JOBS, st.integers(0, 9)), min_size=1, max_size=16))
def test_no_job_takes_what_is_guaranteed_to_others_and_nobody_waits_within_a_guarantee(pool: Pool, doings: list[Any]) -> None:
    """Without a memory of the cycles before, and by columns, the same is decided (``step``)."""
    world = world_of(pool, hosts=3, max_mem=2000)
    classes = ServiceClasses(world.cluster.conf)
    for doing in doings:
        if isinstance(doing, int):
            started = sorted(world.cluster.started)
            if started:
                world.finish(started[doing % len(started)])
        else:
            (queue, service), count, resreq, limit = doing
            world.submit(queue=queue, service_class=service, slots=count, resreq=resreq, limits=Limits(run=limit))
        before = use_of(world)
        kept = {name: before.unused(name) for name in before.guaranteed}
        plan = step(world)
        after = use_of(world)
        specs = [world.cluster.specs.rows[placement.spec] for placement in plan.placements]
        borrowed = any(pool.loan is not None and ("all" in pool.loan.queues or spec.queue in pool.loan.queues) for spec in specs)
        took = {name for spec in specs if (name := classes.of(spec))}
        if before.idle >= sum(kept.values()) and specs and not borrowed:
            left = sum(after.unused(name) for name in after.guaranteed)
            assert after.idle >= left or took, (before.idle, kept, after.idle, left)
        for key, job in world.cluster.jobs.rows.items():
            spec = world.cluster.specs.rows[job.spec]
            name = classes.of(spec)
            if key in world.cluster.started or not name or spec.resreq or spec.slots > 1:
                continue
            assert not (after.idle and after.unused(name)), "one slot within the guarantee, and so much is free"
