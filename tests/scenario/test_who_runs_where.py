"""Hosts, queues and jobs in; who runs where, and why the rest waits, out."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from config.model.cluster import HostConfig
from config.model.queue import QueueConfig
from config.model.values import Thresholds
from lavad.core import events as ev
from lavad.core.lang.ids import key_of
from lavad.core.site.conf import ResourceConf
from lavad.core.site.pend_reason import LOAD, about, index_names
from lavad.core.site.pend_reason import PendReason as R
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.world import World, one_host

MEM = index_names(World().cluster.conf).index("mem")


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
        QueueConfig(name="low", priority=10), QueueConfig(name="high", priority=40), QueueConfig(name="same", priority=10)
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
    world.apply(ev.JobMoved(at=world.now, key=c, position=-1.0), ev.JobMoved(at=world.now, key=a, position=1.0, top=False))
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
def test_a_queue_dispatches_within_its_windows(field: str) -> None:
    world = one_host()
    world.queues(replace(QueueConfig(name="night"), **{field: "20:00-8:00"}))
    job = world.submit()
    assert world.step() == {}
    assert world.wake_at == world.now + 8 * 3600
    assert world.why(job) == [(R.QUE_WINDOW, 0)]
    world.local = (1, 20 * 3600)
    assert list(world.step()) == [job]


def test_a_host_takes_jobs_within_its_window():
    world = one_host()
    world.host_conf(HostConfig(name="h1", dispatch_window="20:00-8:00"))
    job = world.submit()
    assert world.step() == {}
    assert world.why(job) == [(R.HOST_WINDOW, 1)]
    assert world.wake_at == world.now + 8 * 3600
    world.local = (1, 21 * 3600)
    assert list(world.step()) == [job]


def test_hosts_that_take_no_jobs_say_why():
    world = World()
    world.host_conf(HostConfig(name="login", server=False))
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
    world.configure(queues=(QueueConfig(name="part", hosts=("left",)),), host_groups=(("left", ("h1", "h2", "h3")),))
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


def test_of_a_group_of_all_hosts_any_may_be_the_first():
    world = World()
    world.hosts("h1", "h2", slots=2)
    world.configure(host_groups=(("every", ("all",)),))
    job = world.submit(hosts=("every!", "h2+1"), slots=3)
    assert world.step()[job] == {"h2": 2, "h1": 1}


def test_all_elements_of_one_slot_start_on_the_marked_host():
    world = World()
    world.hosts("h1", "h2", slots=2)
    job = world.submit(array="1-3", hosts=("h1", "h2!"))
    assert world.step() == {key_of(job, 1): {"h2": 1}, key_of(job, 2): {"h2": 1}}
    assert world.step() == {}


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
    world.memory = SchedulerCache(few=few)
    world.configure(
        resources=RESOURCES,
        hosts=(
            HostConfig(name="h1", resources=(("os", "linux"),)),
            HostConfig(name="h2", resources=(("os", "linux"), ("big", ""), ("disks", "2"))),
            HostConfig(name="h3", resources=(("os", "bsd"), ("disks", "1"))),
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
        queues=(QueueConfig(name="q", thresholds=Thresholds(sched=(("r1m", 0.7), ("mem", 1000.0)))),),
        hosts=(HostConfig(name="h3", thresholds=Thresholds(sched=(("ut", 0.5),))),),
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
