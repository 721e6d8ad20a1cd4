"""A cluster that is filled with records is the one that a ``put`` of each makes, in whatever order they come."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.fill import fill
from lavad.core.cluster.invariants import check_invariants
from lavad.core.job.depend import Depend
from lavad.core.job.job import Array, Job
from lavad.core.lang.ids import key_of
from lavad.core.lang.ranges import Ranges
from tests.support.worlds.world import World


@pytest.fixture
def world() -> World:
    """Two classes, one of two slots, with jobs of every kind among those that have only been submitted."""
    world = World()
    world.hosts("h1", slots=3)
    other: dict[str, Any] = {"user": "bob", "slots": 2, "max_slots": 2}
    running = world.submit(), world.submit(**other)
    world.step()
    assert set(world.running()) == set(running)
    array = world.submit(array="1-4")
    world.apply(ev.ElementsHeld(at=world.now, key=array, elements=Ranges.parse("2"), by="alice"))
    world.submit(name="n" * 1500)
    for at in range(12):
        world.later(at % 3)
        world.submit(name=f"j{at}", **(other if at % 4 == 0 else {}))
    held, moved, waits = world.submit(held=True), world.submit(), world.cluster.next_job
    world.apply(ev.JobMoved(at=world.now, key=moved, position=-1.0, by="alice"))
    depend = Depend(f"done({held})", ids=((held,),))
    world.apply(
        ev.JobSubmitted(
            at=world.now, key=waits, spec=world.cluster.spec_numbers[world.cluster.spec_of(moved)], name="w", depend=depend
        )
    )
    world.submit()
    world.submit(user="carol")
    element = replace(world.cluster.jobs.rows[moved], key=key_of(array, 3), position=0.0)
    world.cluster.arrays.put(array, replace(world.cluster.arrays.rows[array], pending=Ranges.parse("1,4")))
    world.cluster.jobs.put(element.key, element)
    world.cluster.forget_changes()
    return world


def empty(cluster: Cluster) -> Cluster:
    found = Cluster()
    found.configure(cluster.conf)
    for number, spec in cluster.specs.rows.items():
        found.specs.put(number, spec)
        found.spec_numbers[spec] = number
        found.idle_specs[number] = None
    for host in cluster.hosts.rows.values():
        found.hosts.put(host.name, host)
    found.next_job, found.next_spec, found.version = cluster.next_job, cluster.next_spec, cluster.version
    return found


def state(cluster: Cluster) -> dict[str, Any]:
    use = cluster.use
    return {
        "jobs": dict(cluster.jobs.rows),
        "small": [cluster.jobs.rows[key] is not cluster.jobs.rows[key] for key in cluster.jobs.rows],
        "arrays": cluster.arrays.rows,
        "pending": {
            n: ([(key, one.came(key)) for key in one], one.newest(), one.ordered, one.touched)
            for n, one in cluster.pending.items()
        },
        "users": {user: list(keys) for user, keys in cluster.by_user.items()},
        "records": dict(cluster.records),
        "specs": (cluster.spec_jobs, list(cluster.idle_specs)),
        "use": (dict(use.queues), dict(use.users), dict(use.pairs)),
        "others": (cluster.started, cluster.held_back, cluster.elements, list(cluster.conditions.rows)),
    }


def both(source: Cluster, records: Sequence[Job | Array]) -> tuple[Cluster, Cluster]:
    filled, put = empty(source), empty(source)
    fill(filled, records)
    for record in records:
        if isinstance(record, Array):
            put.arrays.put(record.job, record)
        else:
            put.jobs.put(record.key, record)
    filled.forget_changes()
    put.forget_changes()
    return filled, put


@pytest.mark.parametrize("seed", range(-1, 20))
def test_a_cluster_is_filled_as_each_put_would(world: World, seed: int) -> None:
    source = world.cluster
    jobs = [*source.jobs.rows.values()]
    if seed < 0:
        jobs.sort(key=lambda job: (job.submitted, -job.key))
    elif seed:
        random.Random(seed).shuffle(jobs)
    filled, put = both(source, [*source.arrays.rows.values(), *jobs])
    check_invariants(filled)
    assert state(filled) == state(put)
    assert len(filled.jobs.rows) == len(source.jobs.rows)


def test_what_comes_later_changes_a_filled_cluster_as_any_other(world: World) -> None:
    """The last of a class leaves, another comes: sums and places hold."""
    filled, _ = both(world.cluster, [*world.cluster.arrays.rows.values(), *world.cluster.jobs.rows.values()])
    for key in [*filled.jobs.rows]:
        filled.jobs.drop(key)
    for number in [*filled.arrays.rows]:
        filled.arrays.drop(number)
    check_invariants(filled)
    assert (filled.pending, dict(filled.records), filled.spec_jobs, filled.by_user) == ({}, {}, {}, {})
