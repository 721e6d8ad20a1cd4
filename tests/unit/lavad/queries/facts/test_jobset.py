"""A listing of many jobs is the same whether those that were only submitted are read from columns or as records."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import pytest

from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.job_rows import SIZE, JobRows
from lavad.core.job.job import Job
from lavad.core.lang.states import JobState
from lavad.core.plan.volatile import Soft
from lavad.queries.facts.jobset import MANY, UNFINISHED, JobSet, Wanted
from lavad.queries.frame.view import View
from tests.support.stores.memory_reader import MemoryReader
from tests.support.worlds.world import World

ALL = partial(Wanted, states=UNFINISHED)
ASKS: list[Callable[[], Wanted]] = [
    ALL,
    lambda: ALL(users=frozenset({"ann"})),
    lambda: ALL(users=frozenset({"ann", "bob", "nobody"})),
    lambda: ALL(spec_test=lambda spec: spec != 2),
    lambda: ALL(job_test=lambda job: job.name != "n1"),
    lambda: Wanted(states=frozenset({JobState.PEND})),
    lambda: Wanted(states=frozenset({JobState.PSUSP}), users=frozenset({"ann"})),
]


def _world(moved: bool) -> World:
    """Jobs of three users in two queues; some ran, are held or have gone; ``moved``: arrays and btop beside them."""
    chance = random.Random(1)
    world = World()
    world.queues(QueueConfig("fast", priority=50), QueueConfig("slow", priority=10))
    world.hosts("h1", slots=4)
    for number in range(MANY * 2 + 100):
        user, queue = chance.choice([("ann", "fast"), ("ann", "slow"), ("bob", "slow"), ("cy", "fast")])
        odd = number % 97 == 0
        held = odd and number % 2 == 0
        world.submit(f"n{number % 3}", user=user, queue=queue, held=held, array="1-3" if odd and not held and moved else "")
        world.now += chance.random()
    for key in [*world.cluster.jobs.rows]:
        if chance.random() < (0.98 if key < SIZE else 0.1):
            world.cluster.jobs.drop(key)
    if moved:
        world.apply(ev.JobMoved(at=world.now, key=[*world.cluster.jobs.rows][700], position=-1.0, by="admin"))
    world.cluster.forget_changes()
    world.accept(world.schedule())
    return world


def _jobs(cluster: Cluster, wanted: Wanted) -> JobSet:
    return JobSet(View(cluster, Soft(), lambda: MemoryReader()), wanted, None)


def _listed(cluster: Cluster, wanted: Wanted) -> list[Job]:
    return [*_jobs(cluster, wanted)]


@pytest.mark.parametrize("moved", [False, True])
def test_columns_and_records_give_the_same_list(moved: bool) -> None:
    world = _world(moved)
    rows = world.cluster.jobs.rows
    asked = [_listed(world.cluster, ask()) for ask in ASKS]
    assert any(job.run is not None for job in asked[0])
    world.cluster.jobs.rows = dict(rows)
    records = [_listed(world.cluster, ask()) for ask in ASKS]
    assert [[job.key for job in jobs] for jobs in asked] == [[job.key for job in jobs] for jobs in records]
    assert asked == records
    assert min(map(len, asked[:-1])) > MANY / 4


def test_a_list_is_of_one_version_of_the_cluster() -> None:
    world = _world(False)
    whole = _listed(world.cluster, ALL())
    jobs = iter(_jobs(world.cluster, ALL()))
    first = [next(jobs) for _ in range(3)]
    for key in [*world.cluster.jobs.rows]:
        if world.cluster.jobs.rows[key].run is None:
            world.cluster.jobs.drop(key)
    assert [*first, *jobs] == whole


def test_a_user_of_many_jobs_none_of_which_is_in_columns_sees_no_others() -> None:
    world = World()
    world.hosts("h1", slots=MANY + 100)
    world.submit("own", user="ann", array=f"1-{MANY + 50}")
    world.submit("other", user="bob")
    world.submit("others", user="bob", array="1-3")
    world.accept(world.schedule())
    rows = world.cluster.jobs.rows
    assert isinstance(rows, JobRows)
    assert not rows.in_columns()
    assert {job.spec for job in _listed(world.cluster, ALL(users=frozenset({"ann"})))} == {1}
