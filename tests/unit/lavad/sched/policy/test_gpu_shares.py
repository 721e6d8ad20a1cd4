"""Queues that own GPUs: what each deserves, what is lent, and how it comes back when its owner asks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from config.model.queue import QueueConfig
from config.model.values import JobAction, JobControl, Preemption, TerminateWhen
from lavad.core import events as ev
from lavad.core.job.spec import Checkpoint
from lavad.core.lang.states import PreemptionAction
from lavad.core.rules import ownership
from lavad.core.rules.ownership import GPUS
from lavad.core.site.conf import Params
from lavad.core.site.pend_reason import PendReason
from tests.support.worlds.preempting import run, step
from tests.support.worlds.world import World

BOTH = (QueueConfig(name="a", gpu_guarantee=2), QueueConfig(name="b", gpu_guarantee=2))


ONE = "num=1:j_exclusive=yes"


def world_of(*queues: QueueConfig, hosts: int = 1, gpus: int = 4, **params: Any) -> World:
    world = World()
    world.configure(queues=queues or BOTH, params=Params(parallel_sched_by_slot=True, **params))
    world.hosts(*(f"h{at}" for at in range(1, hosts + 1)), slots=16, gpus=gpus)
    return world


def submit(world: World, queue: str, count: int = 1, gpu: str = ONE, **fields: Any) -> list[int]:
    return [world.submit(queue=queue, gpu=gpu, **fields) for _ in range(count)]


def has(world: World) -> Counter[str]:
    """GPUs that each queue has or is promised, without those that are about to be given up."""
    found: Counter[str] = Counter()
    for job in world.cluster.jobs.rows.values():
        parts = job.promised if job.run is None else () if job.preempted_for_good else job.run.parts
        found[world.cluster.spec_of(job.key).queue] += sum(len(part.gpus) for part in parts)
    return +found


def three_by_weight() -> World:
    """Eight GPUs: seven jobs of c have one each, and one of b, which reclaimed it; more jobs of both wait."""
    queues = (QueueConfig(name="a", gpu_weight=4), QueueConfig(name="b", gpu_weight=1), QueueConfig(name="c", gpu_weight=4))
    world = world_of(*queues, gpus=8)
    submit(world, "c", 12, rerunnable=True)
    world.now += 400
    step(world)
    submit(world, "b", 6, rerunnable=True)
    world.now += 400
    (victim,) = step(world).preemptions
    attempt = world.cluster.jobs.rows[victim.key].run
    assert attempt is not None
    world.apply(
        ev.PartGone(at=world.now, key=victim.key, attempt=attempt.number, host="h1"), ev.JobRequeued(at=world.now, key=victim.key)
    )
    world.now += 400
    step(world)
    assert has(world) == {"b": 1, "c": 7}
    return world


def test_a_job_of_one_queue_may_let_another_reclaim_what_it_deserves() -> None:
    """No host has changed since, but what each queue deserves (it is dealt out in whole GPUs)."""
    world = three_by_weight()
    submit(world, "a")
    world.now += 400
    step(world)
    assert has(world) == {"a": 1, "b": 2, "c": 5}


def test_a_job_that_waits_for_the_gpus_it_is_promised_asks_for_them_once() -> None:
    """It has them, as far as its queue is concerned."""
    world = three_by_weight()
    (asking,) = submit(world, "a")
    world.now += 400
    step(world)
    assert world.cluster.jobs.rows[asking].promised
    claims = {
        claim.queue: claim.asked for claim in ownership.claims(world.cluster, GPUS, ownership.waiting(world.cluster, GPUS, 8))
    }
    assert claims["a"] == 1


def test_all_gpus_are_lent_but_those_that_are_guaranteed() -> None:
    world = world_of()
    keys = submit(world, "a", 4)
    step(world)
    assert has(world) == {"a": 2}, "two are kept for b, as GUARANTEE says"
    assert world.why(keys[2]) == [(PendReason.QUE_GPUS_GUARANTEE, 0)]
    submit(world, "b", 4)
    step(world)
    assert has(world) == {"a": 2, "b": 2}
    (last,) = submit(world, "b", gpu="num=2:j_exclusive=yes")
    step(world)
    assert world.why(last) == [(PendReason.GPU_BUSY, 1)], "no GPU is free, whosever it is"
    slots_only = world.submit(queue="a")
    step(world)
    assert slots_only in world.cluster.started, "jobs without GPUs are not concerned"


def test_where_no_gpu_is_free_that_is_the_reason() -> None:
    world = world_of(QueueConfig(name="a", gpu_weight=1), QueueConfig(name="b", gpu_weight=1))
    *_, last = submit(world, "a", 5)
    step(world)
    assert has(world) == {"a": 4}
    assert world.why(last) == [(PendReason.GPU_BUSY, 1)]


def test_what_is_lent_by_weight_comes_back_within_one_cycle() -> None:
    world = world_of(QueueConfig(name="a", gpu_weight=1), QueueConfig(name="b", gpu_weight=1))
    lent = submit(world, "a", 4, rerunnable=True)
    for _ in range(4):
        step(world)
        world.now += 400
    assert has(world) == {"a": 4}
    mine = submit(world, "b", 4)
    plan = step(world)
    assert has(world) == {"a": 2, "b": 2}
    assert {one.how for one in plan.preemptions} == {PreemptionAction.MIGRATE}, "suspension would free no GPU"
    assert [one.key for one in plan.preemptions] == lent[:1:-1] or len(plan.preemptions) == 2
    assert not step(world).preemptions
    for one in plan.preemptions:
        world.leave(one.key)
    step(world)
    assert [key for key in mine if key in world.cluster.started] == mine[:2]
    assert has(world) == {"a": 2, "b": 2}
    for _ in range(3):
        world.now += 400
        assert not step(world).preemptions, "it does not go back and forth"


def test_a_gpu_that_jobs_share_is_lent_to_more_of_them_but_not_one_that_is_guaranteed() -> None:
    world = world_of(QueueConfig(name="a"), QueueConfig(name="b", gpu_guarantee=2))
    submit(world, "a", 8, gpu="num=1")
    step(world)
    assert has(world) == {"a": 2}, "the others might take an idle GPU that is kept for b"
    submit(world, "b", 2)
    step(world)
    assert has(world) == {"a": 8, "b": 2}, "when b has its own, those of a share theirs"


def test_jobs_that_would_be_lost_are_left_alone() -> None:
    queues = (QueueConfig(name="a", gpu_weight=1), QueueConfig(name="b", gpu_weight=1))
    world = world_of(*queues)
    submit(world, "a", 4)
    step(world)
    submit(world, "b")
    assert not step(world).preemptions


@pytest.mark.parametrize(
    ("queue", "fields", "how"),
    [
        ({}, {"rerunnable": True}, PreemptionAction.MIGRATE),
        ({}, {"checkpoint": Checkpoint("/ckpt")}, PreemptionAction.MIGRATE),
        ({"job_controls": (JobControl(JobAction.SUSPEND, "brequeue $LSB_JOBID"),)}, {}, PreemptionAction.REQUEUE),
        ({"terminate_when": (TerminateWhen.PREEMPT,)}, {}, PreemptionAction.KILL),
    ],
)
def test_how_a_job_gives_up_its_gpus(queue: dict[str, Any], fields: dict[str, Any], how: PreemptionAction) -> None:
    owners = (QueueConfig(name="a", gpu_weight=1, **queue), QueueConfig(name="b", gpu_weight=1))
    world = world_of(*owners)
    submit(world, "a", 4, **fields)
    step(world)
    submit(world, "b")
    assert [one.how for one in step(world).preemptions] == [how]


def test_a_guarantee_comes_back_from_one_large_job() -> None:
    world = world_of(QueueConfig(name="a", gpu_weight=1), QueueConfig(name="b", gpu_guarantee=2, gpu_weight=1))
    world.configure(queues=(QueueConfig(name="a", gpu_weight=1), QueueConfig(name="b", gpu_weight=1)))
    (whole,) = submit(world, "a", gpu="num=4:j_exclusive=yes", rerunnable=True)
    step(world)
    submit(world, "b", gpu="num=2:j_exclusive=yes")
    assert not step(world).preemptions, "4 would leave a below the 2 that it deserves"
    world.configure(queues=BOTH)
    assert [one.key for one in step(world).preemptions] == [whole]
    world.leave(whole)
    step(world)
    assert has(world) == {"b": 2}
    world.now += 400
    assert not step(world).preemptions, "nor does the large job come back before there is room"


def test_shared_memory_and_capability_of_gpus() -> None:
    world = world_of(QueueConfig(name="a", gpu_capability=3))
    keys = submit(world, "a", 2, gpu="num=2:j_exclusive=yes")
    step(world)
    assert has(world) == {"a": 2}
    assert world.why(keys[1]) == [(PendReason.QUE_GPU_CAPABILITY, 0)]
    tasks = world_of(QueueConfig(name="a", gpu_capability=3))
    submit(tasks, "a", gpu="num=1/task", slots=2, max_slots=4)
    step(tasks)
    assert has(tasks) == {"a": 3}


def test_the_gpus_of_gangs_over_hosts_are_counted_whole() -> None:
    world = world_of(hosts=2, gpus=2)
    submit(world, "a", gpu="num=2:j_exclusive=yes", slots=2, resreq="span[ptile=1]")
    step(world)
    assert has(world) == {}, "4 GPUs on two hosts: two of them are kept for b"
    submit(world, "a", gpu="num=1", slots=2, resreq="span[ptile=1]")
    step(world)
    assert has(world) == {"a": 2}


def test_memory_comes_back_with_the_slots_that_are_guaranteed() -> None:
    world = world_of(QueueConfig(name="a", weight=1), QueueConfig(name="b", weight=1))
    submit(world, "a", 4, gpu="", slots=4, resreq="rusage[mem=4000]", rerunnable=True)
    step(world)
    submit(world, "b", gpu="", slots=4, resreq="rusage[mem=4000]")
    assert [one.how for one in step(world).preemptions] == [PreemptionAction.MIGRATE], "a suspended job keeps its memory"


HIGH = QueueConfig(name="high", priority=60, preemption=Preemption(preemptive=True))
LOW = QueueConfig(name="low", priority=20)


def test_a_preemptive_queue_frees_gpus_where_preemptable_resources_says_so() -> None:
    world = world_of(HIGH, LOW, hosts=2)
    _, young = run(world, 2, queue="low", gpu="num=4:j_exclusive=yes", rerunnable=True)
    submit(world, "high", gpu="num=2:j_exclusive=yes")
    assert not step(world).preemptions
    world.configure(params=Params(parallel_sched_by_slot=True, preemptable_resources=("ngpus_physical",)))
    plan = step(world)
    assert [(one.key, one.how) for one in plan.preemptions] == [(young, PreemptionAction.MIGRATE)], "one is enough, the younger"
    (job,) = (job for job in world.cluster.jobs.rows.values() if job.promised)
    victim = world.cluster.jobs.rows[young].run
    assert victim is not None
    assert job.promised[0].host == victim.parts[0].host
    assert set(job.promised[0].gpus) <= set(victim.parts[0].gpus)


def test_victims_are_those_whose_gpus_help() -> None:
    world = world_of(HIGH, LOW, hosts=2, preemptable_resources=("ngpus_physical", "mem"))
    helps = submit(world, "low", 2, gpu="num=2:j_exclusive=yes", rerunnable=True, hosts=("h1",))
    step(world)
    world.now += 60
    (other,) = run(world, queue="low", gpu=ONE, rerunnable=True, hosts=("h2",))
    (plain,) = run(world, queue="low", hosts=("h1",), rerunnable=True)
    submit(world, "high", gpu="num=4:j_exclusive=yes")
    victims = [one.key for one in step(world).preemptions]
    assert victims == [other], "the job without GPUs is younger, and those on h1 are older"
    assert {plain, *helps} <= set(world.cluster.started)


def test_memory_is_preempted_where_preemptable_resources_says_so() -> None:
    world = world_of(HIGH, LOW)
    world.submit(queue="low", resreq="rusage[mem=12000]", rerunnable=True)
    step(world)
    world.now += 400
    world.submit(queue="high", resreq="rusage[mem=12000]")
    assert not step(world).preemptions
    world.configure(params=Params(parallel_sched_by_slot=True, preemptable_resources=("mem",)))
    assert [one.how for one in step(world).preemptions] == [PreemptionAction.MIGRATE]
