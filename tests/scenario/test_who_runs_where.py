"""Hosts, queues and jobs in; who runs where, and why the rest waits, out."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.conf import HostConf, LimitConf, Params, QueueConf, ResourceConf, Thresholds, UserConf
from lavad.core.ids import key_of
from lavad.core.pend_reason import JOB_RUSAGE, LIMIT_JOBS, LIMIT_SLOTS, LOAD, QUE_RUSAGE, about, index_names
from lavad.core.pend_reason import PendReason as R
from lavad.sched.memory import Memory
from tests.support.world import World

MEM = index_names(World().cluster.conf).index("mem")


def one_host(slots: int = 1) -> World:
    world = World()
    world.hosts("h1", slots=slots)
    return world


def order_of_start(world: World, *jobs: int) -> list[int]:
    """One slot: in which order jobs run."""
    found = []
    for _ in jobs:
        (key,) = world.step()
        found.append(key)
        world.finish(key)
    return found


def test_queue_priority_then_user_priority_then_submission():
    world = one_host()
    world.queues(
        QueueConf(name="low", priority=10), QueueConf(name="high", priority=40), QueueConf(name="same", priority=10)
    )
    first = world.submit(queue="low")
    world.now += 1
    second = world.submit(queue="same")
    wished = world.submit(queue="low", priority=9)
    urgent = world.submit(queue="high")
    assert order_of_start(world, 1, 2, 3, 4) == [urgent, wished, first, second]


def test_btop_and_bbot_move_within_the_queue():
    world = one_host()
    a, b, c = (world.submit(user=user) for user in ("u", "v", "u"))
    world.apply(
        ev.JobMoved(at=world.now, key=c, position=-1.0), ev.JobMoved(at=world.now, key=a, position=1.0, top=False)
    )
    assert order_of_start(world, a, b, c) == [c, b, a]


def test_jobs_of_two_classes_take_turns_as_submitted():
    world = one_host()
    jobs = [world.submit(user=user) for user in "abab"]
    assert order_of_start(world, *jobs) == jobs


def test_a_requeued_job_keeps_its_place():
    world = one_host()
    a, b = world.submit(), world.submit()
    world.step()
    world.apply(ev.PartGone(at=world.now, key=a, attempt=1, host="h1"), ev.JobRequeued(at=world.now, key=a))
    assert list(world.step()) == [a]
    assert world.cluster.jobs.rows[a].attempt == 2
    assert b in world.cluster.jobs.rows


def test_a_held_job_does_not_run():
    world = one_host()
    held = world.submit(held=True)
    assert world.step() == {}
    world.apply(ev.JobReleased(at=world.now, key=held))
    assert list(world.step()) == [held]


def test_begin_time_is_waited_for():
    world = one_host()
    job = world.submit(begin=world.now + 60)
    assert world.step() == {}
    assert world.wake_at == world.now + 60
    assert world.why(job) == [(R.JOB_START_TIME, 0)]
    world.now += 60
    assert list(world.step()) == [job]


def test_after_a_failed_start_a_job_waits_and_avoids_the_host():
    world = one_host(2)
    job = world.submit()
    world.step()
    until = world.now + 10
    world.apply(
        ev.PartRefused(at=world.now, key=job, attempt=1, host="h1", code="cwd", why="no such folder"),
        ev.JobRequeued(at=world.now, key=job, avoid=("h1",), not_before=until),
    )
    other = world.submit()
    assert list(world.step()) == [other]
    assert world.soft.why_job == {job: R.JOB_DELAY_SCHED}
    world.now = until
    assert world.step() == {}
    assert world.soft.why_job[job] == R.JOB_START_FAIL
    world.hosts("h2")
    assert world.step() == {job: {"h2": 1}}


def test_a_closed_queue_dispatches_and_an_inactive_one_does_not():
    world = one_host(4)
    a = world.submit()
    world.queue_switch("normal", open=False)
    assert list(world.step()) == [a]
    world.queue_switch("normal", active=False)
    b = world.submit()
    assert world.step() == {}
    assert world.why(b) == [(R.QUE_INACT, 0)]
    world.queue_switch("normal")
    assert list(world.step()) == [b]


@pytest.mark.parametrize("field", ["dispatch_window", "run_window"])
def test_a_queue_dispatches_within_its_windows(field):
    world = one_host()
    world.queues(QueueConf(name="night", **{field: "20:00-8:00"}))
    job = world.submit()
    assert world.step() == {}
    assert world.wake_at == world.now + 8 * 3600
    assert world.why(job) == [(R.QUE_WINDOW, 0)]
    world.local = (1, 20 * 3600)
    assert list(world.step()) == [job]


def test_a_host_takes_jobs_within_its_window():
    world = one_host()
    world.host_conf(HostConf(name="h1", dispatch_window="20:00-8:00"))
    job = world.submit()
    assert world.step() == {}
    assert world.why(job) == [(R.HOST_WINDOW, 1)]
    assert world.wake_at == world.now + 8 * 3600
    world.local = (1, 21 * 3600)
    assert list(world.step()) == [job]


def test_hosts_that_take_no_jobs_say_why():
    world = World()
    world.host_conf(HostConf(name="login", server=False))
    world.hosts("down", "closed", "silent", "login")
    world.apply(ev.HostDown(at=world.now, host="down"))
    world.host_switch("closed", closed=True)
    del world.soft.load["silent"]
    job = world.submit()
    assert world.step() == {}
    assert dict(world.why_names(job)) == {
        "SBD_UNREACH": ("down",),
        "HOST_DISABLED": ("closed",),
        "LOAD_UNAVAIL": ("silent",),
        "HOST_QUE_MEMB": ("login",),
    }
    world.host_switch("closed", closed=False)
    assert world.step() == {job: {"closed": 1}}


def test_queue_hosts_and_specified_hosts():
    world = World()
    world.hosts("h1", "h2", "h3", "h4")
    world.configure(queues=(QueueConf(name="part", hosts=("left",)),), host_groups=(("left", ("h1", "h2", "h3")),))
    job = world.submit(hosts=("h4", "h2"), slots=5)
    assert world.step() == {}
    assert world.why(job) == [(R.NEVER_SLOTS, 0), (R.HOST_USR_SPEC, 2), (R.HOST_LESS_SLOTS, 1), (R.HOST_QUE_MEMB, 1)]


def test_preferred_hosts_come_first():
    world = World()
    world.hosts("h1", "h2", "h3", slots=1)
    world.load("h2", r15s=5.0)
    assert world.step() == {}
    a = world.submit(hosts=("h2+2", "others"))
    b = world.submit(hosts=("h2+2", "h3+1", "others"))
    assert world.step() == {a: {"h2": 1}, b: {"h3": 1}}


def test_the_first_host_is_the_marked_one():
    world = World()
    world.hosts("h1", "h2", slots=2)
    job = world.submit(hosts=("h1", "h2!"), slots=3)
    assert list(world.step()[job].items()) == [("h2", 2), ("h1", 1)]
    again = world.submit(hosts=("h1", "h2!"))
    assert world.step() == {}
    assert again in world.pending()


def test_an_exclusive_job_is_alone_on_its_host():
    world = World()
    world.hosts("h1", "h2", slots=2)
    a = world.submit(hosts=("h1",))
    alone = world.submit(exclusive=True, user="bob")
    c = world.submit(slots=2)
    assert world.step() == {a: {"h1": 1}, alone: {"h2": 1}}
    assert dict(world.why(c)) == {R.HOST_EXCLUSIVE: 1, R.HOST_LESS_SLOTS: 1}
    d = world.submit(exclusive=True, user="carol")
    world.step()
    assert dict(world.why(d)) == {R.HOST_EXCLUSIVE: 1, R.HOST_NONEXCLUSIVE: 1}


RESOURCES = (
    ResourceConf(name="big"),
    ResourceConf(name="os", kind="string"),
    ResourceConf(name="disks", kind="numeric"),
)


@pytest.mark.parametrize(
    ("resreq", "hosts"),
    [
        ("", {"h1", "h2", "h3"}),
        ("select[big]", {"h2"}),
        ("select[!big]", {"h1", "h3"}),
        ("select[os==linux]", {"h1", "h2"}),
        ("select[disks>=2]", {"h2"}),
        ("select[defined(disks) && ncpus==4]", {"h2", "h3"}),
        ("select[mem>10000]", {"h2", "h3"}),
        ("select[r1m<1.0]", {"h1", "h3"}),
        ("select[hname==h3 || maxmem<9000]", {"h1", "h3"}),
        ("select[type==any]", {"h1", "h2", "h3"}),
    ],
)
@pytest.mark.parametrize("few", [1, 64])
def test_select(resreq, hosts, few):
    world = World()
    world.memory = Memory(few=few)
    world.configure(
        resources=RESOURCES,
        hosts=(
            HostConf(name="h1", resources=(("os", "linux"),)),
            HostConf(name="h2", resources=(("os", "linux"), ("big", ""), ("disks", "2"))),
            HostConf(name="h3", resources=(("os", "bsd"), ("disks", "1"))),
        ),
    )
    world.hosts("h1", mem=8_000)
    world.hosts("h2", load={"r1m": 2.0})
    world.hosts("h3")
    jobs = [world.submit(resreq=resreq, slots=4) for _ in range(3)]
    assert {host for places in world.step().values() for host in places} == hosts
    waiting = [job for job in jobs if job in world.pending()]
    if waiting:
        assert (R.HOST_RES_REQ, 3 - len(hosts)) in world.why(waiting[0])


def test_hosts_are_of_the_submission_hosts_type_unless_said():
    world = World()
    world.hosts("x1", type="X86_64")
    world.hosts("a1", type="ARM64")
    plain = world.submit(from_host="a1", slots=4)
    anywhere = world.submit(from_host="a1", resreq="select[type==any]", slots=4)
    late = world.submit(from_host="a1", user="bob")
    assert world.step() == {plain: {"a1": 4}, anywhere: {"x1": 4}}
    assert dict(world.why(late)) == {R.HOST_JOB_LIMIT: 1, R.HOST_SCHED_TYPE: 1}


def test_load_thresholds_of_queue_and_host():
    world = World()
    world.configure(
        queues=(QueueConf(name="q", thresholds=Thresholds(sched=(("r1m", 0.7), ("mem", 1000.0)))),),
        hosts=(HostConf(name="h3", thresholds=Thresholds(sched=(("ut", 0.5),))),),
    )
    world.hosts("h1", load={"r1m": 0.8})
    world.hosts("h2", load={"mem": 500.0})
    world.hosts("h3", load={"ut": 0.9})
    job = world.submit()
    assert world.step() == {}
    names = index_names(world.cluster.conf)
    assert {code for code, _ in world.why(job)} == {about(LOAD, name, names) for name in ("r1m", "mem", "ut")}
    world.load("h2", mem=1500.0)
    assert world.step() == {job: {"h2": 1}}


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
    world.queues(QueueConf(name="q", resreq="rusage[mem=12000]"), QueueConf(name="plain"))
    world.hosts("h1", "h2")
    a = world.submit(queue="q")
    b = world.submit(queue="q")
    c = world.submit(queue="q")
    tasks = world.submit(queue="plain", slots=3, resreq="rusage[mem=2000/task]")
    assert world.step() == {a: {"h1": 1}, b: {"h2": 1}, tasks: {"h1": 2, "h2": 1}}
    assert dict(world.why(c)) == {QUE_RUSAGE + MEM: 2}


def test_a_shared_licence_is_counted_over_all_hosts():
    world = World()
    world.configure(
        resources=(ResourceConf(name="lic", kind="numeric", consumable=True, locations=((2.0, ("all",)),)),)
    )
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
    world.memory = Memory(few=few)
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
    world.host_conf(HostConf(name="h1", slots=8))
    world.hosts("h1", "h2", slots=4)
    job = world.submit(slots=7)
    assert world.step() == {job: {"h1": 4, "h2": 3}}
    world.finish(job)
    world.configure(params=Params(parallel_by_slot=True))
    again = world.submit(slots=7)
    assert world.step() == {again: {"h1": 7}}


def test_unlimited_slots():
    world = World()
    world.host_conf(HostConf(name="h1", slots=-1))
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
    assert world.why(b) == world.why(c) == [(R.GPU_NONE, 1)]


LIMITS = {
    "QJOB_LIMIT": (QueueConf(name="q", max_slots=2), {}, R.QUE_JOB_LIMIT, 0),
    "UJOB_LIMIT": (QueueConf(name="q", user_limit=2), {}, R.QUE_USR_JLIMIT, 0),
    "PJOB_LIMIT": (QueueConf(name="q", processor_limit=0.5), {}, R.QUE_PROC_JLIMIT, 1),
    "HJOB_LIMIT": (QueueConf(name="q", host_limit=2), {}, R.QUE_HOST_JLIMIT, 1),
    "MAX_JOBS": (QueueConf(name="q"), {"users": (UserConf(name="alice", max_slots=2),)}, R.USER_JOB_LIMIT, 0),
    "default": (QueueConf(name="q"), {"users": (UserConf(name="default", max_slots=2),)}, R.USER_JOB_LIMIT, 0),
    "group": (
        QueueConf(name="q"),
        {"users": (UserConf(name="g", max_slots=2),), "user_groups": (("g", ("alice", "bob")),)},
        R.UGRP_JOB_LIMIT, 0,
    ),
    "JL/P": (QueueConf(name="q"), {"users": (UserConf(name="alice", processor_limit=0.5),)}, R.USER_PROC_JLIMIT, 1),
    "JL/U": (QueueConf(name="q"), {"hosts": (HostConf(name="h1", user_limit=2),)}, R.HOST_USR_JLIMIT, 1),
    "SLOTS": (QueueConf(name="q"), {"limits": (LimitConf(name="l", users=("alice",), slots=2),)}, LIMIT_SLOTS, 0),
    "JOBS": (QueueConf(name="q"), {"limits": (LimitConf(name="l", queues=("q",), jobs=2),)}, LIMIT_JOBS, 0),
    "SLOTS per host": (
        QueueConf(name="q"),
        {"limits": (LimitConf(name="l", hosts=("all",), per_host=True, slots=2),)},
        LIMIT_SLOTS, 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize("array", ["", "1-4"])
def test_limits(name, few, array):
    queue, changes, reason, hosts = LIMITS[name]
    world = World()
    world.memory = Memory(few=few)
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
    world.queues(QueueConf(name="q", max_slots=4, user_limit=3))
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
    kept = Memory(few=few)
    for _ in range(3):
        plan = world.schedule(kept)
        assert plan.placements == world.schedule(Memory(few=64)).placements
        assert len(world.accept(plan)) == len(plan.placements)
        for key in list(world.cluster.started)[::3]:
            world.finish(key)
