"""Preemption: whose place a job takes, how, and when the victims go on."""

from __future__ import annotations

import pytest

from config.model.queue import QueueConfig
from config.model.values import Limits, Preemption, Thresholds
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.control import control
from lavad.core.lang.asks import Caller, Resume, Select, Stop
from lavad.core.lang.states import JobState
from lavad.core.site.conf import Params, ResourceConf
from tests.support.worlds.preempting import HIGH, LOW, REQUEUE, run, states, step, world_of


def test_a_victim_is_suspended_and_goes_on_when_its_slots_are_free() -> None:
    world = world_of()
    (low,) = run(world, queue="low", slots=4)
    high = world.submit(queue="high", slots=2)
    step(world)
    assert states(world, low, high) == ["SSUSP", "RUN"]
    assert world.cluster.jobs.rows[low].preempted_for == high
    later = world.submit(queue="low", slots=1)
    step(world)
    assert states(world, low, later) == ["SSUSP", "PEND"], "what is free is the victim's, not a lower job's"
    world.finish(high)
    step(world)
    assert states(world, low, later) == ["RUN", "PEND"]
    assert world.cluster.jobs.rows[low].preempted_for == 0


def test_the_youngest_job_goes_first_and_no_more_than_needed() -> None:
    world = world_of()
    lows = run(world, 4, queue="low")
    high = world.submit(queue="high", slots=2)
    plan = step(world)
    assert states(world, *lows, high) == ["RUN", "RUN", "SSUSP", "SSUSP", "RUN"]
    assert len(plan.preemptions) == 2


def test_what_is_of_no_use_is_left_alone() -> None:
    """The youngest would not help, as it is on a host that the job may not use."""
    world = world_of(hosts=("h1", "h2"), slots=2)
    (old,) = run(world, queue="low", slots=2, hosts=("h1",))
    (young,) = run(world, queue="low", slots=2, hosts=("h2",))
    high = world.submit(queue="high", slots=2, hosts=("h1",))
    step(world)
    assert states(world, old, young, high) == ["SSUSP", "RUN", "RUN"]


def test_nobody_is_preempted_where_it_starts_nothing() -> None:
    world = world_of()
    (middle,) = run(world, queue="low", slots=3)
    world.queues(HIGH, LOW, QueueConfig(name="same", priority=60))
    (same,) = run(world, queue="same", slots=1)
    high = world.submit(queue="high", slots=4)
    plan = step(world)
    assert not plan.preemptions
    assert states(world, middle, same, high) == ["RUN", "RUN", "PEND"]


def test_memory_is_not_given_up_by_a_suspended_job() -> None:
    world = world_of()
    run(world, queue="low", slots=1, resreq="rusage[mem=12000]")
    high = world.submit(queue="high", slots=1, resreq="rusage[mem=8000]")
    assert not step(world).preemptions
    assert states(world, high) == ["PEND"]


def test_a_gang_is_preempted_whole() -> None:
    world = world_of(hosts=("h1", "h2"), slots=2)
    (gang,) = run(world, queue="low", slots=4)
    high = world.submit(queue="high", slots=1)
    step(world)
    assert states(world, gang, high) == ["SSUSP", "RUN"]
    step(world)
    assert states(world, gang) == ["SSUSP"]
    world.finish(high)
    step(world)
    assert states(world, gang) == ["RUN"]


def test_lists_say_who_may_be_preempted() -> None:
    a, b = QueueConfig(name="a", priority=30), QueueConfig(name="b", priority=20)
    world = world_of(QueueConfig(name="high", priority=60, preemption=Preemption(preemptive=True, preempts=(("a", None),))), a, b)
    one, two = run(world, queue="a", slots=1)[0], run(world, queue="b", slots=3)[0]
    high = world.submit(queue="high", slots=1)
    step(world)
    assert states(world, one, two, high) == ["SSUSP", "RUN", "RUN"]


def test_a_preemptable_queue_needs_no_preemptive_one() -> None:
    world = world_of(
        QueueConfig(name="high", priority=60), QueueConfig(name="low", priority=20, preemption=Preemption(preemptable=True))
    )
    (low,) = run(world, queue="low", slots=4)
    high = world.submit(queue="high")
    step(world)
    assert states(world, low, high) == ["SSUSP", "RUN"]


def test_a_preference_goes_before_the_priority() -> None:
    high = QueueConfig(name="high", priority=60, preemption=Preemption(preemptive=True, preempts=(("a", 2), ("b", 1))))
    world = world_of(high, QueueConfig(name="a", priority=30), QueueConfig(name="b", priority=20))
    (one,) = run(world, queue="a", slots=2)
    (two,) = run(world, queue="b", slots=2)
    world.submit(queue="high", slots=1)
    step(world)
    assert states(world, one, two) == ["SSUSP", "RUN"]


def test_a_resumed_job_is_left_alone_for_a_while() -> None:
    world = world_of()
    (low,) = run(world, queue="low", slots=4)
    for turn in range(2):
        high = world.submit(queue="high", slots=4)
        plan = step(world)
        if turn:
            assert not plan.preemptions
            assert plan.wake_at > world.now
            world.now = plan.wake_at
            assert step(world).preemptions
        assert states(world, high) == ["RUN"]
        world.now += 10
        world.finish(high)
        step(world)
        assert states(world, low) == ["RUN"]


def test_requeue_holds_what_the_victim_has_until_it_is_gone() -> None:
    world = world_of(HIGH, REQUEUE, gpus=2)
    (low,) = run(world, queue="low", slots=4, gpu="num=2:j_exclusive=yes")
    high = world.submit(queue="high", slots=2, gpu="num=2:j_exclusive=yes")
    step(world)
    job = world.cluster.jobs.rows[low]
    assert job.run is not None
    assert [(pending.kind, pending.notice) for pending in job.run.pending_signals] == [("requeue", 300)]
    assert world.cluster.use.queues["high"][5] == 2, "shown as reserved"
    thief = world.submit(queue="high", slots=1, priority=99)
    step(world)
    assert states(world, high, thief) == ["PEND", "PEND"]
    world.apply(ev.PartGone(at=world.now, key=low, attempt=1, host="h1"), ev.JobRequeued(at=world.now, key=low))
    step(world)
    assert states(world, high, thief, low) == ["RUN", "RUN", "PEND"]
    assert world.cluster.use.queues["high"][5] == 0


def test_what_is_held_is_let_go_with_its_job() -> None:
    world = world_of(HIGH, REQUEUE)
    (low,) = run(world, queue="low", slots=4)
    high = world.submit(queue="high", slots=4)
    step(world)
    world.apply(ev.JobFinished(at=world.now, key=high, state=JobState.EXIT))
    check_invariants(world.cluster)
    other = world.submit(queue="low")
    step(world)
    assert states(world, other) == ["PEND"], "the victim is still there"
    world.apply(ev.PartGone(at=world.now, key=low, attempt=1, host="h1"), ev.JobRequeued(at=world.now, key=low))
    step(world)
    assert states(world, low) == ["RUN"]


def test_what_is_held_on_a_lost_host_is_let_go() -> None:
    world = world_of(HIGH, REQUEUE, hosts=("h1", "h2"))
    run(world, 2, queue="low", slots=4)
    high = world.submit(queue="high", slots=4)
    step(world)
    host = world.cluster.jobs.rows[high].promised[0].host
    world.apply(ev.HostDown(at=world.now, host=host))
    plan = step(world)
    assert plan.releases == (high,)
    assert step(world).preemptions
    assert world.cluster.jobs.rows[high].promised[0].host != host


def test_an_array_preempts_element_by_element() -> None:
    world = world_of()
    run(world, 4, queue="low")
    world.submit(queue="high", array="1-6")
    plan = step(world)
    assert len(plan.preemptions) == len(plan.placements) == 4


def test_a_queue_stops_when_its_run_window_closes() -> None:
    world = world_of(QueueConfig(name="q", priority=30, run_window="8:00-18:00"))
    a, b = run(world, 2, queue="q")
    world.local = (1, 18 * 3600 + 5)
    plan = step(world)
    assert states(world, a, b) == ["SSUSP", "SSUSP"]
    assert plan.wake_at > world.now
    world.local = (2, 8 * 3600)
    step(world)
    assert states(world, a, b) == ["RUN", "RUN"]


def test_what_outlasts_the_window_does_not_start() -> None:
    world = world_of(QueueConfig(name="q", priority=30, run_window="8:00-18:00"))
    world.local = (1, 17 * 3600)
    long, short = world.submit(queue="q", limits=Limits(run=3700)), world.submit(queue="q", limits=Limits(run=3000))
    step(world)
    assert states(world, long, short) == ["PEND", "RUN"]
    assert world.why_names(long)[0][0] == "QUE_WINDOW_WILL_CLOSE"
    world.queues(QueueConfig(name="q", priority=30, run_window="8:00-18:00", ignore_deadline=True))
    step(world)
    assert states(world, long) == ["RUN"]


def test_load_stops_one_job_at_a_time_and_the_youngest_first() -> None:
    load = Thresholds(sched=(("r1m", 1.0),), stop=(("r1m", 3.0),))
    world = world_of(QueueConfig(name="q", priority=30, thresholds=load))
    a, b = run(world, 2, queue="q")
    world.load("h1", it=0.0, r1m=4.0)
    step(world)
    assert states(world, a, b) == ["RUN", "SSUSP"]
    step(world)
    assert states(world, a, b) == ["RUN", "SSUSP"]
    world.now += Params().sbd_sleep_time
    step(world)
    assert states(world, a, b) == ["SSUSP", "SSUSP"]
    world.load("h1", r1m=2.0)
    world.now += Params().sbd_sleep_time
    step(world)
    assert states(world, a, b) == ["SSUSP", "SSUSP"], "below loadStop, yet beyond loadSched"
    world.load("h1", r1m=0.5)
    step(world)
    assert states(world, a, b) == ["RUN", "SSUSP"]
    world.now += Params().sbd_sleep_time
    step(world)
    assert states(world, a, b) == ["RUN", "RUN"]


def test_sbd_sleep_time_is_between_two_suspensions() -> None:
    load = Thresholds(stop=(("r1m", 3.0),))
    world = world_of(QueueConfig(name="q", priority=30, thresholds=load))
    world.configure(queues=(QueueConfig(name="q", priority=30, thresholds=load),), params=Params(sbd_sleep_time=7))
    a, b = run(world, 2, queue="q")
    world.load("h1", it=0.0, r1m=4.0)
    step(world)
    world.now += 6
    step(world)
    assert states(world, a, b) == ["RUN", "SSUSP"]
    world.now += 1
    step(world)
    assert states(world, a, b) == ["SSUSP", "SSUSP"]


def test_stop_and_resume_conditions() -> None:
    world = world_of(QueueConfig(name="q", priority=30, stop_cond="select[ut>0.9]", resume_cond="select[ut<0.2]"))
    (job,) = run(world, queue="q")
    world.load("h1", it=0.0, ut=0.95)
    step(world)
    assert states(world, job) == ["SSUSP"]
    world.now += Params().sbd_sleep_time
    world.load("h1", ut=0.5)
    step(world)
    assert states(world, job) == ["SSUSP"]
    world.load("h1", ut=0.1)
    step(world)
    assert states(world, job) == ["RUN"]


@pytest.mark.parametrize(
    ("idle", "ignore", "jobs", "stopped"), [(5, False, 1, 0), (0.5, False, 1, 1), (5, True, 1, 1), (5, False, 2, 1)]
)
def test_load_leaves_the_only_job_of_a_host_alone_that_nobody_uses(idle: float, ignore: bool, jobs: int, stopped: int) -> None:
    """LSB_STOP_IGNORE_IT. A second suspension would follow SBD_SLEEP_TIME later."""
    queue = QueueConfig(name="q", priority=30, stop_cond="select[ut>0.9]")
    world = world_of(queue)
    world.configure(queues=(queue,), params=Params(lsb_stop_ignore_it=ignore))
    run(world, jobs, queue="q")
    world.load("h1", it=idle, ut=0.95)
    for _ in range(3):
        step(world)
        world.now += Params().sbd_sleep_time
    assert sum(job.state is JobState.SSUSP for job in world.cluster.jobs.rows.values()) == stopped


def test_a_host_takes_one_job_in_each_interval() -> None:
    world = world_of(QueueConfig(name="q", priority=30, job_accept_interval=1), hosts=("h1", "h2"))
    jobs = [world.submit(queue="q") for _ in range(3)]
    plan = step(world)
    assert states(world, *jobs) == ["RUN", "RUN", "PEND"]
    assert ("HOST_ACCPT_ONE") in [name for name, _ in world.why_names(jobs[2])]
    assert plan.wake_at == world.now + 60
    world.now += 60
    step(world)
    assert states(world, *jobs) == ["RUN", "RUN", "RUN"]


def test_a_new_job_waits_for_its_queues_delay() -> None:
    world = world_of(QueueConfig(name="q", priority=30, new_job_sched_delay=10))
    job = world.submit(queue="q")
    world.submit(queue="q", array="1-3")
    plan = step(world)
    assert not plan.placements
    assert plan.wake_at == world.now + 10
    world.now += 10
    assert len(step(world).placements) == 4
    assert states(world, job) == ["RUN"]


def test_a_held_licence_is_nobody_elses() -> None:
    lic = ResourceConf(name="lic", kind="numeric", consumable=True, locations=((2.0, ("all",)),))
    world = world_of(HIGH, REQUEUE, hosts=("h1", "h2"))
    world.configure(resources=(lic,))
    (low,) = run(world, queue="low", slots=8, resreq="rusage[lic=1]")
    high = world.submit(queue="high", slots=4, resreq="rusage[lic=2]")
    world.submit(queue="high", slots=1, resreq="rusage[lic=1]")
    step(world)
    assert states(world, low, high) == ["RUN", "PEND"]
    world.apply(*(ev.PartGone(at=world.now, key=low, attempt=1, host=host) for host in ("h1", "h2")))
    world.apply(ev.JobRequeued(at=world.now, key=low))
    step(world)
    assert states(world, low, high) == ["PEND", "RUN"]
    assert sum(use.reserved.get("lic", 0.0) for use in world.cluster.use.hosts.values()) == 2.0


def test_a_shared_gpu_that_is_held_whole_is_nobody_elses() -> None:
    world = world_of(HIGH, REQUEUE, gpus=1)
    (low,) = run(world, queue="low", slots=3, gpu="num=1")
    high = world.submit(queue="high", slots=2, gpu="num=1:j_exclusive=yes")
    step(world)
    thief = world.submit(queue="low", slots=1, gpu="num=1")
    step(world)
    assert states(world, low, high, thief) == ["RUN", "PEND", "PEND"]


def test_a_preempted_job_that_its_owner_stopped_and_resumed_waits_for_its_slots() -> None:
    world = world_of()
    (low,) = run(world, queue="low", slots=4)
    high = world.submit(queue="high", slots=4)
    step(world)
    alice = Caller(user="alice", uid=1000, host="h1")
    jobs = Select(ids=[str(low)])
    world.apply(*control.stop(world.cluster, Stop(jobs=jobs), alice, world.now).events)
    assert states(world, low) == ["USUSP"]
    world.apply(*control.resume(world.cluster, Resume(jobs=jobs), alice, world.now).events)
    assert states(world, low) == ["SSUSP"]
    step(world)
    world.finish(high)
    step(world)
    assert states(world, low) == ["RUN"]
