"""Service classes with goals in time in the scheduler: who starts first, how many, who waits and why."""

from __future__ import annotations

from typing import Any

import pytest

from config.model.cluster import Limit
from config.model.guarantees import Goal, ServiceClass
from config.model.queue import QueueConfig
from config.model.values import FairShare, Limits, Preemption
from lavad.core import events as ev
from lavad.core.decide.modify.permitted import Permitted
from lavad.core.job.groups import JobGroup
from lavad.core.lang.states import JobState
from lavad.core.plan.plan import Plan
from lavad.core.site.pend_reason import LIMIT_SLOTS, PendReason
from lavad.sched.ask.trial import Moment, starts
from lavad.sched.ask.what_if import find_changes
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.stories import befall
from tests.support.worlds.world import World

SLOW = QueueConfig(name="slow", priority=1)
FAST = QueueConfig(name="fast", priority=90)
OPTIMUM = (PendReason.SLA_OPTIMUM, 0)
DAY = "8:00-18:00"


def velocity(name: str, number: int, windows: str = "", **fields: Any) -> ServiceClass:
    return ServiceClass(name=name, goals=(Goal("velocity", number, windows),), **fields)


def deadline(name: str, windows: str = DAY) -> ServiceClass:
    return ServiceClass(name=name, goals=(Goal("deadline", 0, windows),))


def world_of(*services: ServiceClass, queues: tuple[QueueConfig, ...] = (SLOW, FAST), slots: int = 8, **conf: Any) -> World:
    world = World()
    world.configure(queues=queues, service_classes=services, **conf)
    world.hosts("h1", slots=slots)
    return world


def step(world: World) -> list[int]:
    """One cycle, which is the same with an empty memory and with columns; the jobs that it starts."""
    plan = world.schedule()
    plans: list[Plan] = [world.schedule(SchedulerCache()), world.schedule(SchedulerCache(few=1))]
    for other in plans:
        assert (plan.placements, plan.preemptions, plan.resumes) == (other.placements, other.preemptions, other.resumes)
    world.accept(plan)
    world.soft.why.update(plan.why)
    world.wake_at = plan.wake_at
    return [one.key for one in plan.placements]


def submit(world: World, service: str, count: int = 1, **fields: Any) -> list[int]:
    return [world.submit(service_class=service, **{"queue": "slow", **fields}) for _ in range(count)]


def test_its_jobs_start_before_all_others_up_to_the_optimum() -> None:
    world = world_of(velocity("a", 3), slots=4)
    others = [world.submit(queue="fast") for _ in range(4)]
    mine = submit(world, "a", 5)
    assert step(world) == [*mine[:3], others[0]]
    assert world.why(mine[3]) == [OPTIMUM]


def test_beyond_the_optimum_they_wait_though_slots_are_free() -> None:
    world = world_of(velocity("a", 3))
    mine = submit(world, "a", 5)
    assert step(world) == mine[:3]
    assert step(world) == []
    world.finish(mine[0])
    assert step(world) == [mine[3]]


def test_an_array_counts_by_its_elements() -> None:
    world = world_of(velocity("a", 3))
    submit(world, "a", array="1-6")
    assert len(step(world)) == 3
    assert len(step(world)) == 0


def test_a_parallel_job_counts_as_one() -> None:
    world = world_of(velocity("a", 2))
    mine = submit(world, "a", 3, slots=2)
    assert step(world) == mine[:2]


def test_a_suspended_job_counts() -> None:
    world = world_of(velocity("a", 1))
    mine = submit(world, "a", 2)
    assert step(world) == mine[:1]
    befall(world, "stop", 0)
    assert world.cluster.jobs.rows[mine[0]].state is JobState.USUSP
    assert step(world) == []


def test_the_class_with_the_highest_priority_comes_first_then_the_first_of_the_file() -> None:
    world = world_of(velocity("a", 2), velocity("b", 2), velocity("c", 2, priority=9), slots=5)
    by_name = {name: submit(world, name, 3, queue="fast" if name == "b" else "slow") for name in ("b", "a", "c")}
    assert step(world) == [*by_name["c"][:2], *by_name["a"][:2], by_name["b"][0]]


def test_limits_hold_as_ever() -> None:
    world = world_of(velocity("a", 5), limits=(Limit(name="l", users=("alice",), slots=2),))
    mine = submit(world, "a", 5)
    assert step(world) == mine[:2]
    assert world.why(mine[2]) == [(LIMIT_SLOTS, 0)]


def test_a_job_that_does_not_fit_lets_others_pass() -> None:
    world = world_of(velocity("a", 5), slots=4)
    [large] = submit(world, "a", slots=5)
    other = world.submit(queue="slow")
    assert step(world) == [other]
    assert world.why(large)[0] != OPTIMUM


def test_outside_of_the_window_there_is_no_class() -> None:
    world = world_of(velocity("a", 1, DAY), slots=4)
    world.local = (1, 20 * 3600)
    mine = submit(world, "a", 3)
    others = [world.submit(queue="fast") for _ in range(3)]
    assert step(world) == [*others, mine[0]]


def test_the_scheduler_wakes_when_a_window_opens_and_closes() -> None:
    world = world_of(velocity("a", 1, DAY), slots=4)
    world.local = (1, 7 * 3600)
    blockers = [world.submit(queue="fast") for _ in range(4)]
    assert step(world) == blockers
    mine, others = submit(world, "a", 2), [world.submit(queue="fast") for _ in range(4)]
    assert step(world) == []
    assert world.wake_at == world.now + 3600
    world.now, world.local = world.wake_at, (1, 8 * 3600)
    world.finish(blockers[0])
    world.finish(blockers[1])
    assert step(world) == [mine[0], others[0]], "its place in line is another now"
    assert step(world) == []
    assert world.wake_at == world.now + 10 * 3600
    world.now, world.local = world.wake_at, (1, 18 * 3600)
    for key in (blockers[2], blockers[3], others[0]):
        world.finish(key)
    assert step(world) == others[1:], "and as before"


def test_a_deadline_spreads_the_work_over_its_window() -> None:
    world = world_of(deadline("a", "12:00-12:30"))
    mine = submit(world, "a", 6, limits=Limits(run=300))
    assert step(world) == mine[:1], "LSF's example: one slot for half an hour"
    assert step(world) == []
    world.now, world.local = world.now + 200, (1, 12 * 3600 + 200)
    world.finish(mine[0])
    assert step(world) == [mine[1]]


def test_a_deadline_that_comes_nearer_asks_for_more() -> None:
    world = world_of(deadline("a", "12:00-12:30"))
    mine = submit(world, "a", 6, limits=Limits(run=300))
    assert step(world) == mine[:1]
    world.now, world.local = world.now + 1000, (1, 12 * 3600 + 1000)
    assert world.wake_at <= world.now
    assert step(world) == mine[1:3], "800 seconds are left for five jobs, and the first is late"


def test_what_no_job_says_is_learnt_from_those_that_have_ended() -> None:
    world = world_of(ServiceClass(name="a", goals=(Goal("throughput", 36),)))
    mine = submit(world, "a", 9)
    assert step(world) == mine[:1], "of nothing is known how long it takes"
    world.later(400)
    world.finish(mine[0])
    assert world.cluster.paces.rows["a"].seconds == 400
    assert step(world) == mine[1:5]


def test_while_nothing_is_known_it_takes_as_long_as_what_runs_has_run() -> None:
    world = world_of(ServiceClass(name="a", goals=(Goal("throughput", 36),)))
    mine = submit(world, "a", 9)
    assert step(world) == mine[:1]
    world.now += 310
    assert step(world) == mine[1:4]


def test_jobs_that_other_classes_have_count_for_nothing() -> None:
    world = world_of(velocity("a", 2), ServiceClass(name="g"))
    submit(world, "g", 2)
    mine = submit(world, "a", 2)
    assert step(world)[:2] == mine


def test_a_user_who_is_not_in_user_group_has_no_class() -> None:
    world = world_of(velocity("a", 1, users=("bob",)))
    assert len(step_of(world, submit(world, "a", 3))) == 3
    assert len(step_of(world, submit(world, "a", 3, user="bob"))) == 1


def step_of(world: World, keys: list[int]) -> list[int]:
    return [key for key in step(world) if key in keys]


@pytest.mark.parametrize("active", [True, False])
def test_they_are_not_preempted_while_a_goal_is_pursued(active: bool) -> None:
    queues = (SLOW, QueueConfig(name="fast", priority=90, preemption=Preemption(preemptive=True)))
    world = world_of(velocity("a", 4, DAY), queues=queues, slots=2)
    mine = submit(world, "a", 2)
    assert step(world) == mine
    world.local = (1, (12 if active else 20) * 3600)
    world.submit(queue="fast")
    assert len(world.schedule().preemptions) == (0 if active else 1)


def test_fair_share_orders_the_jobs_of_a_class() -> None:
    share = FairShare(shares=(("alice", 1), ("bob", 1)))
    world = world_of(velocity("a", 4), queues=(QueueConfig(name="fair", share=share), FAST), slots=4)
    alice = submit(world, "a", 4, queue="fair")
    bob = submit(world, "a", 4, queue="fair", user="bob")
    others = [world.submit(queue="fast") for _ in range(4)]
    started = step(world)
    assert len(started) == 4
    assert len({*started} & {*alice}) == len({*started} & {*bob}) == 2
    assert not {*started} & {*others}


def test_within_a_stream_of_fair_share_those_of_the_class_come_first() -> None:
    share = FairShare(shares=(("alice", 1), ("bob", 1)))
    world = world_of(velocity("a", 2), queues=(QueueConfig(name="fair", share=share), FAST), slots=4)
    plain = [world.submit(queue="fair", user=user) for user in ("alice", "bob") for _ in range(2)]
    mine = submit(world, "a", 3, queue="fair", user="bob")
    assert {*step(world)} == {*mine[:2], *[key for key in plain if key in plain[:2]]}


def test_slots_that_are_held_for_a_job_count_as_one() -> None:
    queues = (QueueConfig(name="slow", priority=1, preemption=Preemption(preemptive=True, preempts=(("low", None),))), FAST)
    world = world_of(velocity("a", 1), queues=(*queues, QueueConfig(name="low", priority=0)), slots=1)
    low = world.submit(queue="low")
    assert step(world) == [low]
    submit(world, "a", 3)
    plan = world.schedule()
    assert len(plan.preemptions) == len(plan.placements) == 1
    world.accept(plan)
    assert not world.schedule().preemptions


def test_jobs_that_get_their_slots_one_by_one_count_from_the_first_slot_on() -> None:
    world = world_of(velocity("a", 2), queues=(QueueConfig(name="parts", gang=False), FAST), slots=4)
    blocker = world.submit(queue="fast", slots=3)
    assert step(world) == [blocker]
    mine = [world.submit(service_class="a", queue="parts", slots=2, project=f"p{at}") for at in range(3)]
    step_by_slot(world)
    assert len(world.cluster.promised) == 1
    world.finish(blocker)
    for _ in range(3):
        step_by_slot(world)
    assert sorted(world.cluster.started) == mine[:2]
    assert world.why(mine[2]) == [OPTIMUM]


@pytest.mark.parametrize("kept_by", ["goal", "group"])
def test_what_another_job_lacks_that_gets_its_slots_one_by_one_is_not_taken_from_it(kept_by: str) -> None:
    world = world_of(velocity("a", 1), queues=(QueueConfig(name="parts", gang=False), FAST), slots=4)
    world.apply(ev.GroupSet(at=world.now, value=JobGroup(name="/g", owner="alice", limit=1)))
    world.submit(queue="parts", slots=12, hosts=("h1",))
    step_by_slot(world)
    assert len(world.cluster.promised) == 1
    world.hosts("h2", slots=4)
    fields: dict[str, Any] = {"service_class": "a"} if kept_by == "goal" else {"group": "/g"}
    mine = [world.submit(queue="parts", slots=2, hosts=("h2",), **fields) for _ in range(2)]
    for _ in range(3):
        step_by_slot(world)
    assert [*world.cluster.started] == mine[:1]


def step_by_slot(world: World) -> None:
    plan = world.schedule()
    world.accept(plan)
    world.soft.why.update(plan.why)


def test_what_would_start_a_job_that_is_held_back() -> None:
    world = world_of(velocity("a", 1))
    mine = submit(world, "a", 2)
    assert step(world) == mine[:1]
    world.cluster.forget_changes()
    moment = Moment(world.cluster, world.soft, world.now, world.local)
    assert not starts(moment, mine[1])
    assert [change.text for change in find_changes(moment, mine[1], Permitted.of(moment.cluster, mine[1]))] == [
        "no service class (bmod -slan)"
    ]
