"""Run limits are longer on slower hosts, and the scheduler plans so: promises, advance reservations, deadlines, estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import Limits
from lavad.core.cluster.invariants import check_invariants
from lavad.core.plan.plan import Plan
from lavad.core.rules.cpu_factors import RunTimes
from lavad.core.rules.run_settings import limits_on
from lavad.core.site.conf import Params
from lavad.core.site.pend_reason import PendReason
from lavad.core.site.reservation import Reservation
from lavad.sched.ask.estimate import soonest
from lavad.sched.ask.trial import Moment
from lavad.sched.hosts.ends import end_of
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.world import World

BIG = QueueConfig(name="big", priority=50, slot_reserve=100_000)
FILL = QueueConfig(name="fill", priority=40, backfill=True)
PLAIN = QueueConfig(name="plain", priority=30)
SHORT = QueueConfig(name="short", priority=30, scheduler="shortest")
DAY = QueueConfig(name="day", priority=30, run_window="8:00-13:00")
"""It closes an hour from a world's now."""


def world_of(slots: int = 2, **params: Any) -> World:
    """A host ``fast`` of factor 1, of which jobs are submitted, and ``slow`` of factor 0.5."""
    world = World()
    world.configure(queues=(BIG, FILL, PLAIN, SHORT, DAY), params=Params(parallel_sched_by_slot=True, **params))
    world.hosts("fast", slots=slots, cpu_factor=1.0)
    world.hosts("slow", slots=slots, cpu_factor=0.5)
    return world


def submit(world: World, minutes: int = 0, queue: str = "plain", **fields: Any) -> int:
    return world.submit(queue=queue, limits=Limits(run=minutes * 60 or None), from_host="fast", **fields)


def step(world: World) -> Plan:
    """One cycle; an empty cache and one with columns give the same, and the master takes it whole."""
    plan = world.schedule()
    for cache in (SchedulerCache(), SchedulerCache(few=1)):
        other = world.schedule(cache)
        for field in ("placements", "promises", "wake_at"):
            assert getattr(other, field) == getattr(plan, field), field
    assert len(world.accept(plan)) == len(plan.placements)
    world.soft.why.update(plan.why)
    check_invariants(world.cluster)
    return plan


def hosts_of(world: World, key: int) -> set[str]:
    run = world.cluster.jobs.rows[key].run
    return {part.host for part in run.parts} if run is not None else set()


def reserve(world: World, host: str, minutes: int) -> None:
    """All slots of a host, from so many minutes on."""
    begin = world.now + 60 * minutes
    row = Reservation(name="r", users=("bob",), hosts=((host, 2),), begin=begin, end=begin + 3600)
    world.cluster.reservations.put(row.name, row)


@dataclass(frozen=True)
class Case:
    abs_runlimit: bool
    seconds: int


CASES = [Case(abs_runlimit=False, seconds=1200), Case(abs_runlimit=True, seconds=600)]


@pytest.mark.parametrize("case", CASES)
def test_the_scheduler_and_the_agent_agree_on_how_long_a_job_runs(case: Case) -> None:
    world = world_of(abs_runlimit=case.abs_runlimit)
    key = submit(world, 10, hosts=("slow",))
    step(world)
    job = world.cluster.jobs.rows[key]
    spec = world.cluster.specs.rows[job.spec]
    state = CycleState(world.cluster, world.soft, world.now, world.local, world.memory)
    assert limits_on(world.cluster, spec, spec.limits, "slow").run == case.seconds
    assert end_of(state, job, spec) - world.now == case.seconds


@pytest.mark.parametrize(("app", "seconds"), [("wall", 600), ("plain", 1200), ("", 1200)])
def test_a_profile_may_say_that_run_limits_of_its_jobs_are_wall_clock_time(app: str, seconds: int) -> None:
    world = world_of()
    world.configure(apps=(ApplicationConfig("wall", abs_runlimit=True), ApplicationConfig("plain")))
    key = submit(world, 10, hosts=("slow",), app=app)
    step(world)
    job = world.cluster.jobs.rows[key]
    spec = world.cluster.specs.rows[job.spec]
    state = CycleState(world.cluster, world.soft, world.now, world.local, world.memory)
    assert limits_on(world.cluster, spec, spec.limits, "slow").run == seconds
    assert end_of(state, job, spec) - world.now == seconds
    bounds = (600, 600) if app == "wall" else (600, 1200)
    assert RunTimes(world.cluster).bounds(spec, 600) == bounds


def test_a_job_of_several_hosts_is_over_when_its_slowest_host_has_reached_the_limit() -> None:
    world = world_of()
    key = submit(world, 10, slots=4)
    step(world)
    job = world.cluster.jobs.rows[key]
    state = CycleState(world.cluster, world.soft, world.now, world.local, world.memory)
    assert hosts_of(world, key) == {"fast", "slow"}
    assert end_of(state, job, world.cluster.specs.rows[job.spec]) - world.now == 1200


@pytest.mark.parametrize("case", CASES)
def test_a_start_is_promised_for_when_the_job_on_the_slow_host_is_over(case: Case) -> None:
    world = world_of(abs_runlimit=case.abs_runlimit)
    submit(world, 10, slots=2, hosts=("slow",))
    step(world)
    big = submit(world, 30, "big", slots=2, hosts=("slow",))
    world.cluster.forget_changes()
    moment = Moment(world.cluster, world.soft, world.now, world.local)
    assert soonest(moment, big) == world.now + case.seconds
    assert step(world).promises[big].start == world.now + case.seconds


def test_backfill_ends_before_the_promise_on_the_host_that_it_runs_on() -> None:
    world = world_of()
    submit(world, 10, hosts=("slow",))
    step(world)
    submit(world, 30, "big", slots=2, hosts=("slow",))
    late, fits = (submit(world, minutes, "fill", hosts=("slow",)) for minutes in (11, 10))
    step(world)
    assert (hosts_of(world, late), hosts_of(world, fits)) == (set(), {"slow"})


def test_backfill_of_several_slots_may_run_on_the_slowest_host_of_all() -> None:
    world = world_of()
    submit(world, 20, hosts=("fast",))
    step(world)
    submit(world, 30, "big", slots=2, hosts=("fast",))
    late, fits = (submit(world, minutes, "fill", slots=2) for minutes in (20, 10))
    assert hosts_of(world, late) == set()
    plan = step(world)
    assert {placement.key for placement in plan.placements} <= {late, fits}
    for placement in plan.placements:
        hosts = {part.host for part in placement.parts}
        assert placement.key == fits or "fast" not in hosts


@pytest.mark.parametrize("host", ["fast", "slow"])
def test_no_job_runs_into_an_advance_reservation(host: str) -> None:
    world = world_of()
    reserve(world, host, 15)
    key = submit(world, 10, hosts=(host,))
    step(world)
    assert hosts_of(world, key) == ({"fast"} if host == "fast" else set())
    assert host == "fast" or PendReason.HOST_LESS_DURATION in {code for code, _ in world.why(key)}


def test_jobs_that_run_are_over_before_an_advance_reservation_only_by_what_their_limit_is_there() -> None:
    """The slots that the reservation will have: 2. One job on each host ends 20 minutes later there, 10 minutes here."""
    for host, starts in (("fast", True), ("slow", False)):
        world = world_of()
        submit(world, 10, hosts=(host,))
        step(world)
        reserve(world, host, 15)
        row = world.cluster.reservations.rows["r"]
        world.cluster.reservations.put(
            "r", Reservation(name="r", users=row.users, hosts=((host, 1),), begin=row.begin, end=row.end)
        )
        other = submit(world, 120, hosts=(host,))
        step(world)
        assert bool(hosts_of(world, other)) is starts, host


@pytest.mark.parametrize("queue", ["plain", "day"])
def test_a_job_that_would_end_too_late_on_slow_hosts_waits_for_a_fast_one(queue: str) -> None:
    """Past its deadline, or the end of its queue's run window: an hour from now."""
    world = world_of()
    deadline = world.now + 3601 if queue == "plain" else 0.0
    keys = [submit(world, 40, queue, deadline=deadline, name=f"j{at}") for at in range(3)]
    step(world)
    assert [hosts_of(world, key) for key in keys] == [{"fast"}, {"fast"}, set()]
    code = PendReason.HOST_MISS_DEADLINE if queue == "plain" else PendReason.QUE_WINDOW_WILL_CLOSE
    assert code in {code for code, _ in world.why(keys[2])}
    world.finish(keys[0])
    step(world)
    assert hosts_of(world, keys[2]) == {"fast"}
    short = submit(world, 30, queue, deadline=deadline)
    step(world)
    assert hosts_of(world, short) == {"slow"}


def test_another_factor_counts_from_the_next_cycle_on() -> None:
    world = world_of()
    submit(world, 10, slots=2, hosts=("slow",))
    step(world)
    big = submit(world, 30, "big", slots=2, hosts=("slow",))
    assert world.schedule().promises[big].start == world.now + 1200
    world.configure(models=(("quick", 2.0),))
    world.hosts("slow", slots=2, model="quick")
    assert world.schedule().promises[big].start == world.now + 300
    world.configure(models=(("quick", 1.0),))
    assert world.schedule().promises[big].start == world.now + 600


@pytest.mark.parametrize("abs_runlimit", [False, True])
def test_the_shortest_job_is_the_one_that_is_so_on_the_same_host(abs_runlimit: bool) -> None:
    """10 minutes of the slow host are 5 of the fast one, where another job takes 8."""
    world = world_of(1, abs_runlimit=abs_runlimit)
    of_fast = submit(world, 8, "short", hosts=("fast",))
    of_slow = submit(world, 10, "short", hosts=("fast",), run_host="slow")
    step(world)
    assert hosts_of(world, of_fast if abs_runlimit else of_slow) == {"fast"}


def test_jobs_that_wait_are_put_in_line_again_when_a_host_has_another_factor() -> None:
    world = world_of(1)
    world.hosts("slow", slots=1, cpu_factor=2.0)
    runs = submit(world, 60, hosts=("fast",))
    step(world)
    submit(world, 8, "short", hosts=("fast",))
    of_slow = submit(world, 10, "short", hosts=("fast",), run_host="slow")
    step(world)
    world.hosts("slow", slots=1, cpu_factor=0.5)
    world.finish(runs)
    step(world)
    assert hosts_of(world, of_slow) == {"fast"}


@pytest.mark.parametrize(("abs_runlimit", "host"), [(False, "fast"), (True, "slow")])
def test_gpus_are_packed_by_how_long_a_job_runs_on_each_host(abs_runlimit: bool, host: str) -> None:
    """Other jobs have GPUs of ``fast`` for 11 minutes and of ``slow`` for 12: one of 10 minutes would run 20 on ``slow``."""
    world = World()
    world.configure(params=Params(parallel_sched_by_slot=True, abs_runlimit=abs_runlimit))
    world.hosts("fast", gpus=4, cpu_factor=1.0)
    world.hosts("slow", gpus=4, cpu_factor=0.5)
    for name, seconds in (("fast", 660), ("slow", 720 if abs_runlimit else 360)):
        world.submit(gpu="num=2", hosts=(name,), limits=Limits(run=seconds), from_host="fast")
    step(world)
    key = world.submit(gpu="num=1", limits=Limits(run=600), from_host="fast")
    step(world)
    assert hosts_of(world, key) == {host}
