"""Slots held for big jobs, promised starts and backfill beside them."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from config.model.guarantees import Amount, Pool, ServiceClass
from config.model.queue import QueueConfig
from config.model.values import Backfill, Limits
from lavad.core.cluster.invariants import check_invariants
from lavad.core.job.spec import Role
from lavad.core.plan.plan import Plan
from lavad.core.site.conf import Params
from lavad.sched.cycle import still_blocked
from lavad.sched.cycle.place_class import ClassPlacer
from lavad.sched.needs.needs import Need
from lavad.sched.policy import slot_reservations
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.examples import examples
from tests.support.worlds.world import World

BIG = QueueConfig(name="big", priority=50, slot_reserve=100_000)
FILL = QueueConfig(name="fill", priority=40, backfill=True)
PLAIN = QueueConfig(name="plain", priority=30)
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""Shrinking such a story takes minutes."""


def world_of(*queues: QueueConfig, hosts: int = 1, slots: int = 4, backfill: str = "easy", **about: Any) -> World:
    world = World()
    world.configure(
        queues=queues or (BIG, FILL, PLAIN), params=Params(parallel_sched_by_slot=True, lava_backfill=Backfill(backfill))
    )
    world.hosts(*(f"h{at}" for at in range(1, hosts + 1)), slots=slots, **about)
    return world


def step(world: World) -> Plan:
    plan = world.schedule()
    fresh = world.schedule(SchedulerCache())
    columns = world.schedule(SchedulerCache(few=1))
    for field in ("placements", "preemptions", "resumes", "promises", "wake_at"):
        assert getattr(plan, field) == getattr(fresh, field) == getattr(columns, field), field
    world.step()
    check_invariants(world.cluster)
    return plan


def submit(world: World, queue: str, slots: int = 1, minutes: int = 0, **fields: object) -> int:
    limits = Limits(run=minutes * 60 or None)
    return world.submit(queue=queue, slots=slots, limits=limits, **fields)  # type: ignore[arg-type]


def runs(world: World, key: int) -> bool:
    return key in world.cluster.started


def test_backfill_ends_before_the_promise_or_waits() -> None:
    world = world_of()
    first = submit(world, "plain", 3, 60)
    step(world)
    big = submit(world, "big", 4, 10)
    plan = step(world)
    assert plan.promises[big].start == world.now + 3600
    assert plan.promises[big].held == (("h1", 1),)
    long, short = submit(world, "fill", 1, 61), submit(world, "fill", 1, 60)
    step(world)
    assert [runs(world, key) for key in (first, big, long, short)] == [True, False, False, True]


def test_only_a_queue_with_backfill_uses_what_is_held() -> None:
    world = world_of()
    submit(world, "plain", 3, 60)
    step(world)
    submit(world, "big", 4, 10)
    plain = submit(world, "plain", 1, 5)
    unlimited = submit(world, "fill", 1)
    step(world)
    assert not runs(world, plain)
    assert not runs(world, unlimited)


def test_what_is_held_only_now_is_filled_in_the_same_cycle_by_what_was_blocked_before() -> None:
    world = world_of(hosts=2)
    submit(world, "plain", 4, 60, hosts=("h1",))
    on_second = submit(world, "plain", 4, 60, hosts=("h2",))
    step(world)
    blocked = submit(world, "fill", 1, 5)
    step(world)
    assert not runs(world, blocked)
    world.finish(on_second)
    submit(world, "big", 8, 10)
    plan = step(world)
    assert len(plan.promises) == 1
    assert runs(world, blocked)


def test_what_is_spare_at_the_promised_start_is_free_for_backfill() -> None:
    world = world_of(hosts=2)
    submit(world, "plain", 3, 60, hosts=("h1",))
    submit(world, "plain", 3, 120, hosts=("h2",))
    step(world)
    big = submit(world, "big", 4, 10)
    plan = step(world)
    assert plan.promises[big].start == world.now + 3600
    assert plan.promises[big].hosts == (("h1", 4),)
    other = submit(world, "fill", 1, 600)
    step(world)
    assert world.running()[other] == {"h2": 1}


def test_without_a_run_limit_there_is_no_promise_but_what_is_free_is_held() -> None:
    world = world_of()
    submit(world, "plain", 3)
    step(world)
    big = submit(world, "big", 4, 10)
    small = submit(world, "fill", 1, 1)
    plan = step(world)
    assert plan.promises[big].start == 0.0
    assert plan.promises[big].held == (("h1", 1),)
    assert not runs(world, small)


def test_a_hold_without_a_promise_lasts_for_its_time_only() -> None:
    world = world_of(QueueConfig(name="big", priority=50, slot_reserve=5), FILL, PLAIN)
    submit(world, "plain", 3)
    step(world)
    submit(world, "big", 4, 10)
    small = submit(world, "plain", 1)
    plan = step(world)
    assert not runs(world, small)
    assert plan.wake_at == world.now + 300
    world.now += 300
    step(world)
    assert runs(world, small)


def test_what_a_gang_of_roles_holds_is_given_up_for_as_long_as_it_was_held() -> None:
    """Where nobody knows when it can start: the part that is free is held, lent, and held again."""
    world = world_of(QueueConfig(name="big", priority=50, slot_reserve=5), PLAIN)
    world.hosts("g1", slots=4, gpus=2)
    blocker = submit(world, "plain", 2, hosts=("g1",))
    step(world)
    roles = (Role(name="ps", count=4, least=4), Role(name="worker", count=2, least=2, gpus=1, slots=2))
    gang = submit(world, "big", 8, max_slots=8, roles=roles, launch="roles", gpu="num=1")
    small = submit(world, "plain", hosts=("h1",))
    assert dict(step(world).promises[gang].held) == {"h1": 4, "g1": 2}
    assert not runs(world, small)
    world.now += 300
    step(world)
    assert runs(world, small)
    world.finish(small)
    world.now += 300
    assert dict(step(world).promises[gang].held) == {"h1": 4, "g1": 2}
    world.finish(blocker)
    step(world)
    assert runs(world, gang)


def test_memory_is_held_as_well() -> None:
    world = world_of(mem=8000)
    submit(world, "plain", 1, 60, resreq="rusage[mem=6000]")
    step(world)
    big = submit(world, "big", 1, 10, resreq="rusage[mem=7000]")
    small = submit(world, "fill", 1, 90, resreq="rusage[mem=1500]")
    light = submit(world, "fill", 1, 90, resreq="rusage[mem=500]")
    plan = step(world)
    assert plan.promises[big].start == world.now + 3600
    assert not runs(world, small)
    assert runs(world, light)


def test_a_big_job_is_not_starved_by_small_ones() -> None:
    """Small jobs come all the time; each has a run limit, and the big one starts when it was promised."""
    world = world_of(hosts=4)
    site = Site(world)
    for at in range(16):
        site.submit(Wish(at, "plain", 1, 10 + at))
    site.turn()
    site.submit(Wish(99, "big", 16, 10))
    promised = site.turn().promises[site.keys[99]].start
    assert promised == world.now + 25 * 60
    for minute in range(60):
        site.submit(Wish(100 + minute, "fill" if minute % 2 else "plain", 1 + minute % 3, 1 + minute % 9))
        site.run_until(world.now + 60)
    assert site.started[99] <= promised


def test_conservative_promises_everyone() -> None:
    world = world_of(backfill="conservative")
    submit(world, "plain", 3, 60)
    step(world)
    one, two = submit(world, "big", 4, 10), submit(world, "big", 2, 10)
    three = world.submit(queue="big", slots=4, limits=Limits(run=600))
    plan = step(world)
    start = world.now + 3600
    assert plan.promises[one].start == start
    assert plan.promises[three].start >= start + 600
    assert plan.promises[two].start >= start
    small = submit(world, "fill", 1, 60)
    step(world)
    assert runs(world, small)


@dataclass(frozen=True)
class Wish:
    """A job of a story: the minute in which it comes, its queue, slots and minutes; it runs ``uses`` of its limit."""

    name: int
    queue: str
    slots: int
    minutes: int
    comes: int = 0
    uses: float = 1.0
    gpu: str = ""


class Site:
    """A world with a clock: jobs end by their run limits, cycles run when something happened."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.keys: dict[int, int] = {}
        self.wishes: dict[int, Wish] = {}
        self.started: dict[int, float] = {}
        self.ends: list[tuple[float, int]] = []
        self.plan = Plan(0)
        self.promised: dict[int, list[float]] = {}

    def submit(self, wish: Wish) -> None:
        key = submit(self.world, wish.queue, wish.slots, wish.minutes, gpu=wish.gpu)
        self.keys[wish.name] = key
        self.wishes[key] = wish

    def turn(self) -> Plan:
        """Cycles until nothing more starts."""
        while True:
            self.plan = step(self.world)
            for key, promise in self.plan.promises.items():
                if promise.start:
                    self.promised.setdefault(self.wishes[key].name, []).append(promise.start)
            for placement in self.plan.placements:
                wish = self.wishes[placement.key]
                self.started[wish.name] = self.world.now
                heapq.heappush(self.ends, (self.world.now + wish.minutes * 60 * wish.uses, placement.key))
            if not self.plan.placements:
                return self.plan

    def run_until(self, time: float) -> None:
        while self.ends and self.ends[0][0] <= time:
            self.world.now = self.ends[0][0]
            while self.ends and self.ends[0][0] <= self.world.now:
                self.world.finish(heapq.heappop(self.ends)[1])
            self.turn()
        self.world.now = time
        self.turn()


wishes = st.builds(
    Wish,
    name=st.just(0),
    queue=st.sampled_from(["big", "big", "fill", "fill", "plain"]),
    slots=st.integers(1, 8),
    minutes=st.integers(1, 40),
    comes=st.integers(0, 60),
    gpu=st.sampled_from(["", "", "", "num=1:j_exclusive=yes"]),
)


def play(story: list[Wish], hosts: int, backfill: str) -> Site:
    world = world_of(hosts=hosts, backfill=backfill, gpus=1)
    site = Site(world)
    start = world.now
    for wish in sorted(story, key=lambda wish: (wish.comes, wish.name)):
        site.run_until(start + wish.comes * 60)
        site.submit(wish)
        site.turn()
    while site.ends:
        site.run_until(site.ends[0][0])
    return site


@pytest.mark.parametrize("backfill", ["easy", "conservative"])
@settings(max_examples=examples(30), phases=PHASES)
@given(st.lists(wishes, min_size=4, max_size=16), st.integers(1, 3))
def test_a_promise_is_kept_and_never_moves_back(backfill: str, story: list[Wish], hosts: int) -> None:
    """The first promise that the head of the line gets holds, whatever comes after it in lower queues.

    Not so with CONSERVATIVE and GPUs: a job with GPUs starts where they pack best, which may not be where its promise counted on
    (docs/scheduling.md).
    """
    gpus = backfill == "easy"
    story = [
        Wish(at, w.queue, min(w.slots, 4 * hosts), w.minutes, w.comes, 1.0, w.gpu if gpus else "") for at, w in enumerate(story)
    ]
    site = play(story, hosts, backfill)
    for name, starts in site.promised.items():
        assert starts == sorted(starts, reverse=True), (name, starts)
        assert site.started[name] <= starts[-1]
    assert len(site.started) == len(story)


def test_what_is_used_of_one_promise_is_not_taken_from_a_later_one() -> None:
    """One slot of each host is held for the next two big jobs, and a third counts on what comes back at minute 20."""
    big = Wish(0, "big", 5, 25, 5, gpu="num=1:j_exclusive=yes")
    story = [
        big,
        big,
        big,
        Wish(0, "fill", 1, 10, 10),
        Wish(0, "big", 1, 12, 14),
        Wish(0, "fill", 1, 2, 19),
    ]
    site = play([replace(wish, name=at) for at, wish in enumerate(story)], 2, "conservative")
    assert site.promised[4]
    assert set(site.promised[4]) == {1_000_000 + 20 * 60}
    assert site.started[4] == 1_000_000 + 20 * 60


@settings(max_examples=examples(40), phases=PHASES)
@given(st.lists(wishes, min_size=4, max_size=14), st.integers(1, 3))
def test_backfill_never_delays_the_first_that_waits(story: list[Wish], hosts: int) -> None:
    """With and without the queue that fills the gaps, big jobs that are at the head start no later."""
    story = [Wish(at, w.queue, min(w.slots, 4 * hosts), w.minutes, w.comes, 1.0) for at, w in enumerate(story)]
    bigs = [wish for wish in story if wish.queue == "big"]
    if not bigs:
        return
    first = min(bigs, key=lambda wish: (wish.comes, wish.name))
    # from when it waits on, with and without what may fill the gaps
    story = [wish for wish in story if wish.queue != "big" or wish == first]
    early = [wish for wish in story if (wish.comes, wish.name) <= (first.comes, first.name)]
    late = [wish for wish in story if wish not in early]
    with_fill = play([*early, *late], hosts, "easy")
    without = play([*early, *(wish for wish in late if wish.queue != "fill")], hosts, "easy")
    assert with_fill.started[first.name] == without.started[first.name]


@pytest.mark.parametrize("looks", [0, 1, slot_reservations.LOOKS])
def test_jobs_for_which_nothing_can_be_reserved_take_nothing_from_the_others(looks: int) -> None:
    """Memory that is in use by no job of the cluster never comes back."""
    world = world_of()
    submit(world, "plain", 4, 60)
    step(world)
    world.load("h1", mem=1000.0)
    in_vain = [submit(world, "big", 1, 10, resreq=f"rusage[mem={amount}]") for amount in (15_000, 15_001, 15_002)]
    last = submit(world, "big", 4, 10)
    looked: set[int] = set()
    real = slot_reservations.SlotReservations._find

    def find(self: slot_reservations.SlotReservations, need: Need, *rest: Any) -> Any:
        looked.add(need.number)
        return real(self, need, *rest)

    with patch.object(slot_reservations, "LOOKS", looks), patch.object(slot_reservations.SlotReservations, "_find", find):
        for _ in range(4):
            looked.clear()
            assert world.schedule().promises.keys() == {last}, "also in the cycles in which the others have their turn"
        assert len(looked) == {0: 0, 1: 1}.get(looks, 3) + 1
        world.load("h1", mem=16_000.0)
        found = [next(iter(world.schedule().promises)) for _ in range(4)]
    assert set(found) <= {in_vain[0], last}
    assert found[-1] == (in_vain[0] if looks else last), "the first in line, once it has its turn"


@pytest.mark.parametrize("pools", [False, True])
def test_of_a_cluster_with_pools_too_only_those_are_tried_that_may_fit(pools: bool) -> None:
    world = world_of(hosts=3)
    if pools:
        pool = Pool(name="pool", type="slots", distribution=(("gold", Amount(1)),))
        world.configure(service_classes=(ServiceClass(name="gold"),), pools=(pool,))
    world.memory = SchedulerCache(few=1)
    first = submit(world, "plain", 1, 60, hosts=("h1",))
    step(world)
    submit(world, "plain", 13, 10)
    world.step()
    world.finish(first)
    with patch.object(still_blocked, "LOOKS", 0), patch.object(ClassPlacer, "place_jobs", side_effect=AssertionError):
        world.schedule()
