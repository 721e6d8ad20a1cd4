"""``lava why``: the smallest change is the one that brute force finds; places and times are the scheduler's own."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from config.model.queue import QueueConfig
from config.model.values import Limits
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.modify.permitted import Permitted
from lavad.core.job.job import Part, Placed
from lavad.core.job.spec import Spec
from lavad.core.lang.states import JobState
from lavad.core.rules import reserved
from lavad.core.site.conf import Conf, Params
from lavad.sched.ask.estimate import get_queue_position, latest, soonest
from lavad.sched.ask.trial import Moment, starts
from lavad.sched.ask.what_if import find_changes
from tests.support.examples import examples
from tests.support.worlds.world import World


def small(slots: int = 4, mem: int = 8000, hosts: int = 3) -> World:
    world = World(Conf(queues=(QueueConfig("normal"), QueueConfig("night", run_window="1:00-2:00"), QueueConfig("other"))))
    world.configure(params=Params(parallel_sched_by_slot=True))
    world.hosts(*(f"h{at}" for at in range(hosts)), slots=slots, mem=mem)
    return world


def committed(world: World) -> World:
    """Nothing is left to undo, as in a replica between two frames."""
    world.cluster.forget_changes()
    return world


def changes(world: World, key: int) -> list[str]:
    committed(world)
    return [
        change.text
        for change in find_changes(
            Moment(world.cluster, world.soft, world.now, world.local), key, Permitted.of(world.cluster, key)
        )
    ]


def would_start(world: World, key: int, spec: Spec) -> bool:
    """In a world of its own, rebuilt from the events: submitted that way, would it start?"""
    fresh = World(world.cluster.conf, world.now)
    for host in world.cluster.hosts.rows.values():
        fresh.apply(ev.HostJoined(at=fresh.now, host=host.name, facts=host.facts), ev.HostUp(at=fresh.now, host=host.name))
    fresh.soft.load = world.soft.load
    for other in world.cluster.started:
        job = world.cluster.jobs.rows[other]
        assert job.run is not None
        number = fresh.cluster.next_spec
        fresh.apply(ev.SpecAdded(at=fresh.now, spec=number, value=world.cluster.specs.rows[job.spec]))
        fresh.apply(ev.JobSubmitted(at=fresh.now, key=other, spec=number, name="other"))
        parts = tuple(_placed(part) for part in job.run.parts)
        fresh.apply(ev.JobDispatched(at=fresh.now, key=other, attempt=1, uid=f"{other}", parts=parts))
    number = fresh.cluster.next_spec
    fresh.apply(ev.SpecAdded(at=fresh.now, spec=number, value=spec))
    fresh.apply(ev.JobSubmitted(at=fresh.now, key=key, spec=number, name="it"))
    return key in fresh.step()


def _placed(part: Part) -> Placed:
    return Placed(host=part.host, slots=part.slots, gpus=part.gpus, reserved=part.reserved)


@settings(max_examples=examples(60))
@given(
    running=st.lists(st.tuples(st.integers(1, 4), st.sampled_from([0, 1000, 3000, 5000])), max_size=6),
    slots=st.integers(1, 12),
    mem=st.sampled_from([0, 2500, 6000, 9000]),
    span=st.sampled_from(["", "span[hosts=1]", "span[ptile=2]"]),
)
def test_the_changes_are_those_that_brute_force_finds(running: list[tuple[int, int]], slots: int, mem: int, span: str) -> None:
    world = small()
    for count, amount in running:
        world.submit(user="other", slots=count, resreq=f"rusage[mem={amount}]" if amount else "")
        world.step()
    resreq = " ".join(text for text in (f"rusage[mem={mem}]" if mem else "", span) if text)
    key = world.submit(user="me", queue="other", slots=slots, resreq=resreq)
    if key in world.step():
        return
    committed(world)
    before = (dict(world.cluster.jobs.rows), dict(world.cluster.specs.rows), world.cluster.version)
    found = find_changes(Moment(world.cluster, world.soft, world.now, world.local), key, Permitted.of(world.cluster, key))
    assert before == (dict(world.cluster.jobs.rows), dict(world.cluster.specs.rows), world.cluster.version)
    check_invariants(world.cluster)
    spec = world.cluster.spec_of(key)
    for change in found:
        assert would_start(world, key, change.spec), change.text
    # brute force: no larger number of slots starts, and where no number does, none is told
    told = next((change.spec.slots for change in found if change.spec.slots != slots and " and " not in change.text), None)
    best = next((n for n in range(slots - 1, 0, -1) if would_start(world, key, replace(spec, slots=n, max_slots=n))), None)
    if told is not None or best is not None:
        assert told == best or all(" and " in change.text for change in found)
    if span:
        bare = replace(spec, resreq=f"rusage[mem={mem}]" if mem else "")
        assert would_start(world, key, bare) == any(change.text in ("no span[]", "no span[] or -nnodes") for change in found)


@pytest.mark.parametrize(("span", "text"), [("ptile=1", "no span[] or -nnodes"), ("hosts=1", "no span[]")])
def test_a_spread_over_hosts_is_named_as_it_may_have_been_asked_for(span: str, text: str) -> None:
    world = small(hosts=2, slots=2)
    key = world.submit(slots=3, resreq=f"span[{span}]")
    assert world.step() == {}
    assert text in changes(world, key)


def test_memory_is_found_to_the_megabyte() -> None:
    world = small(hosts=1, mem=8000)
    world.submit(resreq="rusage[mem=3000]")
    world.step()
    key = world.submit(user="me", resreq="rusage[mem=6500]")
    assert world.step() == {}
    assert changes(world, key)[0] == 'mem=5000 instead of 6500 (-R "rusage[mem=5000]")'


def test_other_wishes() -> None:
    world = small(hosts=2, slots=2)
    taken = world.submit(slots=2, hosts=("h0",))
    assert world.step() == {taken: {"h0": 2}}
    key = world.submit(user="me", hosts=("h0",))
    assert changes(world, key) == ["any host (no -m)"]
    late = world.submit(user="me", queue="night", begin=world.now + 60)
    assert "queue normal (bswitch normal), and" not in " ".join(changes(world, late))
    assert changes(world, late) == []


def test_two_changes_where_one_is_not_enough() -> None:
    world = small(hosts=2, slots=2)
    world.submit(slots=1, hosts=("h1",))
    world.submit(slots=2, hosts=("h0",))
    world.step()
    key = world.submit(user="me", slots=2, hosts=("h0",))
    assert changes(world, key) == ["any host (no -m), and 1 slot instead of 2 (-n 1)"]


def test_gpus_that_are_shared_or_of_another_kind() -> None:
    world = World()
    world.hosts("h1", slots=8, gpus=2)
    world.submit(gpu="num=1:gmem=100G")
    world.submit(gpu="num=1:gmem=100G")
    world.step()
    asked = {
        "num=2:j_exclusive=yes": ["sharing its GPUs (-gpu j_exclusive=no)"],
        "num=1:gmodel=A100": ["GPUs without gmodel (-gpu)"],
        "num=1:gmem=90G": ["GPUs without gmem (-gpu)"],
        "num=2:glink=yes": ["1 GPU instead of 2 (-gpu num=1)", "GPUs without glink (-gpu)"],
        "num=1:mig=2": ["GPUs without mig (-gpu)"],
        "num=1:mode=exclusive_process": ["no GPU"],
    }
    for gpu, found in asked.items():
        key = world.submit(user="me", gpu=gpu)
        world.step()
        assert [one for one in changes(world, key) if one != "no GPU" or found == ["no GPU"]] == found


def test_a_gpu_job_and_fewer_gpus() -> None:
    world = World()
    world.hosts("h1", slots=8, gpus=4)
    world.submit(gpu="num=3:mode=exclusive_process")
    world.step()
    key = world.submit(user="me", gpu="num=2:mode=exclusive_process")
    assert world.step() == {}
    assert changes(world, key) == ["1 GPU instead of 2 (-gpu num=1)"]


def test_position_counts_elements_and_names_those_before() -> None:
    world = small(hosts=1, slots=1)
    world.submit()
    world.step()
    array = world.submit(array="1-10", user="bob")
    single = world.submit(user="cid")
    mine = world.submit(user="me", queue="other")
    place = get_queue_position(Moment(world.cluster, world.soft, world.now, world.local), mine)
    assert (place.ahead, place.waiting, place.before, place.first) == (0, 1, 11, (array, single))
    third = 3 << 32 | array
    place = get_queue_position(Moment(world.cluster, world.soft, world.now, world.local), third)
    assert (place.ahead, place.waiting, place.before) == (2, 11, 2)


def test_start_is_estimated_from_run_limits() -> None:
    world = small(hosts=1, slots=2)
    for minutes in (30, 60):
        key = world.submit(limits=Limits(run=minutes * 60))
        world.step()
        world.apply(ev.PartStarted(at=world.now, key=key, attempt=1, host="h0", started=world.now))
    world.submit(user="bob", limits=Limits(run=7200))
    mine = world.submit(user="me")
    args = Moment(committed(world).cluster, world.soft, world.now, world.local), mine
    assert not starts(*args)
    assert soonest(*args) == world.now + 1800
    assert latest(*args) == world.now + 3600
    check_invariants(world.cluster)


def test_what_a_job_was_suspended_moves_its_end_whatever_its_run_limit_is_given_for() -> None:
    world = small(hosts=1, slots=1)
    world.configure(params=Params(abs_runlimit=True))
    key = world.submit(limits=Limits(run=1800))
    world.step()
    begin = world.now
    world.apply(ev.PartStarted(at=begin, key=key, attempt=1, host="h0", started=begin))
    world.apply(ev.JobSuspended(at=begin + 10, key=key, state=JobState.SSUSP))
    world.apply(ev.JobSuspended(at=begin + 400, key=key, state=JobState.USUSP, by="alice"))
    world.apply(ev.JobResumed(at=begin + 610, key=key))
    world.later(700)
    mine = world.submit(user="me")
    assert soonest(Moment(committed(world).cluster, world.soft, world.now, world.local), mine) == begin + 1800 + 600
    job = world.cluster.jobs.rows[key]
    assert reserved.end_of(world.cluster, job, world.cluster.specs.rows[job.spec], "h0") == begin + 1800 + 600


def test_what_jobs_reserve_for_a_part_of_their_lives_becomes_free() -> None:
    """rusage[duration=]: also of jobs without a run limit, and of those that start before it."""
    world = small(hosts=1, slots=4)
    world.submit(resreq="rusage[mem=6000:duration=10]")
    world.step()
    before = world.submit(user="bob", resreq="rusage[mem=7000:duration=20]")
    mine = world.submit(user="me", resreq="rusage[mem=5000]")
    moment = Moment(committed(world).cluster, world.soft, world.now, world.local)
    told = soonest(moment, mine), latest(moment, mine)
    assert told == (world.now + 600, world.now + 1800)
    check_invariants(world.cluster)
    assert world.cluster.use.decaying
    world.later(600)
    assert list(world.step()) == [before]
    world.later(1200)
    assert list(world.step()) == [mine]


def test_the_opening_of_a_window_starts_jobs() -> None:
    """Before the first job ends, and where none has a run limit."""
    world = small(hosts=1, slots=2)
    world.submit(limits=Limits(run=100_000))
    world.step()
    mine = world.submit(user="me", queue="night")
    for limited in (True, False):
        moment = Moment(committed(world).cluster, world.soft, world.now, world.local)
        assert soonest(moment, mine) == latest(moment, mine) == world.now + 13 * 3600
        if limited:
            world.finish(next(iter(world.cluster.started)))
    world.later(13 * 3600)
    world.local = (2, 3600)
    assert list(world.step()) == [mine]


def test_without_run_limits_nothing_says_when() -> None:
    world = small(hosts=1, slots=1)
    world.submit()
    world.step()
    mine = world.submit(user="me")
    args = Moment(committed(world).cluster, world.soft, world.now, world.local), mine
    assert soonest(*args) is None
    assert latest(*args) is None


def test_an_element_of_an_array_is_tried_alone() -> None:
    world = small(hosts=1, slots=4)
    world.submit(slots=2)
    world.step()
    array = world.submit(user="me", array="1-3", slots=4)
    key = 1 << 32 | array
    assert changes(world, key) == ["2 slots instead of 4 (-n 2)"]
    check_invariants(world.cluster)
    assert len(world.cluster.arrays.rows[array].pending) == 3
