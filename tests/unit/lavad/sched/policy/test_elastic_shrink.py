"""Running jobs that give hosts back: by ``bresize release``, and for jobs of a higher queue."""

from __future__ import annotations

import pytest

from config.model.queue import QueueConfig
from config.model.values import JobAction, JobControl, Preemption
from lavad.core import events as ev
from lavad.core.cluster.charge import used_by
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.control.resize import resize
from lavad.core.job.resize import slots_of
from lavad.core.lang.asks import Refused, Resize
from lavad.core.lang.states import JobState
from lavad.core.rules.effects import TellHosts, effects_due
from tests.support.worlds.elastic import (
    ALICE,
    begin,
    cycle,
    elastic,
    growing,
    job_of,
    released,
    run_of,
    settle,
    slot_sum,
    slots,
    started,
)
from tests.support.worlds.world import World


def preemptive(world: World, controls: tuple[JobControl, ...] = ()) -> None:
    world.queues(
        QueueConfig(name="high", priority=50, preemption=Preemption(preemptive=True)),
        QueueConfig(name="low", priority=10, preemption=Preemption(preemptable=True), job_controls=controls),
    )


def test_a_release_frees_a_host_exactly_when_the_part_is_gone() -> None:
    world = World()
    world.hosts("h1", "h2", slots=2)
    key = elastic(world, 1, 4)
    started(world, key)
    other = run_of(world, key).parts[1].host
    with pytest.raises(Refused, match="first execution host"):
        released(world, key, run_of(world, key).parts[0].host)
    released(world, key, other, cancel=True)
    assert world.cluster.use.hosts[other].slots == 2
    assert slots_of(run_of(world, key)) == 2
    begin(world, key)
    assert world.cluster.use.hosts[other].slots == 0
    assert other not in slots(world, key)
    assert cycle(world) == []


def test_what_is_released_after_a_request_that_was_fulfilled_is_not_taken_again() -> None:
    world = World()
    world.hosts("h1", slots=4)
    key = world.submit(slots=2, resizable=True)
    started(world, key)
    request = Resize(job=str(key), what="request", least=1, most=1)
    world.apply(*resize(world.cluster, request, ALICE, world.now).events)
    settle(world, key)
    assert slots(world, key) == {"h1": 3}
    released(world, key, "1*h1")
    settle(world, key)
    assert slots(world, key) == {"h1": 2}
    world.apply(*resize(world.cluster, request, ALICE, world.now).events)
    settle(world, key)
    assert slots(world, key) == {"h1": 3}, "another request is another matter"


def test_release_all_but_some_and_slots_of_a_host_that_stays() -> None:
    world = World()
    world.hosts("h1", "h2", slots=4)
    key = elastic(world, 1, 8, resreq="rusage[mem=100/task]")
    started(world, key)
    first, second = (part.host for part in run_of(world, key).parts)
    released(world, key, f"3*{second}", cancel=True)
    assert slots(world, key) == {first: 4, second: 1}
    assert world.cluster.use.hosts[second].reserved == {"mem": 100.0}
    released(world, key, f"all ~{second}")
    assert slots(world, key) == {first: 1, second: 1}
    for words in ("h9", "0*h1", "9*h1", "~h1", "all h1", "", "*h1", "h1*2"):
        with pytest.raises(Refused):
            released(world, key, words)


def test_the_command_of_a_release_may_refuse_it() -> None:
    world = World()
    world.hosts("h1", "h2", slots=1)
    key = elastic(world, 1, 2, resize_command="/bin/shrink")
    started(world, key)
    before = slots(world, key)
    other = run_of(world, key).parts[1].host
    for ok in (False, True):
        released(world, key, other)
        run = run_of(world, key)
        told = next(one for one in effects_due(job_of(world, key)) if isinstance(one, TellHosts))
        assert (told.grow, told.changed) == (False, ((other, 1),))
        assert slots(world, key) == before
        world.hear("resized", key, run.uid, run.parts[0].host, told.number, ok, "")
    begin(world, key)
    assert other not in slots(world, key)


def test_it_shrinks_for_a_higher_queue_and_keeps_its_minimum() -> None:
    """Shrink on priority need, never below min."""
    world = World()
    preemptive(world)
    world.hosts("h1", "h2", "h3", slots=1)
    key = elastic(world, 2, 3, queue="low")
    started(world, key)
    first = world.submit(queue="high")
    events = cycle(world)
    assert [type(one) for one in events] == [ev.JobShrank, ev.SlotsReserved]
    assert world.cluster.jobs.rows[first].run is None
    settle(world, key)
    assert job_of(world, key).state is JobState.RUN
    assert slot_sum(world, key) == 2
    assert world.cluster.jobs.rows[first].run is not None
    world.submit(queue="high")
    settle(world, key)
    assert slot_sum(world, key) == 2
    assert job_of(world, key).state is JobState.SSUSP


@pytest.mark.parametrize("controls", [(), (JobControl(JobAction.SUSPEND, "brequeue"),)], ids=["suspend", "brequeue"])
def test_hosts_that_leave_for_a_job_are_promised_to_no_other(controls: tuple[JobControl, ...]) -> None:
    """While they leave, the rest of the job is not preempted either, as all that it has would count as its own to give up."""
    world = World()
    preemptive(world, controls)
    world.hosts("h1", "h2", "h3", slots=2)
    key = elastic(world, 2, 6, queue="low")
    started(world, key)
    first = world.submit(queue="high", slots=4)
    assert [type(one) for one in cycle(world)] == [ev.JobShrank, ev.SlotsReserved]
    other = world.submit(queue="high", slots=4)
    assert cycle(world) == []
    settle(world, key)
    check_invariants(world.cluster)
    assert {part.host for part in run_of(world, first).parts} == {"h2", "h3"}
    assert world.cluster.jobs.rows[other].run is None


def test_slots_of_a_large_host_are_free_at_once() -> None:
    world = World()
    preemptive(world)
    world.hosts("h1", slots=8, mem=8000)
    key = elastic(world, 2, 8, queue="low", resreq="rusage[mem=1000/task]")
    started(world, key)
    first = world.submit(queue="high", slots=3, resreq="rusage[mem=1000/task]")
    settle(world, key)
    assert world.cluster.jobs.rows[first].run is not None
    assert slot_sum(world, key) == 5
    assert world.cluster.use.hosts["h1"].reserved == {"mem": 8000.0}


def test_a_job_larger_than_the_surplus_stops_the_whole_job() -> None:
    world = World()
    preemptive(world)
    world.hosts("h1", "h2", slots=2)
    key = elastic(world, 2, 4, queue="low")
    started(world, key)
    world.submit(queue="high", slots=4)
    cycle(world)
    assert job_of(world, key).state is JobState.SSUSP
    assert slot_sum(world, key) == 4


def test_a_stale_shrink_is_dropped() -> None:
    world = World()
    preemptive(world)
    world.hosts("h1", "h2", slots=1)
    key = elastic(world, 1, 2, queue="low")
    started(world, key)
    world.submit(queue="high")
    plan = world.schedule()
    released(world, key, run_of(world, key).parts[1].host)
    assert world.accept(plan) == []


def test_what_is_not_resizable_says_so() -> None:
    world = World()
    world.hosts("h1", slots=1)
    key = world.submit()
    with pytest.raises(Refused, match="not started"):
        released(world, key, "all")
    started(world, key)
    with pytest.raises(Refused, match="not resizable"):
        released(world, key, "all")


def test_slot_seconds_are_those_that_it_had() -> None:
    world, key = growing()
    world.now += 100
    cycle(world)
    begin(world, key)
    world.now += 50
    released(world, key, "h2")
    begin(world, key)
    world.now += 10
    run = run_of(world, key)
    assert used_by(run, world.now)[2] == pytest.approx(160 + 50)
