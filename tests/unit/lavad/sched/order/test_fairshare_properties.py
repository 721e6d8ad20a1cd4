"""Fair share against a plain model: each start goes to whoever is first at that moment; a warm scheduler plans as a cold one."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from config.model.queue import QueueConfig
from config.model.values import Aps, FairShare
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.site.conf import Conf, Params
from lavad.sched.order.fairshare import make_tree, queue_policies
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.examples import examples
from tests.support.worlds.world import World

USERS = ("ann", "bob", "cid", "dan", "eve")
GROUPS = (("dev", ("ann", "bob")), ("ops", ("cid", "dan")))
TREES = (
    FairShare(shares=(("default", 1),)),
    FairShare(shares=(("ann", 1), ("bob", 2), ("cid", 3), ("others", 2))),
    FairShare(shares=(("dev", 3), ("ops@", 2), ("default", 1))),
    FairShare(shares=(("dev", 3), ("ops", 2)), cpu_time_factor=0.0),
    FairShare(shares=(("default", 1),), dominant_resources=("slots", "mem")),
    FairShare(shares=(("default", 1),), round_robin=True, cpu_time_factor=0.0, run_time_factor=0.0, run_job_factor=1.0),
)

submissions = st.lists(
    st.tuples(st.sampled_from(USERS), st.integers(0, 2), st.sampled_from([0, 0, 3, 6]), st.integers(0, 3)), max_size=25
)


def site(share: FairShare, aps: Aps | None = None, slots: int = 6) -> World:
    fair = QueueConfig("fair", priority=30, share=share, aps_priority=aps)
    queues = (fair, QueueConfig("plain", priority=30), QueueConfig("top", priority=40))
    conf = Conf(
        queues=queues,
        user_groups=GROUPS,
        group_shares=(("dev", (("ann", 2), ("bob", 1))),),
        params=Params(job_priority_over_time=(1, 600)),
    )
    world = World(conf)
    world.hosts("h1", "h2", slots=slots)
    return world


def submit(world: World, user: str, kind: int, elements: int, wait: int) -> None:
    world.now += wait
    resreq = ("", "rusage[mem=900]", "rusage[mem=2000]")[kind]
    world.submit(user=user, queue="fair", resreq=resreq, array=f"1-{elements}" if elements else "")


@settings(max_examples=examples(150))
@given(share=st.sampled_from(TREES), jobs=submissions, again=submissions)
def test_each_start_goes_to_the_first_at_that_moment(share: FairShare, jobs: list[Any], again: list[Any]) -> None:
    world = site(share)
    for batch in (jobs, again):
        for job in batch:
            submit(world, *job)
        plan = world.schedule()
        _follow(world, plan.placements)
        world.accept(plan)
        check_invariants(world.cluster)
        world.now += 100
        for at, key in enumerate(list(world.cluster.started)):
            if at % 2:
                world.apply(ev.PartStarted(at=world.now, key=key, attempt=1, host=_host(world, key), started=world.now))
            else:
                world.finish(key)


def _host(world: World, key: int) -> str:
    run = world.cluster.jobs.rows[key].run
    assert run is not None
    return run.parts[0].host


def _follow(world: World, placements: Any) -> None:
    """All jobs fit as long as there are slots and memory: the best key must win every time."""
    tree = make_tree(queue_policies(world.cluster.conf)["fair"], world.cluster, world.soft, world.now)
    waiting: dict[tuple[str, int], int] = {}
    for number, pending in world.cluster.pending.items():
        spec = world.cluster.specs.rows[number]
        for key in pending:
            array = world.cluster.arrays.rows.get(key)
            waiting[spec.user, number] = waiting.get((spec.user, number), 0) + (len(array.pending) if array else 1)
    for placement in placements:
        spec = world.cluster.specs.rows[placement.spec]
        node = tree.leaf(spec.user, "")
        mine = tree.key(node) if node is not None else (float("inf"),)
        for (user, number), count in waiting.items():
            other = tree.leaf(user, "")
            # only classes that ask for as much or less surely fit where this one did
            smaller = world.cluster.specs.rows[number].resreq in ("", spec.resreq)
            if count and smaller and other is not None:
                assert mine <= tree.key(other), (spec.user, user)
        waiting[spec.user, placement.spec] -= 1
        if node is not None:
            mem = sum(round(amount * 1024) for part in placement.parts for name, amount in part.reserved if name == "mem")
            tree.charge(node, 1, 0, mem)


APS = Aps(weights=(("FS", 50.0), ("JPRIORITY", 1.0), ("MEM", -0.01)), graces=(("MEM", 5.0),))


@settings(max_examples=examples(80))
@given(share=st.sampled_from(TREES), aps=st.sampled_from([None, APS]), steps=st.lists(submissions, min_size=1, max_size=4))
def test_a_warm_memory_plans_as_an_empty_one(share: FairShare, aps: Aps | None, steps: list[list[Any]]) -> None:
    world = site(share, aps, slots=3)
    for step in steps:
        for job in step:
            submit(world, *job)
            world.submit(user=job[0], queue=("plain", "top")[job[1] % 2])
        cold = world.schedule(SchedulerCache())
        plan = world.schedule()
        assert plan.placements == cold.placements
        world.accept(plan)
        world.now += 50
        for key in list(world.cluster.started)[::3]:
            world.finish(key)
