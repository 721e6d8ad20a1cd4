"""Queues that own a part of the slots: weights, capabilities, guarantees, loans and reclaim."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.plan.plan import Plan
from lavad.core.rules import ownership
from lavad.core.rules.ownership import SLOTS, Claim, deal
from lavad.core.site.conf import Params
from lavad.core.site.pend_reason import PendReason
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.examples import examples
from tests.support.worlds.world import World


def world_of(*queues: QueueConfig, hosts: int = 1, slots: int = 12) -> World:
    world = World()
    world.configure(queues=queues, params=Params(parallel_sched_by_slot=True))
    world.hosts(*(f"h{at}" for at in range(1, hosts + 1)), slots=slots)
    return world


def step(world: World) -> Plan:
    plan = world.schedule()
    fresh = world.schedule(SchedulerCache())
    columns = world.schedule(SchedulerCache(few=1))
    for field in ("placements", "preemptions", "resumes", "promises"):
        assert getattr(plan, field) == getattr(fresh, field) == getattr(columns, field), field
    world.accept(plan)
    world.soft.why.update(plan.why)
    check_invariants(world.cluster)
    return plan


def used(world: World) -> Counter[str]:
    """Slots that the jobs of each queue have now."""
    found: Counter[str] = Counter()
    for key in world.cluster.started:
        job = world.cluster.jobs.rows[key]
        if not job.preempted_for and job.run is not None:
            found[world.cluster.specs.rows[job.spec].queue] += sum(part.slots for part in job.run.parts)
    return found


@pytest.mark.parametrize("queue", ["q1", "plain"])
def test_a_job_with_a_range_of_slots_gets_all_that_is_idle(queue: str) -> None:
    world = world_of(QueueConfig(name="q1", weight=1), QueueConfig(name="q2", weight=3), QueueConfig(name="plain"))
    world.submit(queue=queue, slots=1, max_slots=4)
    world.submit(queue="q2", slots=2, max_slots=3)
    step(world)
    assert used(world) == {queue: 4, "q2": 3}
    other = world.submit(queue="q2", slots=1, max_slots=12)
    step(world)
    assert used(world) == {queue: 4, "q2": 8}
    assert other in world.cluster.started


@pytest.mark.parametrize("guarantee", [0, 2])
def test_closed_hosts_are_the_reason_where_there_are_some(guarantee: int) -> None:
    world = world_of(QueueConfig(name="q1", weight=1, guarantee=guarantee), QueueConfig(name="plain"))
    world.apply(ev.HostSwitched(at=world.now, host="h1", closed=True, by="root"))
    key = world.submit(queue="plain")
    step(world)
    assert world.why(key) == [(PendReason.HOST_DISABLED, 1)]


def test_one_borrows_all_and_its_surplus_is_reclaimed_down_to_what_it_deserves() -> None:
    """Q1 borrows all, Q2 returns, Q1's surplus is reclaimed only down to deserved."""
    world = world_of(QueueConfig(name="q1", weight=2), QueueConfig(name="q2", weight=1))
    for _ in range(12):
        world.submit(queue="q1")
    step(world)
    assert used(world) == {"q1": 12}
    for _ in range(12):
        world.submit(queue="q2")
    step(world)
    assert used(world) == {"q1": 8, "q2": 4}
    for _ in range(3):
        assert not step(world).preemptions
    waiting = next(key for key, job in world.cluster.jobs.rows.items() if job.run is None)
    assert world.why(waiting) == [(PendReason.QUE_DESERVED, 0)]
    for key in [key for key in world.cluster.started if world.cluster.spec_of(key).queue == "q2"]:
        world.finish(key)
    step(world)
    assert used(world) == {"q1": 8, "q2": 4}, "q2 has more to run"


def test_the_one_job_of_a_queue_reclaims_its_slot() -> None:
    """The fast answer for one plain job on full hosts does not hold where a queue may reclaim."""
    world = world_of(QueueConfig(name="q1", weight=1), QueueConfig(name="q2", weight=1))
    for _ in range(12):
        world.submit(queue="q1")
    step(world)
    job = world.submit(queue="q2")
    step(world)
    assert job in world.cluster.started


def test_what_is_not_reclaimable_stays_and_gangs_go_whole() -> None:
    world = world_of(QueueConfig(name="q1", weight=1, reclaimable=False), QueueConfig(name="q2", weight=1))
    world.submit(queue="q1", slots=12)
    step(world)
    world.submit(queue="q2")
    assert not step(world).preemptions
    world = world_of(QueueConfig(name="q1", weight=1), QueueConfig(name="q2", weight=1))
    world.submit(queue="q1", slots=8)
    world.submit(queue="q1", slots=4)
    step(world)
    job = world.submit(queue="q2", slots=5)
    step(world)
    assert used(world) == {"q1": 12}, "8 would leave q1 below the 6 that it deserves, and 4 are too few"
    world.finish(2)
    step(world)
    assert job in world.cluster.started or used(world)["q1"] == 8


def test_a_capability_is_never_exceeded_and_a_guarantee_is_kept_free() -> None:
    world = world_of(QueueConfig(name="q1", weight=5), QueueConfig(name="q2", guarantee=4), QueueConfig(name="q3", capability=2))
    for queue in ("q1", "q3"):
        for _ in range(12):
            world.submit(queue=queue)
    step(world)
    assert used(world) == {"q1": 7, "q3": 1}, "four are kept for q2"
    for _ in range(5):
        world.submit(queue="q2")
    step(world)
    assert used(world)["q2"] >= 4


def test_what_those_in_need_cannot_use_is_lent() -> None:
    world = world_of(QueueConfig(name="q1", weight=1), QueueConfig(name="q2", weight=1), hosts=1)
    for _ in range(12):
        world.submit(queue="q1")
    for _ in range(12):
        world.submit(queue="q2", gpu="num=1")
    step(world)
    assert used(world) == {"q1": 12}


claims = st.lists(
    st.builds(
        Claim,
        queue=st.uuids().map(str),
        asked=st.integers(0, 40),
        weight=st.integers(1, 9),
        most=st.one_of(st.none(), st.integers(0, 30)),
        guarantee=st.integers(0, 6),
    ),
    min_size=1,
    max_size=6,
)


@given(st.integers(0, 60), claims)
def test_what_is_dealt_out(total: int, asked: list[Claim]) -> None:
    deserved = deal(total, asked)
    guaranteed = sum(claim.guarantee for claim in asked)
    for claim in asked:
        most = claim.asked if claim.most is None else min(claim.asked, claim.most)
        assert min(claim.guarantee, most) <= deserved[claim.queue] <= most
    assert sum(deserved.values()) <= max(total, guaranteed)
    if guaranteed <= total and all(claim.guarantee <= deserved[claim.queue] for claim in asked):
        wanted = sum(claim.asked if claim.most is None else min(claim.asked, claim.most) for claim in asked)
        assert sum(deserved.values()) == min(total, wanted), "nothing is left over while somebody asks"


@pytest.mark.parametrize(
    ("total", "asked", "wanted"),
    [
        (8, [Claim("a", 8), Claim("b", 8, guarantee=2)], [4, 4]),
        (8, [Claim("a", 8), Claim("b", 8, guarantee=6)], [2, 6]),
        (8, [Claim("a", 8, 3), Claim("b", 8, guarantee=2), Claim("c", 3)], [5, 2, 1]),
        (10, [Claim("a", 9, 2), Claim("b", 9, guarantee=4), Claim("c", 1, 2)], [5, 4, 1]),
        (12, [Claim("a", 12), Claim("b", 1, guarantee=4), Claim("c", 12)], [4, 1, 4]),
        (4, [Claim("a", 9), Claim("b", 9, guarantee=3), Claim("c", 9, guarantee=3)], [0, 3, 3]),
    ],
)
def test_a_guarantee_is_the_least_that_a_queue_deserves(total: int, asked: list[Claim], wanted: list[int]) -> None:
    """Not a part beside that by its weight: as in Volcano it is the larger of the two."""
    deserved = deal(total, asked)
    assert [deserved[claim.queue] for claim in asked] == wanted


@given(st.integers(0, 60), claims)
def test_guarantees_below_the_parts_by_weight_change_nothing(total: int, asked: list[Claim]) -> None:
    bare = [replace(claim, guarantee=0) for claim in asked]
    by_weight = deal(total, bare)
    small = [replace(claim, guarantee=min(claim.guarantee, by_weight[claim.queue])) for claim in asked]
    assert deal(total, small) == by_weight


queues = st.lists(
    st.fixed_dictionaries(
        {
            "weight": st.integers(1, 4),
            "guarantee": st.sampled_from([0, 0, 2, 4]),
            "reclaimable": st.booleans(),
            "capability": st.sampled_from([None, None, 6]),
            "priority": st.integers(1, 3),
        }
    ),
    min_size=2,
    max_size=3,
)
actions = st.one_of(
    st.tuples(st.just("submit"), st.integers(0, 2), st.sampled_from([1, 1, 1, 2, 4, 7])),
    st.tuples(st.just("submit"), st.integers(0, 2), st.sampled_from([1, 2])),
    st.tuples(st.just("finish"), st.integers(0, 20), st.just(0)),
    st.tuples(st.just("step"), st.just(0), st.just(0)),
)


def queue(**terms: Any) -> dict[str, Any]:
    return {"weight": 1, "guarantee": 2, "reclaimable": True, "capability": 6, "priority": 1, **terms}


def submits(*jobs: tuple[int, int]) -> list[tuple[str, int, int]]:
    return [("submit", number, slots) for number, slots in jobs]


@settings(max_examples=examples(100), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(queues, st.lists(actions, max_size=30))
@example(  # a job that resumes and one that starts on lent slots in the same cycle
    [queue(weight=2, priority=2), queue(weight=2, reclaimable=False), queue(priority=3)],
    [
        *submits((0, 2)),
        ("step", 0, 0),
        *submits((1, 1), (2, 1), (1, 2)),
        ("step", 0, 0),
        ("finish", 13, 0),
        ("finish", 0, 0),
        *submits((0, 2), (1, 1)),
        ("step", 0, 0),
        *submits((0, 1)),
        ("step", 0, 0),
        *submits((0, 2), (2, 2)),
        ("finish", 0, 0),
        *submits((0, 1), (0, 2), (1, 2)),
        ("step", 0, 0),
        *submits((1, 1)),
        ("finish", 13, 0),
        ("finish", 10, 0),
    ],
)
def test_guarantees_hold_and_reclaim_stops_at_what_is_deserved(confs: list[dict[str, Any]], story: list[Any]) -> None:
    names = [f"q{at}" for at in range(len(confs))]
    world = world_of(*(QueueConfig(name=name, **conf) for name, conf in zip(names, confs, strict=True)))
    by_name = world.cluster.queue_conf
    for kind, number, slots in story:
        if kind == "submit":
            world.submit(queue=names[number % len(names)], slots=slots)
        elif kind == "finish" and world.cluster.started:
            world.finish(list(world.cluster.started)[number % len(world.cluster.started)])
        world.now += 400
        before = used(world)
        deserved = deserves(world)
        plan = step(world)
        after = used(world)
        lost = Counter[str]()
        for one in plan.preemptions:
            job = world.cluster.jobs.rows[one.key]
            assert job.run is not None
            lost[world.cluster.spec_of(one.key).queue] += sum(part.slots for part in job.run.parts)
        for name, gone in lost.items():
            assert by_name[name].reclaimable
            # what it got in the same cycle counts: one job may have taken it beyond what it deserves, and another gone for that
            guaranteed = any(before[other] < by_name[other].guarantee for other in names if other != name)
            assert after[name] >= min(before[name], deserved[name]) or guaranteed, (
                f"it lost {gone}, and has less than it deserves"
            )
        for name, conf in by_name.items():
            assert conf.capability is None or after[name] <= conf.capability
            if after[name] > before[name] and after[name] > max(deserved[name], conf.guarantee):
                # one job may take a queue beyond what it deserves before others have taken what they deserve
                has = before if before[name] < deserved[name] else after
                others = sum(max(has[other], by_name[other].guarantee) for other in names if other != name)
                assert after[name] + others <= 12 or any(after[o] > deserved[o] for o in names if o != name)


def deserves(world: World) -> dict[str, int]:
    """As the scheduler sees it before a cycle."""
    cluster = world.cluster
    return ownership.deal(12, ownership.claims(cluster, SLOTS, ownership.waiting(cluster, SLOTS, 12)))
