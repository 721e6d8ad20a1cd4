"""Running jobs that grow when slots are free; what becomes of a growth that is refused, lost or undone."""

from __future__ import annotations

from typing import Any

import pytest

from config.model.cluster import Limit
from config.model.guarantees import Amount, Loan, Pool, ServiceClass
from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.control.hosts import expired, greeted, silent
from lavad.core.decide.control.resize import resize
from lavad.core.job.job import End
from lavad.core.job.resize import slots_of, uid_of
from lavad.core.lang.asks import Refused, Resize
from lavad.core.lang.states import JobState
from lavad.core.rules.effects import KillPart, TellHosts, effects_due
from tests.support.worlds.elastic import ALICE, begin, cycle, elastic, growing, job_of, run_of, slot_sum, slots, started
from tests.support.worlds.world import World


def test_it_grows_when_slots_are_free_and_never_beyond_its_maximum() -> None:
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


@pytest.mark.parametrize("fields", [{"gpu": "num=1:j_exclusive=yes"}, {"resreq": "rusage[mem=10000]"}])
def test_it_grows_on_a_host_where_it_has_what_it_takes_once(fields: dict[str, Any]) -> None:
    world = World()
    world.hosts("h1", slots=4, gpus=1)
    filler = world.submit(slots=3)
    world.step()
    key = elastic(world, 1, 4, **fields)
    started(world, key)
    world.finish(filler)
    cycle(world)
    assert slots(world, key) == {"h1": 4}
    run = run_of(world, key)
    assert (run.parts[0].reserved, len(run.parts[0].gpus)) == ((("mem", 10000.0),) if "resreq" in fields else (), "gpu" in fields)


@pytest.mark.parametrize("lent", [True, False])
@pytest.mark.parametrize("waits", [True, False])
def test_it_grows_into_what_a_pool_lends_at_the_end_of_a_cycle(waits: bool, lent: bool) -> None:
    world = World()
    loan = Loan(queues=("q",)) if lent else None
    world.configure(
        queues=(QueueConfig(name="q"), QueueConfig(name="low", priority=0)),
        service_classes=(ServiceClass(name="gold"),),
        pools=(Pool(name="pool", type="slots", distribution=(("gold", Amount(2)),), loan=loan),),
    )
    world.hosts("h1", slots=4)
    filler = world.submit(slots=2)
    key = elastic(world, 1, 3)
    world.apply(ev.JobHeld(at=world.now, key=key))
    world.step()
    world.finish(filler)
    world.apply(ev.JobReleased(at=world.now, key=key))
    started(world, key)
    if waits:
        world.submit(queue="low", slots=4)
    cycle(world)
    begin(world, key)
    assert slot_sum(world, key) == (3 if lent else 2)


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
    world, key = growing()
    cycle(world)
    assert not [one for one in effects_due(job_of(world, key)) if isinstance(one, TellHosts) and len(one.hosts) > 1]
    begin(world, key)
    told = [one.hosts for one in effects_due(job_of(world, key)) if isinstance(one, TellHosts)]
    assert told == [(("h1", 1, 0), ("h2", 1, 1))] * 2
    assert run_of(world, key).resize is None


def test_waiting_jobs_of_its_own_queue_come_first_and_lower_ones_behind() -> None:
    world = World()
    world.queues(QueueConfig(name="high", priority=50), QueueConfig(name="low", priority=10))
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
    world.queues(QueueConfig(name="high", priority=50, slot_reserve=100), QueueConfig(name="low", priority=10))
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
    world.configure(limits=(Limit(name="one", jobs=1, slots=3),))
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
    world, key = growing()
    cycle(world)
    run = run_of(world, key)
    uid = uid_of(run, run.parts[1])
    assert uid != run.uid
    world.hear("refused", key, uid, "h2", "start", "no room")
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
    """Min still holds."""
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
    world.apply(*expired(world.cluster, lost, [key], world.now))
    check_invariants(world.cluster)
    assert lost not in slots(world, key)
    assert not world.cluster.use.hosts[lost].jobs


def test_the_command_of_a_growth_decides_and_its_failure_undoes_it() -> None:
    world, key = growing(resize_command="/bin/grow")
    for ok in (False, True):
        cycle(world)
        begin(world, key)
        told = next(one for one in effects_due(job_of(world, key)) if isinstance(one, TellHosts))
        assert (told.command, told.grow, told.changed) == ("/bin/grow", True, (("h2", 1),))
        run = run_of(world, key)
        world.hear("resized", key, run.uid, "h1", told.number, ok, "")
        begin(world, key)
        world.now += 61
    assert slots(world, key) == {"h1": 1, "h2": 1}
    assert run_of(world, key).parts[1].node_index == 2


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


def test_the_end_of_the_job_ends_hosts_that_just_join() -> None:
    world, key = growing()
    cycle(world)
    run = run_of(world, key)
    end = End(at=world.now, started=world.now - 5)
    world.hear("ended", key, run.uid, "h1", end, True)
    check_invariants(world.cluster)
    assert key in world.cluster.jobs.rows
    due = effects_due(job_of(world, key))
    assert [type(one) for one in due] == [KillPart]
    world.hear("gone", key, due[0].uid, "h2")
    assert key not in world.cluster.jobs.rows
    assert world.cluster.finished[key].state is JobState.DONE


@pytest.mark.parametrize(("most", "whole"), [(9, {"h1": 3, "h2": 3, "h3": 3}), (8, {"h1": 3, "h2": 3, "h3": 2})])
def test_a_torchrun_has_as_many_slots_on_each_host_as_its_span_says(most: int, whole: dict[str, int]) -> None:
    """What others leave of a host is no place for a part of a replica, when the job starts and when it grows; its maximum may end
    with one."""
    world = World()
    world.hosts("h1", "h2", "h3", slots=4)
    fillers = [world.submit(slots=3, hosts=(host,)) for host in ("h2", "h3")]
    world.step()
    key = elastic(world, 3, most, launch="torchrun(nproc=1)", resreq="span[ptile=3]")
    started(world, key)
    assert slots(world, key) == {"h1": 3}
    assert cycle(world) == []
    for filler in fillers:
        world.finish(filler)
    cycle(world)
    begin(world, key)
    assert slots(world, key) == whole


def test_a_job_of_another_kind_takes_what_is_left_of_a_host() -> None:
    world = World()
    world.hosts("h1", "h2", slots=4)
    world.submit(slots=3, hosts=("h2",))
    world.step()
    key = elastic(world, 3, 9, resreq="span[ptile=3]")
    started(world, key)
    assert slots(world, key) == {"h1": 3, "h2": 1}
