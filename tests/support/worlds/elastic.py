"""Jobs that grow and shrink, in a world: their hosts do what is due, cycle by cycle, and the invariants hold after each step."""

from __future__ import annotations

from typing import Any

from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.control.resize import resize
from lavad.core.job.job import Attempt, Job
from lavad.core.job.resize import uid_of
from lavad.core.lang.asks import Caller, Resize
from lavad.core.rules.effects import KillPart, StartPart, effects_due
from tests.support.worlds.world import World

ALICE = Caller(user="alice", uid=1000, host="h1")


def elastic(world: World, least: int, most: int, **fields: Any) -> int:
    return world.submit(slots=least, max_slots=most, resizable=True, autoresize=True, **fields)


def job_of(world: World, key: int) -> Job:
    return world.cluster.jobs.rows[key]


def run_of(world: World, key: int) -> Attempt:
    run = job_of(world, key).run
    assert run is not None
    return run


def growing(**fields: Any) -> tuple[World, int]:
    """A job of one slot that runs on h1, and a second host that has just come."""
    world = World()
    world.hosts("h1", slots=1)
    key = elastic(world, 1, 2, **fields)
    started(world, key)
    world.hosts("h2", slots=1)
    return world, key


def begin(world: World, key: int) -> None:
    """Every host does what is due until all run."""
    for _ in range(4):
        run = run_of(world, key)
        for part in run.parts:
            uid = uid_of(run, part)
            for effect in [one for one in effects_due(job_of(world, key)) if one.host == part.host]:
                if isinstance(effect, StartPart):
                    world.hear("prepared", key, uid, part.host, "a:1")
                    world.hear("started", key, uid, part.host, 7, world.now, "/")
                elif isinstance(effect, KillPart):
                    world.hear("gone", key, uid, part.host)
    check_invariants(world.cluster)


def cycle(world: World) -> list[ev.Event]:
    events = world.accept(world.schedule())
    check_invariants(world.cluster)
    return events


def slots(world: World, key: int) -> dict[str, int]:
    return {part.host: part.slots for part in run_of(world, key).parts}


def slot_sum(world: World, key: int) -> int:
    return sum(slots(world, key).values())


def started(world: World, key: int) -> None:
    world.step()
    begin(world, key)


def released(world: World, key: int, hosts: str, **more: object) -> None:
    ask = Resize(job=str(key), what="release", hosts=hosts, **more)  # type: ignore[arg-type]
    world.apply(*resize(world.cluster, ask, ALICE, world.now).events)
    check_invariants(world.cluster)


def settle(world: World, key: int) -> None:
    """Cycles until nothing more happens."""
    for _ in range(4):
        cycle(world)
        begin(world, key)
