"""Separate jobs that are folded together: the cluster is the same as one by one (their histories: ``test_elements``)."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.cluster.job_rows import SIZE
from lavad.core.events.apply import apply, apply_all
from lavad.core.events.separate import fold_separate
from lavad.core.job.depend import Depend
from lavad.core.job.job import End, Placed
from lavad.core.job.spec import Spec
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState
from tests.support.examples import examples
from tests.support.worlds.snapshot import difference, snapshot
from tests.support.worlds.world import World

OTHERS: list[dict[str, Any]] = [
    {"held": True},
    {"restart": 3},
    {"indices": Ranges.span(1, 4), "spec_text": "a[1-4]"},
    {"depend": Depend("done(1)", ((1,),))},
]


def _world() -> World:
    world = World()
    world.hosts("h1")
    world.submit()
    world.cluster.forget_changes()
    return world


def _submitted(world: World, keys: range, **fields: Any) -> list[ev.JobSubmitted]:
    said: dict[str, Any] = {"at": world.now, "spec": 1} | fields
    return [ev.JobSubmitted(key=key, name=f"j{key}", **said) for key in keys]


def _all_of(world: World) -> dict[str, Any]:
    cluster = world.cluster
    pending = {number: (list(one), one.ordered, one.touched, one.newest()) for number, one in cluster.pending.items()}
    rest = {"records": dict(cluster.records), "classes": dict(cluster.spec_jobs), "pending in order": pending}
    return snapshot(cluster) | rest | {"changed": dict(cluster.jobs.changed), "idle": list(cluster.idle_specs)}


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 12), st.sampled_from([1, 2]), st.sampled_from([0.0, 0.0, 5.0, -3.0]), st.sampled_from([{}, *OTHERS])
        ),
        max_size=8,
    ),
    st.booleans(),
)
def test_together_as_one_by_one(runs: list[tuple[int, int, float, dict[str, Any]]], named: bool) -> None:
    worlds = _world(), _world()
    spec = Spec(user="bob", queue="normal")
    events: list[ev.Event] = [ev.SpecAdded(at=worlds[0].now, spec=2, value=spec)]
    key = 2
    for count, number, later, others in runs:
        events += _submitted(worlds[0], range(key, key + count), spec=number, at=worlds[0].now + later)
        events += _submitted(worlds[0], range(key + count, key + count + 1), spec=number, **others)
        key += count + 2
    for world in worlds:
        if named:
            world.cluster.find_named("", True, None)
    apply_all(worlds[0].cluster, events)
    for event in events:
        apply(worlds[1].cluster, event)
    check_invariants(worlds[0].cluster)
    assert not difference(_all_of(worlds[0]), _all_of(worlds[1]))
    for world in worlds:
        world.cluster.undo_changes()
    assert not difference(snapshot(worlds[0].cluster), snapshot(worlds[1].cluster))
    assert worlds[0].cluster.records == _world().cluster.records


def test_one_fold_for_as_many_as_are_plain_and_of_one_class() -> None:
    world = _world()
    events = [*_submitted(world, range(2, 3 * SIZE)), *_submitted(world, range(3 * SIZE, 3 * SIZE + 1), held=True)]
    assert fold_separate(world.cluster, events, 0) == 3 * SIZE - 2
    assert world.cluster.next_job == 3 * SIZE
    assert fold_separate(world.cluster, events, 3 * SIZE - 2) == 0
    assert len(world.cluster.pending[1]) == 3 * SIZE - 1


def test_an_id_that_is_there_or_came_before_ends_the_run() -> None:
    world = _world()
    events = [*_submitted(world, range(5, 8)), *_submitted(world, range(6, 7)), *_submitted(world, range(9, 10))]
    assert fold_separate(world.cluster, events, 0) == 3


def test_starts_and_ends_of_separate_jobs_are_one_fold_each() -> None:
    world, single = _world(), _world()
    parts = (Placed(host="h1", slots=1, reserved=(("mem", 0.1),)),)
    end = End(at=world.now, started=world.now - 2, utime=1.5, stime=0.25)
    submitted = [
        one for number in (1, 2) for one in _submitted(world, range(10 * number, 10 * number + 10), at=world.now + number)
    ]
    starts = [ev.JobDispatched(at=world.now, key=one.key, attempt=1, uid=f"u{one.key}", parts=parts) for one in submitted]
    ends = [ev.JobFinished(at=world.now, key=one.key, state=JobState.DONE, end=end) for one in submitted]
    for events in (submitted, starts, ends):
        assert fold_separate(world.cluster, events, 0) == 20
        world.cluster.version += 20
        for event in events:
            apply(single.cluster, event)
    check_invariants(world.cluster)
    assert not difference(_all_of(world), _all_of(single))
    assert list(world.cluster.finished.items()) == list(single.cluster.finished.items())
    assert {job.name for job in world.cluster.finished.values()} == {f"j{one.key}" for one in submitted}


def test_a_job_that_was_anything_but_submitted_starts_by_itself() -> None:
    world = _world()
    apply_all(world.cluster, _submitted(world, range(2, 8)))
    apply(world.cluster, ev.JobMoved(at=world.now, key=4, position=-1.0))
    parts = (Placed(host="h1", slots=1),)
    starts = [ev.JobDispatched(at=world.now, key=key, attempt=1, uid=f"u{key}", parts=parts) for key in range(2, 8)]
    assert fold_separate(world.cluster, starts, 0) == 2
    assert fold_separate(world.cluster, starts, 2) == 0
    apply(world.cluster, starts[2])
    assert fold_separate(world.cluster, starts, 3) == 3
