"""Queues that own GPUs, over random stories: what each has, deserves and gives up, counted from the jobs' own records."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.rules import ownership
from lavad.core.rules.ownership import GPUS
from lavad.core.site.conf import Params
from tests.support.examples import examples
from tests.support.worlds.preempting import step
from tests.support.worlds.world import World

TOTAL = 8
queues = st.lists(
    st.fixed_dictionaries(
        {
            "gpu_weight": st.integers(1, 4),
            "gpu_guarantee": st.sampled_from([0, 0, 1, 2]),
            "gpu_capability": st.sampled_from([None, None, 5]),
            "reclaimable": st.booleans(),
            "priority": st.integers(1, 3),
        }
    ),
    min_size=2,
    max_size=3,
)
actions = st.one_of(
    st.tuples(st.just("submit"), st.integers(0, 2), st.sampled_from([1, 1, 2, 4])),
    st.tuples(st.just("burst"), st.integers(0, 2), st.sampled_from([1, 2])),
    st.tuples(st.just("finish"), st.integers(0, 20), st.just(0)),
    st.tuples(st.just("gone"), st.just(0), st.just(0)),
    st.tuples(st.just("step"), st.just(0), st.just(0)),
)


def has(world: World) -> Counter[str]:
    """GPUs that each queue's jobs have or are promised, without those that are being given up."""
    found: Counter[str] = Counter()
    for job in world.cluster.jobs.rows.values():
        parts = job.promised if job.run is None else () if job.preempted_for_good else job.run.parts
        found[world.cluster.spec_of(job.key).queue] += sum(len(part.gpus) for part in parts)
    return found


def gone(world: World) -> None:
    """All that are to give up their GPUs are gone, and wait again."""
    for key in [key for key in world.cluster.suspended if world.cluster.jobs.rows[key].preempted_for_good]:
        run = world.cluster.jobs.rows[key].run
        assert run is not None
        for part in run.parts:
            world.apply(ev.PartGone(at=world.now, key=key, attempt=run.number, host=part.host))
        world.apply(ev.JobRequeued(at=world.now, key=key))


def deserves(world: World) -> dict[str, int]:
    cluster = world.cluster
    return ownership.deal(TOTAL, ownership.claims(cluster, GPUS, ownership.waiting(cluster, GPUS, TOTAL)))


@settings(max_examples=examples(100), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(queues, st.lists(actions, min_size=15, max_size=40))
def test_shares_of_gpus_hold(confs: list[dict[str, Any]], story: list[Any]) -> None:
    names = [f"q{at}" for at in range(len(confs))]
    world = World()
    owners = (QueueConfig(name=name, **conf) for name, conf in zip(names, confs, strict=True))
    world.configure(queues=tuple(owners), params=Params(parallel_sched_by_slot=True))
    world.hosts("h1", "h2", slots=32, gpus=TOTAL // 2)
    by_name = world.cluster.queue_conf
    for kind, number, gpus in story:
        for _ in range({"submit": 1, "burst": 6}.get(kind, 0)):
            world.submit(queue=names[number % len(names)], gpu=f"num={gpus}:j_exclusive=yes", rerunnable=True)
        if kind == "finish" and (running := [key for key in world.cluster.started if key not in world.cluster.suspended]):
            world.finish(running[number % len(running)])
        elif kind == "gone":
            gone(world)
        world.now += 400
        before, deserved = has(world), deserves(world)
        plan = step(world)
        after = has(world)
        had, served = Counter(before), set()
        for one in plan.preemptions:
            victim = world.cluster.spec_of(one.key).queue
            assert by_name[victim].reclaimable
            spec = world.cluster.spec_of(one.beneficiary)
            asking = spec.queue
            if one.beneficiary not in served and spec.gpu is not None:
                # what it has once it is served: those behind it may be beyond what is guaranteed
                had[asking] += spec.gpu.num or 1
                served.add(one.beneficiary)
            guaranteed = had[asking] <= by_name[asking].gpu_guarantee
            assert after[victim] >= deserved[victim] or guaranteed, "nobody is brought below what it deserves"
        for name, conf in by_name.items():
            assert conf.gpu_capability is None or after[name] <= conf.gpu_capability
            alone = all(after[other] <= before[other] for other in names if other != name)
            if alone and after[name] > max(before[name], deserved[name]):
                kept = sum(max(after[other], by_name[other].gpu_guarantee) for other in names if other != name)
                assert after[name] + kept <= TOTAL, "what is guaranteed to others is not lent"
