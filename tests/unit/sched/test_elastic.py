"""Running jobs that grow when slots are free, and give hosts back (rows 2.4, 2.9, 0.12)."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.asks import Caller, Refused, Resize
from lavad.core.charge import used_by
from lavad.core.conf import LimitConf, QueueConf
from lavad.core.decide import report
from lavad.core.decide.hosts import expired, greeted, silent
from lavad.core.decide.resize import resize
from lavad.core.effects import KillPart, StartPart, TellHosts, effects_due
from lavad.core.invariants import check_invariants
from lavad.core.job import End, Job
from lavad.core.resize import slots_of, uid_of
from lavad.core.states import JobState
from tests.support.world import World

ALICE = Caller(user="alice", uid=1000, host="h1")


def elastic(world: World, least: int, most: int, **fields: object) -> int:
    return world.submit(slots=least, max_slots=most, resizable=True, autoresize=True, **fields)


def job_of(world: World, key: int) -> Job:
    return world.cluster.jobs.rows[key]


def run_of(world: World, key: int):  # type: ignore[no-untyped-def]
    run = job_of(world, key).run
    assert run is not None
    return run


def begin(world: World, key: int) -> None:
    """Every host does what is due until all run."""
    for _ in range(4):
        run = run_of(world, key)
        for part in run.parts:
            uid = uid_of(run, part)
            for effect in [one for one in effects_due(job_of(world, key)) if one.host == part.host]:
                if isinstance(effect, StartPart):
                    world.apply(*report.prepared(world.cluster, key, uid, part.host, "a:1", world.now))
                    world.apply(*report.started(world.cluster, key, uid, part.host, 7, world.now, "/", world.now))
                elif isinstance(effect, KillPart):
                    world.apply(*report.gone(world.cluster, key, uid, part.host, world.now))
    check_invariants(world.cluster)


def cycle(world: World) -> list[ev.Event]:
    events = world.accept(world.schedule())
    check_invariants(world.cluster)
    return events


def slots(world: World, key: int) -> dict[str, int]:
    return {part.host: part.slots for part in run_of(world, key).parts}


def started(world: World, key: int) -> None:
    world.step()
    begin(world, key)


def test_it_grows_when_slots_are_free_and_never_beyond_its_maximum() -> None:
    """Rows 2.4, 0.12."""
    world = World()
    world.hosts("h1", "h2", slots=2)
    filler = world.submit(slots=2)
    world.step()
    key = elastic(world, 1, 3)
    started(world, key)
    assert slot_sum(world, key) == 2
    world.finish(filler)
    cycle(world)
    begin(world, key)
    assert slot_sum(world, key) == 3
    assert cycle(world) == []


def slot_sum(world: World, key: int) -> int:
    return sum(slots(world, key).values())


def test_a_plain_job_with_a_range_stays_as_it_is() -> None:
    world = World()
    world.hosts("h1", slots=4)
    filler = world.submit(slots=3)
    world.step()
    key = world.submit(slots=1, max_slots=4)
    world.step()
    world.finish(filler)
    assert cycle(world) == []
    assert slot_sum(world, key) == 1


def test_the_hosts_are_told_once_the_new_ones_run() -> None:
    world = World()
    world.hosts("h1", slots=1)
    key = elastic(world, 1, 2)
    started(world, key)
    world.hosts("h2", slots=1)
    cycle(world)
    assert not [one for one in effects_due(job_of(world, key)) if isinstance(one, TellHosts) and len(one.hosts) > 1]
    begin(world, key)
    told = [one.hosts for one in effects_due(job_of(world, key)) if isinstance(one, TellHosts)]
    assert told == [(("h1", 1, 0), ("h2", 1, 1))] * 2
    assert run_of(world, key).resize is None


def test_waiting_jobs_of_its_own_queue_come_first_and_lower_ones_behind() -> None:
    world = World()
    world.queues(QueueConf(name="high", priority=50), QueueConf(name="low", priority=10))
    world.hosts("h1", slots=1)
    key = elastic(world, 1, 2, queue="high")
    started(world, key)
    low = world.submit(queue="low")
    world.hosts("h2", slots=1)
    plan = world.schedule()
    assert plan.growths
    assert low not in {placement.key for placement in plan.placements}
    high = world.submit(queue="high")
    plan = world.schedule()
    assert [placement.key for placement in plan.placements] == [high]
    assert not plan.growths


def test_a_growth_takes_nothing_of_what_is_held_for_a_waiting_job() -> None:
    world = World()
    world.queues(QueueConf(name="high", priority=50, slot_reserve=100), QueueConf(name="low", priority=10))
    world.hosts("h1", "h2", slots=2)
    key = elastic(world, 1, 4, queue="low", hosts=("h1",))
    filler = world.submit(queue="low", hosts=("h1",))
    started(world, key)
    world.submit(queue="high", slots=4)
    plan = world.schedule()
    assert plan.promises
    assert not plan.growths
    assert filler in world.cluster.jobs.rows


def test_limits_on_slots_hold_and_those_on_jobs_do_not_matter() -> None:
    world = World()
    world.configure(limits=(LimitConf(name="one", jobs=1, slots=3),))
    world.hosts("h1", slots=1)
    key = elastic(world, 1, 8)
    started(world, key)
    world.hosts("h2", slots=8)
    cycle(world)
    begin(world, key)
    assert slot_sum(world, key) == 3
    world.submit()
    assert world.step() == {}


def test_a_refused_host_is_not_the_jobs_end_and_is_tried_again_later() -> None:
    world = World()
    world.hosts("h1", slots=1)
    key = elastic(world, 1, 2)
    started(world, key)
    world.hosts("h2", slots=1)
    cycle(world)
    run = run_of(world, key)
    uid = uid_of(run, run.parts[1])
    assert uid != run.uid
    world.apply(*report.refused(world.cluster, key, uid, "h2", "start", "no room", world.now))
    check_invariants(world.cluster)
    assert slots(world, key) == {"h1": 1}
    assert run_of(world, key).resize is None
    assert cycle(world) == []
    assert world.schedule().wake_at == world.now + 60
    world.now += 61
    assert cycle(world)
    begin(world, key)
    assert slots(world, key) == {"h1": 1, "h2": 1}


def test_a_host_lost_makes_it_smaller_and_the_first_host_ends_it() -> None:
    """Row 2.9: min still holds."""
    world = World()
    world.hosts("h1", "h2", "h3", slots=1)
    key = elastic(world, 2, 3)
    started(world, key)
    first, second, third = (part.host for part in run_of(world, key).parts)
    world.apply(*silent(world.cluster, third, world.now))
    check_invariants(world.cluster)
    assert job_of(world, key).state is JobState.RUN
    assert slots_of(run_of(world, key)) == 2
    world.apply(*silent(world.cluster, second, world.now))
    assert job_of(world, key).state is JobState.UNKWN
    facts = world.cluster.hosts.rows[third].facts
    world.apply(*greeted(world.cluster, third, facts, {}, world.now))
    check_invariants(world.cluster)
    assert set(slots(world, key)) == {first, second}
    facts = world.cluster.hosts.rows[second].facts
    uid = run_of(world, key).uid
    world.apply(*greeted(world.cluster, second, facts, {uid: "running"}, world.now))
    assert job_of(world, key).state is JobState.RUN


def test_a_silent_host_of_a_leased_job_is_fenced_and_has_left() -> None:
    world = World()
    world.hosts("h1", "h2", slots=1)
    key = elastic(world, 1, 2, rerunnable=True)
    started(world, key)
    lost = run_of(world, key).parts[1].host
    world.apply(*silent(world.cluster, lost, world.now))
    world.apply(*expired(world.cluster, lost, world.now))
    check_invariants(world.cluster)
    assert lost not in slots(world, key)
    assert not world.cluster.use.hosts[lost].jobs


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


def released(world: World, key: int, hosts: str, **more: object) -> None:
    ask = Resize(job=str(key), what="release", hosts=hosts, **more)  # type: ignore[arg-type]
    world.apply(*resize(world.cluster, ask, ALICE, world.now).events)
    check_invariants(world.cluster)


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


def test_the_command_of_a_growth_decides_and_its_failure_undoes_it() -> None:
    world = World()
    world.hosts("h1", slots=1)
    key = elastic(world, 1, 2, resize_command="/bin/grow")
    started(world, key)
    world.hosts("h2", slots=1)
    for ok in (False, True):
        cycle(world)
        begin(world, key)
        told = next(one for one in effects_due(job_of(world, key)) if isinstance(one, TellHosts))
        assert (told.command, told.grow, told.changed) == ("/bin/grow", True, (("h2", 1),))
        run = run_of(world, key)
        world.apply(*report.resized(world.cluster, key, run.uid, "h1", told.number, ok, "", world.now))
        begin(world, key)
        world.now += 61
    assert slots(world, key) == {"h1": 1, "h2": 1}
    assert run_of(world, key).parts[1].seat == 2


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
        world.apply(*report.resized(world.cluster, key, run.uid, run.parts[0].host, told.number, ok, "", world.now))
    begin(world, key)
    assert other not in slots(world, key)


def test_asking_for_more_by_hand_and_taking_it_back() -> None:
    world = World()
    world.hosts("h1", slots=1)
    key = world.submit(slots=1, resizable=True)
    started(world, key)
    for what in ("cancel", "request"):
        with pytest.raises(Refused):
            resize(world.cluster, Resize(job=str(key), what=what), ALICE, world.now)
    request = Resize(job=str(key), what="request", least=2, most=3)
    world.apply(*resize(world.cluster, request, ALICE, world.now).events)
    with pytest.raises(Refused, match="pending"):
        resize(world.cluster, request, ALICE, world.now)
    world.hosts("h2", slots=1)
    assert cycle(world) == []
    world.hosts("h3", slots=4)
    cycle(world)
    begin(world, key)
    assert slot_sum(world, key) == 4
    world.apply(*resize(world.cluster, request, ALICE, world.now).events)
    world.apply(*resize(world.cluster, Resize(job=str(key), what="cancel"), ALICE, world.now).events)
    assert cycle(world) == []


def preemptive(world: World) -> None:
    world.queues(
        QueueConf(name="high", priority=50, preemption="PREEMPTIVE"), QueueConf(name="low", priority=10, preemption="PREEMPTABLE")
    )


def settle(world: World, key: int) -> None:
    """Cycles until nothing more happens."""
    for _ in range(4):
        cycle(world)
        begin(world, key)


def test_it_shrinks_for_a_higher_queue_and_keeps_its_minimum() -> None:
    """Row 2.9: shrink on priority need, never below min."""
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
    world = World()
    world.hosts("h1", slots=1)
    key = elastic(world, 1, 2)
    started(world, key)
    world.hosts("h2", slots=1)
    world.now += 100
    cycle(world)
    begin(world, key)
    world.now += 50
    released(world, key, "h2")
    begin(world, key)
    world.now += 10
    run = run_of(world, key)
    assert used_by(run, world.now)[2] == pytest.approx(160 + 50)


def test_the_end_of_the_job_ends_hosts_that_just_join() -> None:
    world = World()
    world.hosts("h1", slots=1)
    key = elastic(world, 1, 2)
    started(world, key)
    world.hosts("h2", slots=1)
    cycle(world)
    run = run_of(world, key)
    end = End(at=world.now, started=world.now - 5)
    world.apply(*report.ended(world.cluster, key, run.uid, "h1", end, True, world.now))
    check_invariants(world.cluster)
    assert key in world.cluster.jobs.rows
    due = effects_due(job_of(world, key))
    assert [type(one) for one in due] == [KillPart]
    world.apply(*report.gone(world.cluster, key, due[0].uid, "h2", world.now))
    assert key not in world.cluster.jobs.rows
    assert world.cluster.finished[key].state is JobState.DONE
