"""Advance reservations in the scheduler and in the check of its plans."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from config.model.cluster import HostConfig
from config.model.queue import QueueConfig
from config.model.values import Limits
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.reserve.reservations import add, turn
from lavad.core.job.spec import Role
from lavad.core.lang.asks import AddReservation, Caller, Refused
from lavad.core.lang.states import JobState, SignalKind
from lavad.core.plan.plan import Plan
from lavad.core.site.conf import Params
from lavad.core.site.pend_reason import PendReason
from lavad.core.site.reservation import Reservation, is_active
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.examples import examples
from tests.support.worlds.world import World

ROOT = Caller(user="root", uid=0, host="h1")
NOON = datetime(2026, 11, 20, 12)


def world_of(*queues: QueueConfig, hosts: int = 1, slots: int = 4, gpus: int = 0) -> World:
    world = World(now=NOON.timestamp())
    world.configure(queues=queues or (QueueConfig(name="normal", priority=30),), params=Params(parallel_sched_by_slot=True))
    world.hosts(*(f"h{at}" for at in range(1, hosts + 1)), slots=slots, gpus=gpus)
    return world


def reserve(world: World, hosts: str = "h1", slots: int = 2, begin: str = "13:00", end: str = "14:00", **more: Any) -> str:
    fields: dict[str, Any] = {"users": "alice"} | more
    if not fields.get("window"):
        fields |= {"begin": begin, "end": end}
    ask = AddReservation(hosts=hosts, slots=slots, **fields)
    local = datetime.fromtimestamp(world.now)
    decided = add(world.cluster, ask, ROOT, world.now, local)
    world.apply(*decided.events)
    return str(decided.answer["name"])


def submit(world: World, slots: int = 1, minutes: int = 0, **fields: Any) -> int:
    return world.submit(slots=slots, limits=Limits(run=minutes * 60 or None), **fields)


def step(world: World) -> Plan:
    plan = world.schedule()
    fresh = world.schedule(SchedulerCache())
    columns = world.schedule(SchedulerCache(few=1))
    for field in ("placements", "preemptions", "resumes", "promises", "wake_at"):
        assert getattr(plan, field) == getattr(fresh, field) == getattr(columns, field), field
    events = world.accept(plan)
    made = len(plan.placements) + len(plan.preemptions) + len(plan.resumes)
    assert len(events) == made, "a plan made on this very version is accepted whole"
    world.soft.why.update(plan.why)
    check_invariants(world.cluster)
    return plan


def runs(world: World, key: int) -> bool:
    return key in world.cluster.started and world.cluster.jobs.rows[key].state is JobState.RUN


def reasons(world: World, key: int) -> set[int]:
    return {code for code, _ in world.why(key)}


def pass_time(world: World, seconds: float) -> None:
    world.now += seconds
    world.apply(*turn(world.cluster, world.now, datetime.fromtimestamp(world.now)).events)


def test_a_job_starts_on_no_slot_that_a_reservation_takes_before_it_could_end() -> None:
    world = world_of()
    reserve(world, slots=3)
    endless = submit(world, 2)
    long = submit(world, 2, 90)
    short = submit(world, 2, 59)
    one = submit(world, 1, user="bob")
    step(world)
    assert [runs(world, key) for key in (endless, long, short, one)] == [False, False, True, True]
    assert reasons(world, endless) == {PendReason.HOST_LESS_DURATION}


@pytest.mark.parametrize("slots", [1, 2])
def test_the_tasks_of_a_job_with_roles_leave_its_slots_alone_too(slots: int) -> None:
    world = world_of(hosts=2)
    roles = (Role(name="one"), Role(name="many", count=3, least=3))
    reserve(world, "h1", slots=4)
    reserve(world, "h2", slots=slots)
    job = submit(world, 4, roles=roles)
    step(world)
    assert not runs(world, job)
    assert set(reasons(world, job)) == {PendReason.HOST_LESS_DURATION}
    pass_time(world, 7200)
    step(world)
    assert runs(world, job)


def test_a_job_with_roles_in_a_reservation_has_its_slots_alone() -> None:
    world = world_of(hosts=2)
    name = reserve(world, "h1 h2", slots=3)
    roles = (Role(name="one"), Role(name="many", count=3, least=1))
    job = submit(world, 2, max_slots=4, roles=roles, reservation=name)
    pass_time(world, 3600)
    step(world)
    assert sum(world.running()[job].values()) <= 3


def test_it_is_only_its_own_jobs_that_start_while_it_is_active() -> None:
    world = world_of()
    name = reserve(world, slots=3)
    own = submit(world, 3, reservation=name)
    more = submit(world, 1, reservation=name, project="other")
    step(world)
    assert reasons(world, own) == {PendReason.HOST_LESS_RSVSLOTS}
    pass_time(world, 3600)
    others = [submit(world, 1, user="bob") for _ in range(2)]
    step(world)
    assert [runs(world, key) for key in (own, more, *others)] == [True, False, True, False]
    assert reasons(world, others[1]) == {PendReason.HOST_JOB_LIMIT}
    world.finish(own)
    step(world)
    assert [runs(world, key) for key in (more, others[1])] == [True, False]
    assert reasons(world, others[1]) == {PendReason.HOST_ADRSV_ACTIVE}
    pass_time(world, 3600)
    step(world)
    assert runs(world, others[1]), "its time is over"


def test_nothing_starts_on_a_host_in_maintenance() -> None:
    world = world_of(hosts=2)
    name = reserve(world, "h1", 0, users="", system=True)
    assert name == "system#0"
    pass_time(world, 3600)
    job = submit(world, 1, minutes=1)
    step(world)
    assert list(world.running()[job]) == ["h2"]
    world.host_conf(HostConfig(name="h1", slots=8), HostConfig(name="h2"))
    more = [submit(world, 1, minutes=1) for _ in range(4)]
    step(world)
    assert [runs(world, key) for key in more] == [True, True, True, False], "slots that it has since got are none either"


def test_a_recurring_one_comes_again() -> None:
    world = world_of()
    reserve(world, slots=4, window="5:13:00-5:14:00")
    first = next(iter(world.cluster.reservations.rows.values()))
    assert (first.begin, first.end) == (world.now + 3600, world.now + 7200), "20 November 2026 is a Friday"
    pass_time(world, 7200)
    second = world.cluster.reservations.rows[first.name]
    assert (second.begin, second.end) == (first.begin + 7 * 86400, first.end + 7 * 86400)


def test_reservations_never_hold_more_of_a_host_than_it_has() -> None:
    world = world_of(hosts=2)
    reserve(world, "h1", 3)
    assert reserve(world, "h1 h2", 2) == "alice#1"
    assert world.cluster.reservations.rows["alice#1"].hosts == (("h1", 1), ("h2", 1))
    with pytest.raises(Refused, match="Not enough processors to be reserved: 0 of 1"):
        reserve(world, "h1", 1)
    reserve(world, "h1", 4, begin="14:00", end="15:00")
    reserve(world, "h1", 4, begin="12:00", end="13:00")


def test_queues_of_the_reservation_may_use_its_hosts_until_it_begins() -> None:
    world = world_of(QueueConfig(name="normal", priority=30), QueueConfig(name="low", priority=20))
    reserve(world, slots=4, queues="low")
    normal, low = submit(world, queue="normal"), submit(world, queue="low")
    step(world)
    assert [runs(world, key) for key in (normal, low)] == [False, True]


def test_a_promise_is_not_made_for_slots_that_are_reserved_then() -> None:
    big = QueueConfig(name="big", priority=50, slot_reserve=100_000)
    world = world_of(big, QueueConfig(name="normal", priority=30))
    first = submit(world, 3, 30, queue="normal")
    step(world)
    assert runs(world, first)
    reserve(world, slots=2)
    job = submit(world, 4, 45, queue="big")
    plan = step(world)
    assert plan.promises[job].start == world.now + 7200, "between 12:30 and 13:00 is too little time"


jobs = st.fixed_dictionaries(
    {
        "slots": st.sampled_from([1, 1, 2, 3, 5]),
        "minutes": st.sampled_from([0, 0, 5, 20, 45, 90]),
        "queue": st.sampled_from(["normal", "big", "fill"]),
        "reservation": st.sampled_from(["", "", "r1", "r2", "r3"]),
        "exclusive": st.sampled_from([False, False, False, True]),
    }
)
reservations = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["r1", "r2", "r3"]),
        "hosts": st.sampled_from(["h1", "h1 h2", "h2 h3", "all"]),
        "slots": st.sampled_from([1, 2, 4, 6]),
        "ahead": st.sampled_from([0, 10, 30, 60]),
        "length": st.sampled_from([10, 20, 60]),
        "open": st.booleans(),
        "no_suspend": st.sampled_from([False, False, True]),
        "system": st.sampled_from([False, False, False, True]),
    }
)
actions = st.one_of(
    st.tuples(st.just("submit"), jobs),
    st.tuples(st.just("submit"), jobs),
    st.tuples(st.just("reserve"), reservations),
    st.tuples(st.just("pass"), st.sampled_from([5, 10, 20])),
    st.tuples(st.just("step"), st.none()),
    st.tuples(st.just("finish"), st.integers(0, 20)),
)


def end_overdue(world: World) -> None:
    """Jobs end when they are told to, and at their run limits at the latest."""
    for key in list(world.cluster.started):
        job = world.cluster.jobs.rows[key]
        limit = world.cluster.specs.rows[job.spec].limits.run
        run = job.run
        assert run is not None
        killed = any(pending.kind is SignalKind.KILL for pending in run.pending_signals)
        if killed or (limit is not None and job.state is JobState.RUN and world.now >= run.dispatched + limit + run.paused):
            world.finish(key)


def check_kept(world: World, started: set[int], had: set[int]) -> None:
    """What starts leaves alone what is reserved, now and later, and no reservation is exceeded by its own jobs.

    What only goes on (it was ``started``, but ``had`` no slots) leaves alone what is reserved now: it began before, and
    gives way when the reservation does; else a job without a run limit would never go on beside one that recurs.
    """
    rows, specs = world.cluster.jobs.rows, world.cluster.specs.rows
    for name, row in world.cluster.reservations.rows.items():
        own: Counter[str] = Counter()
        others: Counter[str] = Counter()
        fresh: set[str] = set()
        at = max(world.now, row.begin)
        for key in world.cluster.started:
            job, spec = rows[key], specs[rows[key].spec]
            assert job.run is not None
            parts = {} if job.preempted_for else {part.host: part.slots for part in job.run.parts}
            end = float("inf") if spec.limits.run is None else job.run.dispatched + job.run.paused + spec.limits.run
            mine = world.cluster.reservations.rows.get(spec.reservation)
            inside = mine is not None and is_active(mine, world.now)
            if mine is not None and inside:
                end = mine.end
            if spec.reservation == name and is_active(row, world.now):
                own.update(parts)
            elif end > at or at == world.now:
                others.update(parts)
                if not inside and key not in (had if is_active(row, world.now) else started):
                    fresh.update(parts)
        for host, slots in row.hosts:
            assert own[host] <= slots
            if host in fresh:
                assert others[host] + slots <= 4, (name, host)


@settings(max_examples=examples(100), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.lists(actions, max_size=25))
def test_reservations_hold_whatever_happens(story: list[tuple[str, Any]]) -> None:
    world = world_of(
        QueueConfig(name="big", priority=50, slot_reserve=100_000),
        QueueConfig(name="fill", priority=40, backfill=True),
        QueueConfig(name="normal", priority=30),
        hosts=3,
    )
    for kind, what in story:
        if kind == "submit":
            submit(world, **what)
        elif kind == "pass":
            pass_time(world, what * 60)
            end_overdue(world)
        elif kind == "finish" and world.cluster.started:
            world.finish(list(world.cluster.started)[what % len(world.cluster.started)])
        elif kind == "reserve":
            try_reserve(world, what)
        started = set(world.cluster.started)
        had = {key for key in started if not world.cluster.jobs.rows[key].preempted_for}
        step(world)
        check_kept(world, started, had)


def try_reserve(world: World, what: dict[str, Any]) -> None:
    times = [datetime.fromtimestamp(world.now + 60 * at) for at in (what["ahead"], what["ahead"] + what["length"])]
    begin, end = (f"{at.month}:{at.day}:{at.hour}:{at.minute}" for at in times)
    fields = {key: value for key, value in what.items() if key not in ("ahead", "length", "slots", "hosts")}
    users = "" if what["system"] else "alice"
    try:
        reserve(world, what["hosts"], what["slots"], begin, end, **fields | {"users": users})
    except Refused:
        pass


def test_events_of_reservations_replay() -> None:
    row = Reservation(name="a#0", users=("a",), hosts=(("h1", 2),), begin=1.0, end=2.0)
    world = world_of()
    world.apply(ev.AdvanceReservationSet(at=world.now, value=row), ev.AdvanceReservationEnded(at=world.now, name="a#0"))
    assert not world.cluster.reservations.rows


CARDS = "num=2:j_exclusive=yes"


def test_the_gpus_of_reserved_hosts_are_kept_from_others() -> None:
    """With hosts for a unit; a reservation of slots keeps no GPUs."""
    world = world_of(hosts=2, gpus=2)
    name = reserve(world, hosts="h1", slots=1, unit="host")
    short, long = submit(world, minutes=30, gpu=CARDS, hosts=("h1",)), submit(world, minutes=90, gpu=CARDS, hosts=("h1",))
    step(world)
    assert short in world.cluster.started, "it ends before the reservation begins"
    world.finish(short)
    step(world)
    assert (PendReason.HOST_LESS_DURATION, 1) in world.why(long)
    world.now += 3600
    mine = submit(world, gpu=CARDS, user="alice", reservation=name)
    step(world)
    assert set(world.cluster.started) == {mine}
    assert world.running()[mine] == {"h1": 1}


def test_gpus_that_others_have_on_reserved_hosts_come_free_for_who_asks_in_time() -> None:
    world = world_of(gpus=2)
    again, lost = submit(world, gpu="num=1:j_exclusive=yes", rerunnable=True), submit(world, gpu="num=1:j_exclusive=yes")
    step(world)
    name = reserve(world, slots=1, unit="host")
    world.now += 3600
    one = submit(world, gpu="num=1:j_exclusive=yes", user="alice", reservation=name)
    step(world)
    jobs = world.cluster.jobs.rows
    assert jobs[again].preempted_for_good, "suspension would leave it its GPU"
    assert jobs[lost].state is JobState.RUN
    assert jobs[one].promised[0].gpus == jobs[again].run.parts[0].gpus  # type: ignore[union-attr]
    world.apply(ev.PartGone(at=world.now, key=again, attempt=1, host="h1"), ev.JobRequeued(at=world.now, key=again))
    step(world)
    assert one in world.cluster.started


@pytest.mark.parametrize("turn", [1, -1])
def test_jobs_beside_a_reservation_that_differ_in_nothing_else(turn: int) -> None:
    """Whichever comes first: one runs where its reservation is, the other elsewhere."""
    world = world_of(hosts=2)
    for host in ("h1", "h2"):
        world.load(host, mem=8_000.0)
    name = reserve(world, hosts="h2", begin="12:10", end="14:00", slots=4)
    pass_time(world, 900)
    fields: list[dict[str, Any]] = [{"reservation": ""}, {"reservation": name}]
    keys = [submit(world, minutes=10, resreq="rusage[mem=100]", **one) for one in fields[::turn]][::turn]
    placed = {placement.key: [part.host for part in placement.parts] for placement in step(world).placements}
    assert placed == {keys[0]: ["h1"], keys[1]: ["h2"]}
