"""Stories with preemption, reservations, windows and load: nothing is given twice, nothing half, nothing for nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from config.model.queue import QueueConfig
from config.model.values import Backfill, JobAction, JobControl, Limits, Preemption, Thresholds
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.lang.states import JobState
from lavad.core.plan.plan import Plan
from lavad.core.site.conf import Params, ResourceConf
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.examples import examples
from tests.support.worlds.stories import befall
from tests.support.worlds.world import World

QUEUES = ("urgent", "big", "fill", "low", "again", "late")
HOSTS = ("h1", "h2", "h3")
FIELDS = ("placements", "preemptions", "resumes", "suspensions", "releases", "promises", "wake_at", "why_job")

jobs = st.fixed_dictionaries(
    {
        "queue": st.sampled_from(QUEUES),
        "slots": st.sampled_from([1, 1, 2, 3, 4, 7, 12]),
        "minutes": st.sampled_from([0, 1, 5, 30]),
        "resreq": st.sampled_from(["", "", "rusage[mem=5000]", "span[ptile=2]", "span[hosts=1]", "rusage[lic=1]"]),
        "gpu": st.sampled_from(["", "", "", "num=1:j_exclusive=yes", "num=2"]),
        "exclusive": st.sampled_from([False] * 7 + [True]),
    }
)
actions = st.one_of(
    st.tuples(st.just("submit"), jobs, st.sampled_from(["", "", "1-3"])),
    st.tuples(st.just("submit"), jobs, st.just("")),
    st.tuples(st.just("step")),
    st.tuples(st.just("step")),
    st.tuples(st.just("finish"), st.integers(0, 50)),
    st.tuples(st.just("gone"), st.integers(0, 50)),
    st.tuples(st.just("kill"), st.integers(0, 50)),
    st.tuples(st.just("stop"), st.integers(0, 50)),
    st.tuples(st.just("host"), st.sampled_from(HOSTS), st.booleans()),
    st.tuples(st.just("load"), st.sampled_from(HOSTS), st.sampled_from([0.0, 2.0, 5.0])),
    st.tuples(st.just("later"), st.sampled_from([5.0, 60.0, 400.0])),
    st.tuples(st.just("hour"), st.sampled_from([12, 20])),
)


def make_world(backfill: str) -> World:
    world = World()
    load = Thresholds(sched=(("r1m", 1.0),), stop=(("r1m", 4.0),))
    world.configure(
        queues=(
            QueueConfig(
                name="urgent",
                priority=60,
                preemption=Preemption(preemptive=True, preempts=(("low", None), ("again", 1), ("fill", None))),
            ),
            QueueConfig(name="big", priority=50, slot_reserve=5),
            QueueConfig(name="fill", priority=40, backfill=True),
            QueueConfig(name="late", priority=35, run_window="8:00-18:00", thresholds=load),
            QueueConfig(name="low", priority=20, exclusive=True),
            QueueConfig(
                name="again",
                priority=10,
                preemption=Preemption(preemptable=True),
                job_controls=(JobControl(JobAction.SUSPEND, "brequeue"),),
            ),
        ),
        params=Params(parallel_sched_by_slot=True, lava_backfill=Backfill(backfill)),
        resources=(ResourceConf(name="lic", kind="numeric", consumable=True, locations=((2.0, ("all",)),)),),
    )
    world.hosts(*HOSTS, slots=4, mem=16_000, gpus=2)
    return world


def act(world: World, action: tuple[Any, ...]) -> None:
    match action:
        case ("submit", fields, array):
            about = dict(fields)
            minutes = about.pop("minutes")
            world.submit(array=array, limits=Limits(run=minutes * 60 or None), **about)
        case ("finish" | "gone" | "kill" | "stop" as what, at):
            befall(world, what, at)
        case _:
            act_on_site(world, action)


def act_on_site(world: World, action: tuple[Any, ...]) -> None:
    match action:
        case ("host", name, up):
            world.apply((ev.HostUp if up else ev.HostDown)(at=world.now, host=name))
        case ("load", name, r1m):
            world.load(name, r1m=r1m)
        case ("later", seconds):
            world.now += seconds
        case ("hour", hour):
            world.local = (1, hour * 3600)


def step(world: World) -> None:
    """One cycle: the same without memory and with columns, and true as a whole once accepted."""
    plan = world.schedule()
    fresh, columns = world.schedule(SchedulerCache()), world.schedule(SchedulerCache(few=1))
    for field in FIELDS:
        assert getattr(plan, field) == getattr(fresh, field) == getattr(columns, field), field
    spec_of = {key: world.cluster.spec_of(key) for key in (p.key for p in plan.placements)}
    events = world.accept(plan)
    check_accepted(plan, events)
    for placement in plan.placements:
        assert spec_of[placement.key].slots <= sum(part.slots for part in placement.parts)
    assert accept_plan(world.cluster, plan, world.now, "again") == []


def check_accepted(plan: Plan, events: list[ev.Event]) -> None:
    kinds = Counter(type(event) for event in events)
    assert kinds[ev.JobDispatched] + kinds[ev.SlotsReserved] == len(plan.placements)
    suspends = sum(one.how == "suspend" for one in plan.preemptions)
    assert kinds[ev.JobSuspended] == suspends + len(plan.suspensions)
    assert kinds[ev.SignalRequested] == len(plan.preemptions) - suspends
    assert kinds[ev.JobResumed] == len(plan.resumes)
    assert kinds[ev.SlotsReleased] == len(plan.releases)
    placed = {placement.key for placement in plan.placements}
    assert {one.beneficiary for one in plan.preemptions} <= placed, "nobody is preempted for nothing"
    assert len({one.key for one in plan.preemptions}) == len(plan.preemptions)


def check_world(world: World) -> None:
    cluster = world.cluster
    check_invariants(cluster)
    gpus: Counter[str] = Counter()
    licences = 0.0
    for name, use in cluster.use.hosts.items():
        assert use.slots <= 4
        assert use.reserved.get("mem", 0.0) <= 16_000
        licences += use.reserved.get("lic", 0.0)
        assert use.exclusive == 0 or len(use.jobs) == 1, name
        gpus.update(use.gpus.jobs)
    assert licences <= 2.0
    assert all(count < 2_000_000 and (count < 1_000_000 or count == 1_000_000) for count in gpus.values())


def run_story(story: list[tuple[Any, ...]], backfill: str) -> World:
    world = make_world(backfill)
    for action in [*story, ("step",)]:
        if action[0] == "step":
            step(world)
        else:
            act(world, action)
        check_world(world)
    return world


@settings(max_examples=examples(80), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.lists(actions, min_size=5, max_size=40), st.sampled_from(["easy", "conservative"]))
def test_stories_stay_sound(story: list[tuple[Any, ...]], backfill: str) -> None:
    run_story(story, backfill)


@settings(max_examples=examples(40), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.lists(actions, min_size=5, max_size=30))
def test_all_ends_well(story: list[tuple[Any, ...]]) -> None:
    """Once all hosts are up, quiet and open, and jobs end, every job comes to run: none is forgotten suspended or held."""
    world = run_story(story, "easy")
    for name in HOSTS:
        world.apply(ev.HostUp(at=world.now, host=name))
        world.load(name)
    world.local = (1, 12 * 3600)
    rows = world.cluster.jobs.rows
    for key in list(world.cluster.started):
        if rows[key].state is JobState.USUSP:
            world.finish(key)
    for _ in range(200):
        world.now += 301
        step(world)
        check_world(world)
        for key in list(world.cluster.suspended):
            if rows[key].preempted_for_good:
                world.leave(key)
        going = [key for key in world.cluster.started if rows[key].state is JobState.RUN]
        if going:
            world.finish(going[0])
        elif not world.cluster.started and not any(_fits(world, key) for key in world.pending()):
            break
    assert not world.cluster.started
    assert not any(_fits(world, key) for key in world.pending())


def _fits(world: World, job: int) -> bool:
    """Whether a job that waits could ever run on three hosts of four slots and two GPUs."""
    spec = world.cluster.spec_of(job)
    return not ("span[hosts=1]" in spec.resreq and spec.slots > 4) and not ("ptile=2" in spec.resreq and spec.slots > 6)
