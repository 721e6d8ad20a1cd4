"""Jobs of chunks under all that may become of them: it has its slot until the last of its jobs is over, and no longer."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.model.queue import QueueConfig
from config.model.values import FairShare
from lavad.core import events as ev
from lavad.core.cluster.accounts import RUNNING, SLOTS
from lavad.core.cluster.invariants import check_invariants
from lavad.core.cluster.usage_index import PEND, RUN, SSUSP, USUSP
from lavad.core.decide.control import control
from lavad.core.decide.control.hosts import switch_hosts
from lavad.core.decide.modify.modify import modify
from lavad.core.decide.modify.switch import switch
from lavad.core.events.apply import apply, apply_all
from lavad.core.job.job import End
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Caller, Hosts, Kill, Migrate, Modify, Requeue, Select, Stop, Switch
from lavad.core.lang.dependency import Question
from lavad.core.lang.ids import job_of, show
from lavad.core.lang.states import JobState, SignalKind
from lavad.core.rules.dependency_eval import counts_of
from lavad.core.rules.effects import SignalPart, StartPart, StopPart, effects_due
from tests.support.examples import examples
from tests.support.worlds.chunks import ChunkWorld
from tests.support.worlds.snapshot import difference, snapshot

ALICE = Caller(user="alice", uid=1000, host="h1")
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["end", "end", "end", "begin", "kill", "gone", "requeue", "force", "batch", "switch", "stop"]),
        st.integers(0, 99),
    ),
    max_size=25,
)


def held(world: ChunkWorld) -> dict[str, int]:
    return {host: use.slots for host, use in world.cluster.use.hosts.items() if use.slots}


def check(world: ChunkWorld) -> None:
    """Each chunk has one slot, and the last of its jobs that are left has it."""
    check_invariants(world.cluster)
    chunks = world.chunks()
    slots: dict[str, int] = {}
    for keys in chunks.values():
        (holder,) = (key for key in keys if world.run_of(key).parts[0].slots)
        assert {*keys} - {holder} <= {*world.run_of(holder).ahead}
        host = world.run_of(holder).parts[0].host
        slots[host] = slots.get(host, 0) + 1
    assert held(world) == slots
    counted = [row[RUN] + row[SSUSP] + row[USUSP] for row in world.cluster.use.queues.values()]
    assert sum(counted) == sum(slots.values())
    assert min((count for row in world.cluster.use.queues.values() for count in row), default=0) >= 0
    assert not world.cluster.use.unheld


def ask(world: ChunkWorld, what: Kill | Requeue | Stop | Switch) -> None:
    """A user's command."""
    cluster, now = world.cluster, world.now
    match what:
        case Kill():
            decided = control.kill(cluster, what, ALICE, now)
        case Requeue():
            decided = control.requeue(cluster, what, ALICE, now)
        case Stop():
            decided = control.stop(cluster, what, ALICE, now)
        case Switch():
            decided = switch(cluster, what, ALICE, now)
    world.apply(*decided.events)


def leaves(world: ChunkWorld, key: int) -> None:
    """Its host has dropped a job that had not begun, as it was asked to."""
    run = world.run_of(key)
    assert SignalKind.KILL in [pending.kind for pending in run.pending_signals] or run.is_ending
    world.hear("gone", key, run.uid, run.parts[0].host)


def finished(world: ChunkWorld, keys: list[int]) -> list[ev.Event]:
    end = End(at=world.now, started=world.now)
    return [ev.JobFinished(at=world.now, key=key, state=JobState.DONE, end=end) for key in keys]


@settings(max_examples=examples(100), deadline=None)
@given(actions=ACTIONS, array=st.booleans())
def test_the_slot_of_a_chunk_is_its_last_jobs(actions: list[tuple[str, int]], array: bool) -> None:
    world = ChunkWorld(4)
    world.queues(world.cluster.conf.queues[0], QueueConfig(name="other"))
    world.submit(array="1-30") if array else [world.submit() for _ in range(30)]
    for action, number in actions:
        world.starts()
        check(world)
        keys = list(world.cluster.started)
        if not keys:
            break
        key = keys[number % len(keys)]
        if action == "begin":
            world.begins(key)
        elif action == "end":
            world.ends(key)
        elif action == "batch":
            some = keys[number % len(keys) :][: 1 + number % 7]
            events = finished(world, some if number % 2 else some[::-1])
            one, other = world.cluster, snapshot(world.cluster)
            apply_all(one, events)
            assert difference(other, snapshot(one))
        elif action == "force":
            ask(world, Kill(jobs=Select(ids=[show(key)]), now=True))
        elif action in ("switch", "stop") and world.cluster.jobs.rows[key].state is not JobState.WAIT:
            chosen = Select(ids=[show(key)])
            ask(world, Switch(jobs=chosen, queue="other") if action == "switch" else Stop(jobs=chosen))
        else:
            ask(world, Requeue(jobs=Select(ids=[show(key)])) if action == "requeue" else Kill(jobs=Select(ids=[show(key)])))
            check(world)
            leaves(world, key)
        check(world)


@pytest.mark.parametrize(
    "order", [range(12), reversed(range(12)), [3, 0, 1, 2, *range(4, 12)]], ids=["in order", "reversed", "last first"]
)
def test_ends_are_folded_together_as_one_by_one(order: list[int]) -> None:
    worlds = [ChunkWorld(3), ChunkWorld(3)]
    places = list(order)
    for world in worlds:
        world.submit(array="1-12")
        world.starts()
    keys = list(worlds[0].cluster.started)
    events = finished(worlds[0], [keys[place] for place in places])
    apply_all(worlds[0].cluster, events)
    for event in events:
        apply(worlds[1].cluster, event)
    assert not difference(snapshot(worlds[0].cluster), snapshot(worlds[1].cluster))
    assert worlds[0].cluster.finished == worlds[1].cluster.finished
    assert held(worlds[0]) == {}


def test_ends_of_jobs_that_waited_are_one_fold() -> None:
    world = ChunkWorld(3)
    world.submit(array="1-12")
    starts = world.starts()
    before = world.cluster.version
    told = finished(world, [job.key for job in starts])
    apply_all(world.cluster, told)
    assert world.cluster.version == before + 12
    assert held(world) == {}


def waiting(world: ChunkWorld) -> list[int]:
    return [key for key in world.cluster.started if world.cluster.jobs.rows[key].state is JobState.WAIT]


def one_chunk() -> ChunkWorld:
    world = ChunkWorld(4, hosts=("h1",), slots=1)
    world.submit(array="1-4")
    world.starts()
    return world


def test_bkill_of_one_that_waits_ends_it_alone() -> None:
    world = one_chunk()
    last = waiting(world)[-1]
    ask(world, Kill(jobs=Select(ids=[show(last)])))
    leaves(world, last)
    assert world.cluster.finished[last].state is JobState.EXIT
    assert (len(world.cluster.started), held(world)) == (3, {"h1": 1})


def test_a_signal_that_would_end_a_running_job_ends_one_that_waits() -> None:
    world = one_chunk()
    key = waiting(world)[0]
    ask(world, Kill(jobs=Select(ids=[show(key)]), signal=15))
    assert [pending.kind for pending in world.run_of(key).pending_signals] == [SignalKind.KILL]


def test_bstop_of_one_that_waits_takes_it_out_of_the_chunk() -> None:
    world = one_chunk()
    key = waiting(world)[1]
    ask(world, Stop(jobs=Select(ids=[show(key)])))
    leaves(world, key)
    assert world.cluster.jobs.rows[key].state is JobState.PSUSP
    assert world.cluster.jobs.rows[key].run is None
    check(world)


def test_bswitch_of_one_that_waits_takes_it_out_of_the_chunk() -> None:
    world = one_chunk()
    conf = world.cluster.conf.queues[0]
    world.queues(conf, type(conf)(name="other"))
    key = waiting(world)[1]
    ask(world, Switch(jobs=Select(ids=[show(key)]), queue="other"))
    leaves(world, key)
    job = world.cluster.jobs.rows[key]
    assert (job.state, world.cluster.specs.rows[job.spec].queue) == (JobState.PEND, "other")
    check(world)


@pytest.mark.parametrize("place", [0, 1, 3], ids=["first", "middle", "last"])
def test_bswitch_of_one_that_has_begun_takes_the_slot_to_the_other_queue(place: int) -> None:
    world = one_chunk()
    conf = world.cluster.conf.queues[0]
    world.queues(conf, type(conf)(name="other"))
    keys = list(world.cluster.started)
    for key in keys[:place]:
        world.ends(key)
    key = keys[place]
    world.begins(key)
    ask(world, Switch(jobs=Select(ids=[show(key)]), queue="other"))
    left = len(keys) - place
    counted = {name: row[PEND] + row[RUN] for name, row in world.cluster.use.queues.items() if any(row)}
    assert counted == ({"other": 1} if left == 1 else {"other": 1, "q": left - 1})
    assert world.cluster.use.queues["other"][RUN] == 1
    assert held(world) == {"h1": 1}
    world.ends(key)
    check(world)
    assert world.cluster.use.queues["other"] == [0] * 6
    assert (len(world.cluster.started), held(world)) == (left - 1, {"h1": 1} if left > 1 else {})


def test_a_lost_host_loses_those_that_wait_too() -> None:
    world = one_chunk()
    for key in list(world.cluster.started):
        world.apply(ev.JobLost(at=world.now, key=key, host="h1"))
    assert {job.state for job in world.cluster.jobs.rows.values()} == {JobState.UNKWN}
    key = list(world.cluster.started)[1]
    world.begins(key)
    world.apply(ev.JobFound(at=world.now, key=key, state=world.cluster.jobs.rows[key].before))
    assert world.cluster.jobs.rows[key].state is JobState.RUN
    check(world)


def test_all_of_a_chunk_are_ordered_at_once_and_a_request_after_its_start() -> None:
    world = one_chunk()
    last = waiting(world)[-1]
    ask(world, Kill(jobs=Select(ids=[show(last)])))
    due = {key: [type(effect) for effect in effects_due(world.cluster.jobs.rows[key])] for key in world.cluster.started}
    assert list(due.values()) == [[StartPart]] * 3 + [[StartPart, SignalPart]]


def test_one_that_waits_has_not_started_for_a_condition() -> None:
    world = one_chunk()
    first, *_, last = world.cluster.started
    question = Question("numstart", op=">", number=0)
    for started in (1, 2):
        counts = counts_of(world.cluster, question, job_of(first))
        assert (counts.pend, counts.start) == (4 - started, started)
        world.begins(last)


def test_bstop_of_one_that_has_begun_meanwhile_suspends_it_and_does_not_run_it_again() -> None:
    world = one_chunk()
    key = waiting(world)[0]
    ask(world, Stop(jobs=Select(ids=[show(key)])))
    run = world.run_of(key)
    world.hear("granted", key, run.uid, "h1", 1, False, "it has begun")
    assert (world.cluster.jobs.rows[key].state, world.run_of(key).pending_signals) == (JobState.USUSP, ())
    world.begins(key)
    assert [type(effect) for effect in effects_due(world.cluster.jobs.rows[key])] == [StopPart]


def test_one_that_was_to_leave_its_chunk_and_has_run_is_not_run_again() -> None:
    world = one_chunk()
    key = waiting(world)[0]
    ask(world, Stop(jobs=Select(ids=[show(key)])))
    world.ends(key, status=256)
    assert world.cluster.finished[key].state is JobState.EXIT
    check(world)


def test_who_stopped_one_that_waits_is_known() -> None:
    world = one_chunk()
    key = waiting(world)[0]
    ask(world, Stop(jobs=Select(ids=[show(key)])))
    leaves(world, key)
    assert world.cluster.jobs.rows[key].stopper == "alice"


def test_bmig_and_a_host_that_is_closed_take_those_that_wait_out_of_the_chunk() -> None:
    world = one_chunk()
    first, second, *others = waiting(world)
    world.apply(*control.migrate(world.cluster, Migrate(jobs=Select(ids=[show(first)])), ALICE, world.now).events)
    leaves(world, first)
    assert world.cluster.jobs.rows[first].state is JobState.PEND
    root = Caller(user="root", uid=0, host="h1")
    world.apply(*switch_hosts(world.cluster, Hosts(hosts=["h1"], close=True, migrate=True), root, world.now).events)
    assert [len(world.run_of(key).pending_signals) for key in (second, *others)] == [1] * (1 + len(others))
    leaves(world, second)
    assert world.cluster.jobs.rows[second].state is JobState.PEND
    check(world)


def test_another_reservation_of_one_without_the_slot_changes_none() -> None:
    world = ChunkWorld(4, hosts=("h1",), slots=1)
    world.submit(array="1-4", resreq="rusage[mem=100]")
    world.starts()
    for key in list(world.cluster.started):
        how = Modify(job=show(key), options={"R": "rusage[mem=200]"})
        world.apply(*modify(world.cluster, how, JobText(command="true"), ALICE, world.now, datetime(2026, 11, 20, 12)).events)
    assert dict(world.cluster.use.hosts["h1"].reserved) == {"mem": 200}


def test_what_users_are_charged_while_jobs_of_chunks_run_is_what_runs() -> None:
    world = ChunkWorld(3, hosts=("h1",), slots=2, share=FairShare(shares=(("default", 1),)))
    world.submit(array="1-6")
    world.starts()
    for key in list(world.cluster.started)[:2]:
        world.begins(key)
    (row,) = world.cluster.accounts.rows.values()
    assert (row[SLOTS], row[RUNNING]) == (2, 2)
