"""Who is not preempted: NO_PREEMPT_RUN_TIME, NO_PREEMPT_FINISH_TIME, NO_PREEMPT_INTERVAL, MAX_JOB_PREEMPT, PREEMPT_DELAY …"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import Limits, Preemption
from config.values.values import Scope, minutes_or_percent
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.lang.states import JobState
from lavad.core.site.conf import Params
from tests.support.examples import examples
from tests.support.worlds.world import World


def world_of(guards: dict[str, int], high: dict[str, int] | None = None, **params: Any) -> World:
    """Queue ``high`` preempts jobs of ``low``, which has these guards."""
    world = World()
    rule = Preemption(preemptive=True, preempts=(("low", None),))
    queues = (
        QueueConfig(name="high", priority=50, preemption=rule, **high or {}),  # type: ignore[arg-type]
        QueueConfig(name="low", priority=10, exclusive=True, **guards),  # type: ignore[arg-type]
    )
    world.configure(queues=queues, params=Params(parallel_sched_by_slot=True, **params))
    world.hosts("h1", slots=2)
    return world


def cycle(world: World) -> None:
    plan = world.schedule()
    world.accept(plan)
    world.wake_at = plan.wake_at
    check_invariants(world.cluster)


@pytest.mark.parametrize(
    ("guards", "after", "spares"),
    [
        ({"no_preempt_run_time": 600}, 300, False),
        ({"no_preempt_run_time": 600}, 700, True),
        ({"no_preempt_run_time": -50}, 1700, False),
        ({"no_preempt_run_time": -50}, 1900, True),
        ({"no_preempt_finish_time": 600}, 2900, False),
        ({"no_preempt_finish_time": 600}, 3100, True),
        ({"no_preempt_finish_time": -10}, 3200, False),
        ({"no_preempt_finish_time": -10}, 3300, True),
        ({"no_preempt_interval": 120}, 60, True),
        ({"no_preempt_interval": 120}, 130, False),
        ({"max_job_preempt": 0}, 60, True),
    ],
)
def test_a_job_is_spared(guards: dict[str, int], after: int, spares: bool) -> None:
    world = world_of(guards)
    victim = world.submit(queue="low", slots=2, limits=Limits(run=3600))
    cycle(world)
    world.now += after
    job = world.submit(queue="high", slots=2)
    cycle(world)
    assert (job not in world.cluster.started) is spares
    assert (world.cluster.jobs.rows[victim].state is JobState.RUN) is spares
    if "no_preempt_interval" in guards and spares:
        assert world.wake_at == world.now + 60


GUARDS: list[tuple[dict[str, int], dict[str, int], int, bool]] = [
    ({"no_preempt_run_time": 60}, {"no_preempt_run_time": 6000}, 300, False),
    ({"no_preempt_run_time": 6000}, {"no_preempt_run_time": 60}, 300, True),
    ({}, {"no_preempt_finish_time": -50}, 2000, True),
    ({}, {"no_preempt_interval": 120}, 60, True),
    ({"max_job_preempt": 0}, {"max_job_preempt": 1}, 60, False),
    ({"max_job_preempt": 0}, {}, 60, True),
]


@pytest.mark.parametrize(("queue", "app", "after", "spares"), GUARDS)
def test_a_profile_goes_before_the_queue(queue: dict[str, int], app: dict[str, int], after: int, spares: bool) -> None:
    world = world_of(queue)
    world.configure(apps=(ApplicationConfig(name="app", **app),))  # type: ignore[arg-type]
    world.submit(queue="low", slots=2, limits=Limits(run=3600), app="app")
    cycle(world)
    world.now += after
    job = world.submit(queue="high", slots=2)
    cycle(world)
    assert (job not in world.cluster.started) is spares


def test_a_profile_says_how_long_its_jobs_wait_before_they_preempt() -> None:
    world = world_of({}, {"preempt_delay": 30})
    world.configure(apps=(ApplicationConfig(name="hasty", preempt_delay=0),))
    world.submit(queue="low", slots=2)
    cycle(world)
    usual, hasty = world.submit(queue="high"), world.submit(queue="high", app="hasty")
    cycle(world)
    assert (usual in world.cluster.started, hasty in world.cluster.started) == (False, True)


def test_a_job_that_was_suspended_by_preemption_for_long_enough_is_spared() -> None:
    world = world_of({"max_total_time_preempt": 600})
    victim = world.submit(queue="low", slots=2)
    cycle(world)
    states = []
    for seconds in (400, 200, 100):
        job = world.submit(queue="high", slots=2)
        cycle(world)
        states.append(world.cluster.jobs.rows[victim].state)
        world.now += seconds
        if job in world.cluster.started:
            world.finish(job)
        cycle(world)
        world.now += 301  # a job that was resumed is left alone for 5 minutes
    assert states == [JobState.SSUSP, JobState.SSUSP, JobState.RUN]
    assert world.cluster.jobs.rows[victim].preempted_time == 600


def test_a_suspension_by_its_user_does_not_count_as_preemption() -> None:
    world = world_of({})
    job = world.submit(queue="low")
    cycle(world)
    world.apply(ev.JobSuspended(at=world.now, key=job, by="alice"))
    world.apply(ev.JobResumed(at=world.now + 500, key=job, by="alice"))
    assert world.cluster.jobs.rows[job].preempted_time == 0


def test_a_job_preempts_only_after_a_while() -> None:
    world = world_of({}, {"preempt_delay": 30})
    world.submit(queue="low", slots=2)
    cycle(world)
    job = world.submit(queue="high")
    cycle(world)
    assert job not in world.cluster.started
    assert world.wake_at == world.now + 30
    world.now += 30
    cycle(world)
    assert job in world.cluster.started


@pytest.mark.parametrize("allowed", [False, True])
def test_exclusive_jobs_are_left_alone_unless_the_site_says_otherwise(allowed: bool) -> None:
    world = world_of({}, preempt_jobtype=("EXCLUSIVE",) if allowed else ())
    victim = world.submit(queue="low", slots=2, exclusive=True)
    cycle(world)
    plain = world.submit(queue="low", slots=1)
    cycle(world)
    world.submit(queue="high", exclusive=True)
    cycle(world)
    assert plain not in world.cluster.started
    assert world.cluster.jobs.rows[victim].state is JobState.RUN, "its host is exclusive even while it is suspended"


def test_percentages_are_read() -> None:
    assert [minutes_or_percent(text, Scope()) for text in ("10", "1:30", "40%")] == [600, 5400, -40]
    for wrong in ("0%", "101%", "-3%", "x"):
        with pytest.raises(ValueError):
            minutes_or_percent(wrong, Scope())


stories = st.lists(st.tuples(st.sampled_from(["low", "high", "pass", "finish"]), st.integers(1, 2)), max_size=25)


@settings(max_examples=examples(80), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(stories, st.integers(0, 3), st.sampled_from([0, 100, 400]))
def test_no_job_is_preempted_too_often_or_too_soon(story: list[tuple[str, int]], most: int, interval: int) -> None:
    """No thrash: however the jobs come, each is preempted at most MAX_JOB_PREEMPT times, with NO_PREEMPT_INTERVAL between."""
    world = world_of({"max_job_preempt": most, "no_preempt_interval": interval})
    for kind, number in story:
        if kind in ("low", "high"):
            world.submit(queue=kind, slots=number)
        elif kind == "finish" and world.cluster.started:
            keys = [key for key in world.cluster.started if world.cluster.jobs.rows[key].state is JobState.RUN]
            if keys:
                world.finish(keys[number % len(keys)])
        else:
            world.now += 150 * number
        before = {key: world.cluster.jobs.rows[key] for key in world.cluster.started}
        cycle(world)
        for key, old in before.items():
            job = world.cluster.jobs.rows.get(key)
            if job is not None and job.state is JobState.SSUSP and old.state is JobState.RUN:
                assert job.preempted <= most
                assert world.now - old.since >= interval
