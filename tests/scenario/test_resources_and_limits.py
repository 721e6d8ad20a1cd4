"""Memory, licences, slots, GPUs and limits: who gets what of them, and why the rest waits."""

from __future__ import annotations

from typing import Any

import pytest

from config.model.cluster import HostConfig, Limit, UserConfig
from config.model.queue import QueueConfig
from lavad.core.lang.ids import key_of
from lavad.core.site.conf import Params, ResourceConf
from lavad.core.site.pend_reason import JOB_RUSAGE, LIMIT_JOBS, LIMIT_SLOTS, QUE_RUSAGE, about, index_names
from lavad.core.site.pend_reason import PendReason as R
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.world import World, one_host

MEM = index_names(World().cluster.conf).index("mem")


def test_reserved_memory_is_not_given_twice():
    world = one_host(8)
    jobs = [world.submit(resreq="rusage[mem=6000]") for _ in range(3)]
    assert list(world.step()) == jobs[:2]
    assert world.why(jobs[2]) == [(JOB_RUSAGE + MEM, 1)]
    world.finish(jobs[0])
    assert list(world.step()) == jobs[2:]


def test_measured_memory_counts_too():
    world = one_host(8)
    world.load("h1", mem=5000.0)
    job = world.submit(resreq="rusage[mem=6000]")
    assert world.step() == {}
    world.load("h1", mem=7000.0)
    assert list(world.step()) == [job]


def test_memory_per_task_and_queue_reservation():
    world = World()
    world.queues(QueueConfig(name="q", res_req="rusage[mem=12000]"), QueueConfig(name="plain"))
    world.hosts("h1", "h2")
    a = world.submit(queue="q")
    b = world.submit(queue="q")
    c = world.submit(queue="q")
    tasks = world.submit(queue="plain", slots=3, resreq="rusage[mem=2000/task]")
    assert world.step() == {a: {"h1": 1}, b: {"h2": 1}, tasks: {"h1": 2, "h2": 1}}
    assert dict(world.why(c)) == {QUE_RUSAGE + MEM: 2}


def test_a_shared_licence_is_counted_over_all_hosts():
    world = World()
    world.configure(resources=(ResourceConf(name="lic", kind="numeric", consumable=True, locations=((2.0, ("all",)),)),))
    world.hosts("h1", "h2", slots=8)
    jobs = [world.submit(resreq="rusage[lic=1]", slots=2) for _ in range(3)]
    assert list(world.step()) == jobs[:2]
    assert world.why(jobs[2]) == [(about(JOB_RUSAGE, "lic", index_names(world.cluster.conf)), 2)]


@pytest.mark.parametrize(
    ("order", "first"),
    [
        ("", "h2"),
        ("order[ut]", "h1"),
        ("order[-ut]", "h3"),
        ("order[mem]", "h3"),
        ("order[-mem]", "h1"),
        ("order[ncpus]", "h2"),
    ],
)
@pytest.mark.parametrize("few", [1, 64])
def test_order(order, first, few):
    world = World()
    world.memory = SchedulerCache(few=few)
    world.hosts("h1", load={"r15s": 1.0, "ut": 0.1, "mem": 3000.0})
    world.hosts("h2", slots=6, load={"r15s": 0.0, "ut": 0.5, "mem": 5000.0})
    world.hosts("h3", load={"r15s": 2.0, "ut": 0.9, "mem": 7000.0})
    job = world.submit(resreq=order)
    assert world.step() == {job: {first: 1}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"slots": 5}, {"h1": 4, "h2": 1}),
        ({"slots": 3, "resreq": "span[hosts=1]"}, {"h1": 3}),
        ({"slots": 4, "resreq": "span[ptile=2]"}, {"h1": 2, "h2": 2}),
        ({"slots": 5, "resreq": "span[ptile=2]"}, {"h1": 2, "h2": 2, "h3": 1}),
        ({"slots": 2, "max_slots": 99}, {"h1": 4, "h2": 4, "h3": 2}),
        ({"slots": 2, "max_slots": 99, "resreq": "span[hosts=1]"}, {"h1": 4}),
        ({"slots": 5, "resreq": "span[hosts=1]"}, None),
        ({"slots": 11}, None),
        ({"slots": 7, "resreq": "span[ptile=2]"}, None),
    ],
)
def test_how_slots_are_filled(fields, expected):
    world = World()
    world.hosts("h1", "h2", slots=4)
    world.hosts("h3", slots=2)
    job = world.submit(**fields)
    assert world.step().get(job) == expected


def test_parallel_jobs_use_no_more_slots_than_cpus_unless_the_site_says_so():
    world = World()
    world.host_conf(HostConfig(name="h1", slots=8))
    world.hosts("h1", "h2", slots=4)
    job = world.submit(slots=7)
    assert world.step() == {job: {"h1": 4, "h2": 3}}
    world.finish(job)
    world.configure(params=Params(parallel_sched_by_slot=True))
    again = world.submit(slots=7)
    assert world.step() == {again: {"h1": 7}}


def test_unlimited_slots():
    world = World()
    world.host_conf(HostConfig(name="h1", slots=-1))
    world.hosts("h1", slots=1)
    world.submit(array="1-50")
    assert len(world.step()) == 50


def test_a_gang_starts_whole_or_not_at_all():
    world = World()
    world.hosts("h1", "h2", slots=4)
    a = world.submit(slots=6)
    b = world.submit(slots=6)
    c = world.submit(slots=2, user="bob")
    assert set(world.step()) == {a, c}
    assert world.why(b) == [(R.HOST_LESS_SLOTS, 1), (R.HOST_JOB_LIMIT, 1)]
    world.finish(a)
    assert set(world.step()) == {b}


def gpus_of(world: World, key: int) -> list[str]:
    run = world.cluster.jobs.rows[key].run
    assert run is not None
    return [uuid for part in run.parts for uuid in part.gpus]


def test_gpus_are_given_by_index_and_never_twice_to_exclusive_jobs():
    world = World()
    world.hosts("cpu", slots=8)
    world.hosts("g1", slots=8, gpus=4)
    a = world.submit(gpu="num=2:j_exclusive=yes")
    b = world.submit(gpu="num=1:mode=exclusive_process")
    c = world.submit(gpu="num=2:j_exclusive=yes")
    assert set(world.step()) == {a, b}
    assert gpus_of(world, a) == ["GPU-g1-0", "GPU-g1-1"]
    assert gpus_of(world, b) == ["GPU-g1-2"]
    assert dict(world.why(c)) == {R.GPU_NONE: 1, R.GPU_BUSY: 1}
    world.finish(a)
    assert list(world.step()) == [c]


def test_shared_gpus_are_shared_least_used_first():
    world = World()
    world.hosts("g1", slots=8, gpus=2)
    jobs = [world.submit(gpu="num=1") for _ in range(3)]
    assert list(world.step()) == jobs
    assert [gpus_of(world, job) for job in jobs] == [["GPU-g1-0"], ["GPU-g1-1"], ["GPU-g1-0"]]


def test_gpus_per_host_and_per_task():
    world = World()
    world.hosts("g1", "g2", slots=4, gpus=4)
    a = world.submit(slots=4, gpu="num=1/task:j_exclusive=yes", resreq="span[ptile=2]")
    b = world.submit(slots=2, gpu="num=2:j_exclusive=yes", resreq="span[ptile=1]")
    assert world.step() == {a: {"g1": 2, "g2": 2}, b: {"g1": 1, "g2": 1}}
    assert [len(gpus_of(world, key)) for key in (a, b)] == [4, 4]


def test_a_gpu_of_a_model_with_memory():
    world = World()
    world.hosts("g1", gpus=1)
    a = world.submit(gpu="num=1:gmodel=H200")
    b = world.submit(gpu="num=1:gmodel=A100")
    c = world.submit(gpu="num=1:gmem=200G")
    assert list(world.step()) == [a]
    assert world.why(b) == [(R.NEVER_GPU_MODEL, 0), (R.GPU_NONE, 1)]
    assert world.why(c) == [(R.NEVER_GPU_MEM, 0), (R.GPU_NONE, 1)]


LIMITS: dict[str, tuple[QueueConfig, dict[str, Any], int, int]] = {
    "QJOB_LIMIT": (QueueConfig(name="q", qjob_limit=2), {}, R.QUE_JOB_LIMIT, 0),
    "UJOB_LIMIT": (QueueConfig(name="q", ujob_limit=2), {}, R.QUE_USR_JLIMIT, 0),
    "PJOB_LIMIT": (QueueConfig(name="q", pjob_limit=0.5), {}, R.QUE_PROC_JLIMIT, 1),
    "HJOB_LIMIT": (QueueConfig(name="q", hjob_limit=2), {}, R.QUE_HOST_JLIMIT, 1),
    "MAX_JOBS": (QueueConfig(name="q"), {"users": (UserConfig(name="alice", max_jobs=2),)}, R.USER_JOB_LIMIT, 0),
    "default": (QueueConfig(name="q"), {"users": (UserConfig(name="default", max_jobs=2),)}, R.USER_JOB_LIMIT, 0),
    "group": (
        QueueConfig(name="q"),
        {"users": (UserConfig(name="g", max_jobs=2),), "user_groups": (("g", ("alice", "bob")),)},
        R.UGRP_JOB_LIMIT,
        0,
    ),
    "JL/P": (QueueConfig(name="q"), {"users": (UserConfig(name="alice", slots_per_processor=0.5),)}, R.USER_PROC_JLIMIT, 1),
    "JL/U": (QueueConfig(name="q"), {"hosts": (HostConfig(name="h1", user_job_limit=2),)}, R.HOST_USR_JLIMIT, 1),
    "SLOTS": (QueueConfig(name="q"), {"limits": (Limit(name="l", users=("alice",), slots=2),)}, LIMIT_SLOTS, 0),
    "JOBS": (QueueConfig(name="q"), {"limits": (Limit(name="l", queues=("q",), jobs=2),)}, LIMIT_JOBS, 0),
    "SLOTS per host": (
        QueueConfig(name="q"),
        {"limits": (Limit(name="l", hosts=("all",), per_host=True, slots=2),)},
        LIMIT_SLOTS,
        1,
    ),
}


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize("array", ["", "1-4"])
def test_limits(name: str, few: int, array: str) -> None:
    queue, changes, reason, hosts = LIMITS[name]
    world = World()
    world.memory = SchedulerCache(few=few)
    world.configure(queues=(queue,), **changes)
    world.hosts("h1", slots=4)
    jobs = [world.submit(array=array) for _ in range(1 if array else 4)]
    started = world.step()
    assert len(started) == 2
    assert world.step() == {}
    assert world.why(jobs[-1]) == [(reason, hosts)]
    world.finish(next(iter(started)))
    assert len(world.step()) == 1


def test_a_parallel_job_beyond_what_a_limit_leaves():
    world = one_host(8)
    world.queues(QueueConfig(name="q", qjob_limit=4, ujob_limit=3))
    world.submit(user="bob", slots=2)
    job = world.submit(slots=3)
    world.step()
    assert world.why(job) == [(R.QUE_PJOB_LIMIT, 0)]


def test_an_array_runs_as_many_at_a_time_as_it_says():
    world = one_host(8)
    array = world.submit(array="1-5", limit=2)
    assert list(world.step()) == [key_of(array, 1), key_of(array, 2)]
    assert world.soft.why_job == {array: R.JOB_ARRAY_LIMIT}
    world.finish(key_of(array, 1))
    assert list(world.step()) == [key_of(array, 3)]
    for index in (2, 3):
        world.finish(key_of(array, index))
    assert list(world.step()) == [key_of(array, 4), key_of(array, 5)]
    assert world.schedule().why_job == {}


def test_an_array_behaves_as_separate_jobs():
    many, array = one_host(3), one_host(3)
    for _ in range(5):
        many.submit()
    array.submit(array="1-5")
    assert len(many.step()) == len(array.step()) == 3


def test_a_job_that_never_fits_says_so_and_lets_others_pass():
    world = World()
    world.hosts("h1", "h2", slots=4)
    never = world.submit(slots=9)
    one = world.submit(slots=5, resreq="span[hosts=1]")
    small = world.submit()
    assert list(world.step()) == [small]
    assert world.why(never)[0] == (R.NEVER_SLOTS, 0)
    assert world.why(one)[0] == (R.NEVER_HOST_SLOTS, 0)
    world.hosts("h3", slots=8)
    assert set(world.step()) == {never, one}


def test_reasons_come_most_frequent_first_with_at_most_twenty_names():
    world = World()
    for at in range(90):
        world.hosts(f"n{at:02d}", slots=2)
    world.host_switch("n00", closed=True)
    job = world.submit(slots=3, resreq="span[hosts=1]")
    world.step()
    (never, none, _), (code, count, names), (other, one, closed) = world.soft.why[world.cluster.get(job).spec].reasons
    assert (never, none, code, count, len(names)) == (R.NEVER_HOST_SLOTS, 0, R.JOB_NO_SPAN, 89, 20)
    assert (other, one, closed) == (R.HOST_DISABLED, 1, ("n00",))


def test_a_blocked_class_is_looked_at_again_only_when_something_changed():
    world = one_host()
    a, b = world.submit(), world.submit(user="bob")
    world.step()
    assert b in world.pending()
    assert world.schedule().why == {}
    world.load("h1", r1m=0.3)
    assert world.schedule().why == {}
    world.finish(a)
    assert list(world.step()) == [b]


@pytest.mark.parametrize("few", [1, 10_000])
def test_many_hosts_by_columns_and_by_a_walk(few):
    world = World()
    for at in range(300):
        world.hosts(f"n{at:03d}", slots=1 + at % 4, mem=4_000 * (1 + at % 3), load={"r15s": at * 37 % 11 / 2})
    world.submit(array="1-200", resreq="rusage[mem=3000]")
    world.submit(slots=100, resreq="span[ptile=4]")
    world.submit(slots=40, resreq="rusage[mem=1000/task]")
    world.submit(slots=1000)
    world.submit(array="1-100:3", user="bob", resreq="select[mem>5000] order[-mem]")
    for _ in range(150):
        world.submit(user="carol", resreq="rusage[mem=7000]")
    kept = SchedulerCache(few=few)
    for _ in range(3):
        plan = world.schedule(kept)
        assert plan.placements == world.schedule(SchedulerCache(few=64)).placements
        assert len(world.accept(plan)) == len(plan.placements)
        for key in list(world.cluster.started)[::3]:
            world.finish(key)
