"""A plan never gives a thing twice and never half a job, and it does not depend on the scheduler's memory."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.model.cluster import HostConfig, Limit, UserConfig
from config.model.queue import QueueConfig
from lavad.core.cluster.gpu_book import is_exclusive
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.lang.states import JobState
from lavad.core.plan.plan import Plan
from lavad.core.site.conf import Params, ResourceConf, UnitConf
from lavad.sched.cycle import still_blocked
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.examples import examples
from tests.support.topologies import regular
from tests.support.worlds.world import World

NAMES = [f"h{at}" for at in range(6)]
RESREQS = [
    "",
    "",
    "",
    "rusage[mem=4000]",
    "rusage[mem=9000]",
    "rusage[mem=500/task]",
    "span[hosts=1]",
    "span[ptile=2]",
    "select[mem>8000]",
    "select[ncpus>=4 && !big]",
    "select[big]",
    "select[type==any] order[-ut]",
    "order[mem]",
    "rusage[lic=1]",
    "rusage[lic=2] span[ptile=1]",
    "select[slots>2]",
    "select[r1m<0.5 || ut<0.2]",
    "rusage[tmp=6000]",
    "span[ptile=3] rusage[mem=1000/task]",
    "select[color==red]",
    "rusage[mem=9000 || mem=2000:lic=1]",
    "span[block=2]",
    "rusage[mem=6000/job] span[stripe]",
    "span[stripe=2] rusage[mem=700/task:duration=1m:decay=1]",
    "span[ptile='!'] same[color]",
    "2*{select[big] rusage[mem=3000]}+1*{rusage[mem=7000:duration=30s]}",
    "1*{rusage[lic=1]}+{span[ptile=2] rusage[mem=500/task]}",
    "{select[big] rusage[mem=12000]} || {rusage[mem=4000/task]}@1",
    "same[big] rusage[lic=1:duration=20s]",
    "select[mem>100] rusage[tmp=6000/job]",
    "cu[maxcus=1]",
    "cu[excl]",
    "cu[balance] rusage[mem=700/task]",
    "2*{cu[pref=bestfit]}+1*{}",
    "{1*{select[big]}+4*{span[hosts=1]}} || {span[ptile=1]}",
    "affinity[core(1)]",
    "order[binpack] rusage[mem=700]",
    "order[spread]",
    "affinity[thread(1):distribute=balance]",
    "affinity[core(1,exclusive=(socket,alljobs)):cpubind=socket]",
    "1*{affinity[core(2)]}+{affinity[thread(1)] rusage[mem=5]}",
]
GPUS = ["", "", "", "num=1", "num=2:j_exclusive=yes", "num=1/task:mode=exclusive_process", "num=2"]

jobs = st.fixed_dictionaries(
    {
        "user": st.sampled_from(["alice", "bob", "carol"]),
        "queue": st.sampled_from(["normal", "night", "short"]),
        "slots": st.sampled_from([1, 1, 1, 2, 3, 5, 8, 40]),
        "max_slots": st.sampled_from([1, 4, 9]),
        "resreq": st.sampled_from(RESREQS),
        "gpu": st.sampled_from(GPUS),
        "exclusive": st.sampled_from([False, False, False, True]),
        "hosts": st.sampled_from([(), (), ("h1", "h2+3"), ("left+1", "others"), ("h0!", "h3")]),
        "priority": st.sampled_from([-1, 5]),
        "begin": st.sampled_from([0.0, 0.0, 0.0, 1_000_050.0]),
    }
)
arrays = st.sampled_from(["", "", "1-7", "1-30:3"])
actions = st.one_of(
    st.tuples(st.just("submit"), jobs, arrays, st.sampled_from([0, 0, 2])),
    st.tuples(st.just("submit"), jobs, arrays, st.just(0)),
    st.tuples(st.just("step")),
    st.tuples(st.just("drop")),
    st.tuples(st.just("finish"), st.integers(0, 50)),
    st.tuples(st.just("load"), st.sampled_from(NAMES), st.floats(0, 2), st.sampled_from([500.0, 9_000.0, 16_000.0])),
    st.tuples(st.just("switch"), st.sampled_from(NAMES), st.booleans()),
    st.tuples(st.just("queue"), st.sampled_from(["normal", "night"]), st.booleans()),
    st.tuples(st.just("later"), st.sampled_from([10.0, 40.0])),
)
limits = st.lists(
    st.sampled_from(
        [
            Limit(name="a", users=("alice",), slots=6),
            Limit(name="b", queues=("night",), jobs=3),
            Limit(name="c", hosts=("h1", "h2"), slots=5),
            Limit(name="d", hosts=("all",), per_host=True, per_user=True, jobs=2),
            Limit(name="e", mem=12_000.0, per_user=True),
            Limit(name="f", per_host=True, slots=2),
            Limit(name="g", per_host=True, mem=9_000.0),
            Limit(name="h", per_host=True, resources=(("ngpus_physical", 1.0),)),
            Limit(name="i", hosts=("h2", "h3"), mem=10_000.0, per_user=True),
            Limit(name="j", hosts=("h0", "h4"), jobs=1),
        ]
    ),
    max_size=2,
    unique=True,
)
confs = st.fixed_dictionaries(
    {
        "short": st.fixed_dictionaries(
            {
                "qjob_limit": st.sampled_from([None, 7]),
                "ujob_limit": st.sampled_from([None, 3]),
                "hjob_limit": st.sampled_from([None, 1]),
                "pjob_limit": st.sampled_from([None, 0.5]),
            }
        ),
        "limits": limits,
        "by_slot": st.booleans(),
        "pause": st.sampled_from([None, None, 1]),
        "users": st.sampled_from([(), (UserConfig(name="bob", max_jobs=4, slots_per_processor=0.5),)]),
    }
)


def make_world(conf: dict[str, Any]) -> World:
    world = World()
    world.configure(
        queues=(
            QueueConfig(name="normal", priority=30),
            QueueConfig(
                name="night",
                priority=30,
                hosts=("all", "~h0"),
                res_req="rusage[mem=100]",
                job_accept_interval=conf["pause"],
            ),
            QueueConfig(name="short", priority=40, hosts=("left", "h5+2"), **conf["short"]),
        ),
        host_groups=(("left", ("h0", "h1", "h2")), ("r1", ("h1", "h2")), ("r2", ("h4", "h0", "h5"))),
        hosts=tuple(
            HostConfig(
                name=name,
                slots=[None, 3, -1, 2, 8, 4][at],
                user_job_limit=[None, None, None, None, 3, None][at],
                resources=(("big", ""), ("color", "red")) if at in (2, 4) else (),
            )
            for at, name in enumerate(NAMES)
        ),
        resources=(
            ResourceConf(name="lic", kind="numeric", consumable=True, locations=((3.0, ("all",)),)),
            ResourceConf(name="big"),
            ResourceConf(name="color", kind="string"),
        ),
        limits=tuple(conf["limits"]),
        users=conf["users"],
        params=Params(
            parallel_sched_by_slot=conf["by_slot"],
            compute_unit_types=("rack",),
            units=(UnitConf("r1", "rack"), UnitConf("r2", "rack")),
        ),
    )
    for at, name in enumerate(NAMES):
        world.hosts(name, slots=4, gpus=2 if at in (1, 2) else 0, topology="" if at == 5 else regular(2, 1, 2, 2))
    return world


def act(world: World, action: tuple[Any, ...]) -> None:
    match action:
        case ("submit", fields, array, limit):
            world.submit(array=array, limit=limit if array else 0, **fields)
        case ("finish", at):
            running = list(world.cluster.started)
            if running:
                world.finish(running[at % len(running)])
        case ("load", name, r1m, mem):
            world.load(name, r1m=r1m, r15s=r1m, mem=mem)
        case ("switch", name, closed):
            world.host_switch(name, closed)
        case ("queue", name, active):
            world.queue_switch(name, active=active)
        case ("later", seconds):
            world.later(seconds)


def check_world(world: World) -> None:
    """Nothing is given twice and nothing beyond its limit."""
    cluster = world.cluster
    gpus: Counter[str] = Counter()
    for name, use in cluster.use.hosts.items():
        most = cluster.slots_of(name)
        assert most < 0 or use.slots <= most
        assert use.exclusive == 0 or len(use.jobs) <= 1
        assert use.reserved.get("mem", 0.0) <= cluster.hosts.rows[name].facts.max_mem
        assert use.reserved.get("tmp", 0.0) <= 10_000
    licences = sum(use.reserved.get("lic", 0.0) for use in cluster.use.hosts.values())
    assert licences <= 3
    for key in cluster.started:
        job = cluster.jobs.rows[key]
        spec = cluster.specs.rows[job.spec]
        assert job.run is not None
        assert job.state is JobState.RUN
        assert spec.slots <= sum(part.slots for part in job.run.parts) <= max(spec.slots, spec.max_slots)
        for part in job.run.parts:
            if spec.gpu is not None:
                wanted = (spec.gpu.num or 1) * (part.slots if spec.gpu.per == "task" else 1)
                assert len(set(part.gpus)) == wanted
                gpus.update({uuid: 1000 if is_exclusive(spec.gpu) else 1 for uuid in part.gpus})
    assert all(count <= 1000 for count in gpus.values())
    for name, queue in cluster.queue_conf.items():
        assert queue.qjob_limit is None or sum(cluster.use.queues[name][2:]) <= queue.qjob_limit
    for array in cluster.arrays.rows.values():
        assert not array.limit or cluster.use.array_running.get(array.job, 0) <= array.limit


def same_why(plan: Plan, fresh: Plan) -> None:
    for number, why in plan.why.items():
        if number in fresh.why:
            assert why.reasons == fresh.why[number].reasons


@settings(max_examples=examples(120))
@given(confs, st.lists(actions, min_size=3, max_size=30))
def test_plans_are_sound_and_do_not_depend_on_memory(conf, story):
    world = make_world(conf)
    columns, hurried = SchedulerCache(few=1), SchedulerCache(few=1)
    for action in [*story, ("step",)]:
        if action[0] not in ("step", "drop"):
            act(world, action)
            continue
        plan = world.schedule()
        fresh = world.schedule(SchedulerCache())
        by_columns = world.schedule(columns)
        fresh_columns = world.schedule(SchedulerCache(few=1))
        assert plan.placements == fresh.placements == by_columns.placements == fresh_columns.placements
        with patch.object(still_blocked, "LOOKS", 0):
            assert world.schedule(hurried).placements == fresh.placements
        # a class that is blocked by something else is not asked about pauses that began since
        assert plan.wake_at == fresh.wake_at or conf["pause"]
        assert fresh.placements or fresh.wake_at == fresh_columns.wake_at
        assert fresh.why == fresh_columns.why
        assert plan.why_job == fresh.why_job == fresh_columns.why_job
        same_why(plan, fresh)
        same_why(by_columns, fresh)
        # accepted whole on the very version it was made on, and only once
        if action[0] == "step":
            assert len(world.accept(plan)) == len(plan.placements)
            assert accept_plan(world.cluster, plan, world.now, "again") == []
        check_world(world)
    check_invariants(world.cluster)


@pytest.mark.parametrize("gpu", ["", "num=1", "num=1/task"])
@pytest.mark.parametrize("slots", [1, 4])
def test_what_is_reserved_once_a_job_is_there_on_its_first_host(slots: int, gpu: str) -> None:
    limits: dict[str, None] = dict.fromkeys(("qjob_limit", "ujob_limit", "hjob_limit", "pjob_limit"))
    world = make_world({"short": limits, "limits": [], "by_slot": False, "pause": None, "users": ()})
    for _ in range(7):
        world.submit(slots=slots, resreq="rusage[mem=6000/job]", gpu=gpu)
    plan = world.schedule()
    assert plan.placements
    assert len(world.accept(plan)) == len(plan.placements)


@pytest.mark.parametrize("few", [1, 100])
def test_a_job_that_keeps_a_closed_host_for_itself_takes_no_slots_from_the_others(few: int) -> None:
    world = World()
    world.configure(
        queues=(QueueConfig(name="normal", priority=30), QueueConfig(name="urgent", priority=40)),
        host_groups=(("r1", ("h1", "h2")),),
        params=Params(compute_unit_types=("rack",), units=(UnitConf("r1", "rack"),)),
    )
    for name in ("h0", "h1", "h2"):
        world.hosts(name, slots=4)
    world.host_switch("h2", True)
    world.submit(queue="urgent", resreq="cu[excl]")
    world.submit(array="1-4")
    plan = world.schedule(SchedulerCache(few=few))
    assert sorted(part.host for placed in plan.placements for part in placed.parts) == ["h0"] * 4 + ["h1"]
