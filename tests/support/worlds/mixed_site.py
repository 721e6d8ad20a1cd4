"""Sites with any mixture of policies, and stories of what happens there, for properties of the scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from config.model.cluster import HostConfig, Limit
from config.model.guarantees import Amount, Goal, Loan, Pool, ServiceClass
from config.model.queue import QueueConfig
from config.model.values import Backfill, FairShare, JobAction, JobControl, Limits, Preemption, Thresholds
from lavad.core import events as ev
from lavad.core.decide.reserve.reservations import add, turn
from lavad.core.job.spec import Role
from lavad.core.lang.asks import AddReservation, Caller, Refused
from lavad.core.lang.states import JobState
from lavad.core.site.conf import Params, ResourceConf, UnitConf
from tests.support.topologies import regular
from tests.support.worlds.stories import befall
from tests.support.worlds.world import World

ROOT = Caller(user="root", uid=0, host="h0")
HOSTS = ("h0", "h1", "h2")
QUEUES = ("urgent", "big", "fill", "low", "fair", "late", "again", "lazy", "parts", "owner")
THEMES = (("urgent", "low", "again"), ("big", "fill", "lazy"), ("urgent", "fill", "low"), ("fair", "owner", "low"))
"""Queues that have to do with each other."""
ROLES = (
    (Role(name="ps", count=1, slots=1), Role(name="worker", count=3, least=2, slots=1)),
    (Role(name="a", count=2, least=2, slots=2, resreq="rusage[mem=3000]"), Role(name="b", count=1, slots=1, gpus=1)),
    (Role(name="a", count=2, least=1, slots=1, resreq="rusage[lic=1]"), Role(name="b", count=3, least=3, slots=1)),
    (Role(name="a", count=4, least=2, slots=1, gpus=1, spread=True), Role(name="b", count=1, least=1, slots=1)),
    (Role(name="a", count=3, least=3, slots=2),),
)
SIMPLE = ("", "", "rusage[mem=5000]", "rusage[lic=1]", "select[r1m<1.0]", "cu[pref=minavail]")
"""What roles go with."""
RESREQS = (
    *[""] * 5,
    "rusage[mem=5000]",
    "span[ptile=2]",
    "span[hosts=1]",
    "rusage[lic=1]",
    "select[r1m<1.0]",
    "cu[excl]",
    "same[color]",
    "{span[hosts=1]} || {rusage[mem=3000/task]}",
    "1*{rusage[lic=1]}+{rusage[mem=500/task]}",
    "affinity[core(1)]",
)

SOON = ServiceClass(name="soon", goals=(Goal("deadline", 0, "9:00-18:00"), Goal("velocity", 1, "19:00-21:00")))
STEADY = ServiceClass(name="steady", goals=(Goal("velocity", 2),), priority=5)
BRISK = ServiceClass(name="steady", goals=(Goal("throughput", 30, "8:00-18:00"),))
"""At noon and in the evening some have a goal and others not."""

jobs = st.fixed_dictionaries(
    {
        "user": st.sampled_from(["alice", "bob", "carol"]),
        "queue": st.integers(0, 2),
        "slots": st.sampled_from([1, 2, 3, 4, 4, 7, 12]),
        "max_slots": st.sampled_from([1, 1, 1, 4]),
        "minutes": st.sampled_from([0, 1, 5, 30]),
        "resreq": st.sampled_from(RESREQS),
        "gpu": st.sampled_from(["", "", "", "", "num=1:j_exclusive=yes", "num=2"]),
        "exclusive": st.sampled_from([False] * 9 + [True]),
        "resizable": st.sampled_from([False, False, True]),
        "roles": st.sampled_from([()] * 6 + list(ROLES)),
        "simple": st.sampled_from(SIMPLE),
        "reservation": st.sampled_from([False] * 5 + [True]),
        "service_class": st.sampled_from(["", "", "", "gold", "silver", "soon", "steady"]),
        "group": st.sampled_from(["", "", "/g"]),
    }
)
some = st.lists(st.tuples(jobs, st.sampled_from(["", "", "", "1-3", "1-12"])), min_size=1, max_size=4)
actions = st.one_of(
    st.tuples(st.just("submit"), some),
    st.tuples(st.just("submit"), some),
    st.tuples(st.just("finish"), st.integers(0, 50)),
    st.tuples(st.just("finish"), st.integers(0, 50)),
    st.tuples(st.just("later"), st.sampled_from([5.0, 60.0, 400.0])),
    st.tuples(st.sampled_from(["gone", "kill", "stop"]), st.integers(0, 50)),
    st.tuples(st.sampled_from(["host", "close", "queue"]), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("load"), st.sampled_from(HOSTS), st.sampled_from([0.0, 2.0, 5.0])),
    st.tuples(st.just("hour"), st.sampled_from([12, 20])),
    st.tuples(st.just("gpu"), st.sampled_from(["h0", "h2"]), st.integers(0, 1), st.booleans()),
    st.tuples(st.just("modify"), st.integers(0, 50), st.sampled_from(["", "soon"])),
    st.tuples(
        st.just("reserve"), st.sampled_from(["h0", "h1 h2", "h2"]), st.sampled_from([1, 4]), st.sampled_from([0, 300, 1200])
    ),
)
stories = st.lists(st.tuples(actions, st.sampled_from([True, True, False])), min_size=6, max_size=25)
sites = st.fixed_dictionaries(
    {
        "queues": st.one_of(st.sampled_from(THEMES), st.permutations(QUEUES).map(lambda names: names[:3])),
        "backfill": st.sampled_from(["easy", "conservative"]),
        "reserve": st.sampled_from([0, 5, 100_000]),
        "preempts": st.booleans(),
        "fair": st.booleans(),
        "owns": st.sampled_from([False, False, True]),
        "pools": st.sampled_from(["", "", "slots", "hosts", "package"]),
        "goals": st.sampled_from([(), (), (STEADY,), (SOON, STEADY), (SOON, BRISK)]),
        "by_slot": st.booleans(),
        "pause": st.sampled_from([None, None, 1]),
        "chunk": st.sampled_from([0, 0, 3]),
        "limits": st.lists(
            st.sampled_from(
                [
                    Limit(name="a", users=("alice",), slots=5),
                    Limit(name="b", hosts=("h1", "h2"), slots=5),
                    Limit(name="c", per_host=True, hosts=("all",), jobs=2),
                    Limit(name="d", queues=("low",), jobs=3),
                    Limit(name="e", mem=12_000.0, per_user=True),
                    Limit(name="f", per_host=True, slots=3),
                    Limit(name="g", per_host=True, mem=9_000.0),
                    Limit(name="h", per_host=True, resources=(("ngpus_physical", 1.0),)),
                    Limit(name="i", hosts=("h0", "h2"), mem=8_000.0),
                    Limit(name="j", hosts=("h0", "h1"), jobs=1, per_user=True),
                ]
            ),
            max_size=2,
            unique=True,
        ),
    }
)


def queues_of(site: dict[str, Any]) -> tuple[QueueConfig, ...]:
    load = Thresholds(sched=(("r1m", 1.0),), stop=(("r1m", 4.0),))
    preempts = Preemption(preemptive=True, preempts=(("low", None), ("again", 1), ("fill", None)))
    share = FairShare(shares=(("alice", 1), ("others", 3)))
    controls = (JobControl(JobAction.SUSPEND, "brequeue"),)
    return (
        QueueConfig(name="urgent", priority=60, preemption=preempts if site["preempts"] else Preemption()),
        QueueConfig(name="big", priority=50, slot_reserve=site["reserve"]),
        QueueConfig(name="fill", priority=40, backfill=True),
        QueueConfig(name="late", priority=35, run_window="8:00-18:00", thresholds=load),
        QueueConfig(name="fair", priority=30, share=share if site["fair"] else None),
        QueueConfig(name="owner", priority=25, weight=2 if site["owns"] else None, guarantee=3 if site["owns"] else 0),
        QueueConfig(name="low", priority=20, exclusive=True, job_accept_interval=site["pause"], chunk_job_size=site["chunk"]),
        QueueConfig(name="parts", priority=20, gang=False),
        QueueConfig(name="again", priority=10, preemption=Preemption(preemptable=True), job_controls=controls),
        QueueConfig(name="lazy", priority=1, backfill=True, interruptible_backfill=60, limits=Limits(run=3600)),
    )


def make_world(site: dict[str, Any]) -> World:
    world = World()
    shares = (("gold", Amount(3 if site["pools"] != "hosts" else 1)), ("silver", Amount(1)))
    pool = Pool(name="pool", type=site["pools"], distribution=shares, slots=1, mem=1000.0, loan=Loan(queues=("fill",)))
    world.configure(
        queues=queues_of(site),
        limits=tuple(site["limits"]),
        hosts=tuple(HostConfig(name=name, resources=(("color", "red"),) if name != "h2" else ()) for name in HOSTS),
        host_groups=(("r1", ("h0", "h1")), ("r2", ("h2",))),
        service_classes=(ServiceClass(name="gold"), ServiceClass(name="silver"), *site["goals"]),
        pools=(pool,) if site["pools"] else (),
        params=Params(
            parallel_sched_by_slot=site["by_slot"],
            lava_backfill=Backfill(site["backfill"]),
            compute_unit_types=("rack",),
            units=(UnitConf("r1", "rack"), UnitConf("r2", "rack")),
        ),
        resources=(
            ResourceConf(name="lic", kind="numeric", consumable=True, locations=((2.0, ("all",)),)),
            ResourceConf(name="color", kind="string"),
        ),
    )
    for name in HOSTS:
        world.hosts(name, slots=4, gpus=2 if name in ("h0", "h2") else 0, topology="" if name == "h2" else regular(1, 1, 2, 2))
    return world


def act(world: World, queues: Sequence[str], action: tuple[Any, ...]) -> None:
    match action:
        case ("submit", some):
            for fields, array in some:
                submit(world, {**fields, "queue": queues[fields["queue"]]}, array)
        case ("finish" | "gone" | "kill" | "stop" as what, at):
            befall(world, what, at)
        case ("modify", at, service):
            modify(world, at, service)
        case ("queue", at, active):
            world.queue_switch(queues[at % len(queues)], active=active)
        case _:
            act_on_site(world, action)


def submit(world: World, fields: dict[str, Any], array: str) -> None:
    minutes, simple = fields.pop("minutes"), fields.pop("simple")
    names = list(world.cluster.reservations.rows) if fields["reservation"] else []
    fields["reservation"] = names[-1] if names else ""
    if names:
        fields["user"] = names[-1].partition("#")[0]
    if fields["roles"]:
        slots = sum(role.least * role.slots for role in fields["roles"])
        fields |= {"resreq": simple, "gpu": "", "slots": slots, "resizable": False}
        fields["max_slots"] = sum(role.count * role.slots for role in fields["roles"])
        array = ""
    if fields["resizable"]:
        fields |= {"autoresize": True, "max_slots": fields["slots"] + 3, "resreq": "", "gpu": ""}
        array = ""
    world.submit(array=array, limits=Limits(run=minutes * 60 or None), **fields)


def modify(world: World, at: int, service: str) -> None:
    """bmod -sla of any job."""
    rows = list(world.cluster.jobs.rows) or [0]
    key = rows[at % len(rows)]
    if key and (job := world.cluster.jobs.rows[key]).state in (JobState.RUN, JobState.PEND) and not job.promised:
        spec = replace(world.cluster.spec_of(key), service_class=service)
        number = world.cluster.spec_numbers.get(spec)
        if number is None:
            number = world.cluster.next_spec
            world.apply(ev.SpecAdded(at=world.now, spec=number, value=spec))
        world.apply(ev.JobModified(at=world.now, key=key, spec=number, name=job.name))


def act_on_site(world: World, action: tuple[Any, ...]) -> None:
    match action:
        case ("host", at, up):
            world.apply((ev.HostUp if up else ev.HostDown)(at=world.now, host=HOSTS[at % len(HOSTS)]))
        case ("close", at, closed):
            world.host_switch(HOSTS[at % len(HOSTS)], closed)
        case ("load", name, r1m):
            world.load(name, r1m=r1m)
        case ("later", seconds):
            world.later(seconds)
            local = datetime.fromtimestamp(world.now)
            world.apply(*turn(world.cluster, world.now, local).events)
        case ("gpu", host, at, closed):
            world.apply(ev.GpuSwitched(at=world.now, host=host, gpu=f"GPU-{host}-{at}", closed=closed, by="admin"))
        case ("hour", hour):
            world.local = (1, hour * 3600)
        case ("reserve", hosts, slots, ahead):
            reserve(world, hosts, slots, ahead)


def reserve(world: World, hosts: str, slots: int, ahead: float) -> None:
    begin, end = (datetime.fromtimestamp(world.now + 60 + ahead + more).strftime("%Y:%m:%d:%H:%M") for more in (0, 600))
    name = ("alice", "bob")[len(world.cluster.reservations.rows) % 2]
    ask = AddReservation(hosts=hosts, slots=slots, users=name, begin=begin, end=end)
    try:
        made = add(world.cluster, ask, ROOT, world.now, datetime.fromtimestamp(world.now))
    except Refused:
        return
    world.apply(*made.events)
