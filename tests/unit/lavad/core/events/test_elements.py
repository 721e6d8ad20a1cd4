"""Starts and ends of elements that are folded together: the cluster is the same as one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from config.model.queue import QueueConfig
from config.model.values import FairShare
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.invariants import check_invariants
from lavad.core.events.apply import apply, apply_all
from lavad.core.events.base import FOLDS
from lavad.core.events.elements import fold_alike
from lavad.core.job.job import End, Placed
from lavad.core.job.spec import Checkpoint
from lavad.core.lang.cpus import Binding
from lavad.core.lang.ids import key_of
from lavad.core.lang.rusage_decay import RusageDecay
from lavad.core.lang.states import JobState
from tests.support.examples import examples
from tests.support.worlds.history import VERBS, Author
from tests.support.worlds.snapshot import difference, snapshot
from tests.support.worlds.world import World

STEPS = st.lists(
    st.tuples(
        st.sampled_from([*VERBS, *["submit_array", "start_elements", "end_elements", "submit_many", "start_many"] * 5]),
        st.integers(0, 50),
        st.integers(0, 50),
    ),
    max_size=40,
)


def _all_of(cluster: Cluster) -> dict[str, Any]:
    """What a fold may change, the changes of the batch with it."""
    changed = {name: dict(getattr(cluster, name).changed) for name in ("jobs", "arrays", "specs", "charges")}
    accounts = {account: list(row) for account, row in cluster.accounts.rows.items()}
    sums = {"records": dict(cluster.records), "groups": dict(cluster.use.group_running), "charges": dict(cluster.charges.rows)}
    return snapshot(cluster) | sums | {"accounts": accounts, "changed": changed, "order": list(cluster.jobs.changed)}


def _check_same(one: Cluster, other: Cluster) -> None:
    check_invariants(one)
    assert not difference(_all_of(one), _all_of(other))


@settings(max_examples=examples(150), deadline=None)
@given(steps=STEPS)
def test_a_history_is_folded_together_as_one_by_one(steps: list[tuple[str, int, int]]) -> None:
    cluster, single = Cluster(), Cluster()
    author = Author(cluster)
    for verb, a, b in [("", 0, 0), *steps]:
        events = author.write(verb, a, b) if verb else author.opening()
        apply_all(cluster, events)
        for event in events:
            apply(single, event)
        _check_same(cluster, single)
        if a % 3 == 0:
            cluster.forget_changes()
            single.forget_changes()


def _array_world() -> tuple[World, int]:
    world = World()
    share = FairShare(shares=(("default", 1),))
    world.queues(QueueConfig(name="normal", share=share))
    world.hosts("h1", "h2", slots=50)
    return world, world.submit(array="1-20", group="/some/group", resreq="rusage[mem=10]")


def _starts(world: World, job: int, indices: range, **fields: Any) -> list[ev.Event]:
    parts = (Placed(host="h1", slots=1, reserved=(("mem", 0.1),)),)
    said: dict[str, Any] = {"at": world.now, "attempt": 1, "parts": parts} | fields
    return [ev.JobDispatched(key=key_of(job, index), uid=f"u{index}", **said) for index in indices]


def _ends(world: World, job: int, indices: range) -> list[ev.Event]:
    end = End(at=world.now, started=world.now - 2, utime=1.5, stime=0.25)
    return [ev.JobFinished(at=world.now, key=key_of(job, index), state=JobState.DONE, end=end) for index in indices]


def test_all_starts_and_ends_of_an_array_are_one_fold_each_and_undone_together() -> None:
    (world, job), (single, _) = _array_world(), _array_world()
    cluster = world.cluster
    cluster.forget_changes()
    before = _all_of(cluster)
    for events in (_starts(world, job, range(1, 21)), _ends(world, job, range(1, 21))):
        assert fold_alike(cluster, events, 0) == 20
        cluster.version += 20
        for event in events:
            FOLDS[type(event)](single.cluster, event)
            single.cluster.version += 1
    assert cluster.charges.rows
    assert cluster.finished_arrays
    assert not difference(snapshot(cluster), snapshot(single.cluster))
    assert cluster.charges.rows == single.cluster.charges.rows
    assert cluster.accounts.rows == single.cluster.accounts.rows
    cluster.undo_changes()
    assert not difference(before, _all_of(cluster))


OTHERS = [{"attempt": 2}, {"alone": ("h2",)}, {"way": 1}, {"forced": True}, {"afresh": True}, {"at": 1.0}, {"parts": ()}]


@pytest.mark.parametrize("fields", OTHERS)
def test_a_start_that_says_something_else_ends_the_run(fields: dict[str, Any]) -> None:
    world, job = _array_world()
    events = _starts(world, job, range(1, 4)) + _starts(world, job, range(4, 5), **fields) + _starts(world, job, range(5, 8))
    assert fold_alike(world.cluster, events, 0) == 3


def test_an_illegal_start_among_others_is_named_and_those_before_it_are_folded() -> None:
    world, job = _array_world()
    events = [*_starts(world, job, range(1, 4)), *_starts(world, job, range(2, 3)), *_starts(world, job, range(5, 8))]
    with pytest.raises(ev.IllegalMove, match="JobDispatched"):
        apply_all(world.cluster, events)
    assert list(world.cluster.jobs.rows) == [key_of(job, index) for index in (1, 2, 3)]
    check_invariants(world.cluster)


def test_what_was_signalled_suspended_or_asked_about_is_folded_by_itself() -> None:
    world, job = _array_world()
    apply_all(world.cluster, _starts(world, job, range(1, 11)))
    apply(world.cluster, ev.JobSuspended(at=world.now, key=key_of(job, 4)))
    events = _ends(world, job, range(1, 11))
    assert fold_alike(world.cluster, events, 0) == 3
    assert fold_alike(world.cluster, events, 3) == 0
    apply(world.cluster, events[3])
    assert fold_alike(world.cluster, events, 4) == 6


class _Counted(list[ev.Event]):
    """Counts how many were read."""

    read = 0

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        self.read += len(found) if isinstance(at, slice) else 1
        return found


def test_what_is_not_alike_is_read_a_few_times_however_many_there_are() -> None:
    """Elements that start on one host after the other."""
    world, job = _array_world()
    starts = [
        _starts(world, job, range(index, index + 1), parts=(Placed(host=f"h{index % 2 + 1}", slots=1),)) for index in range(1, 21)
    ]
    events = _Counted(event for one in starts for event in one)
    apply_all(world.cluster, events)
    assert len(world.cluster.started) == 20
    assert events.read <= 6 * 20


PLAIN = Placed(host="h1", slots=1, reserved=(("mem", 0.1),))


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ({"resizable": True, "max_slots": 2}, PLAIN),
        ({"checkpoint": Checkpoint(folder="/c")}, PLAIN),
        ({}, replace(PLAIN, gpus=("GPU-1",))),
        ({}, replace(PLAIN, binds=(Binding((0,)),))),
        ({}, replace(PLAIN, decays=(RusageDecay("mem", 0.1, 60),))),
    ],
)
def test_elements_that_are_not_plain_are_the_same_started_and_ended_together_or_one_by_one(
    spec: dict[str, Any], part: Placed
) -> None:
    together, single = World(), World()
    for world in (together, single):
        world.hosts("h1", slots=50)
        job = world.submit(array="1-20", **spec)
    starts = [
        replace(event, parts=(replace(part, binds=(Binding((index,)),)),)) if part.binds else event
        for index, event in enumerate(_starts(together, job, range(1, 21), parts=(part,)))
        if isinstance(event, ev.JobDispatched)
    ]
    for events in (starts, _ends(together, job, range(1, 21))):
        apply_all(together.cluster, events)
        for event in events:
            apply(single.cluster, event)
        _check_same(together.cluster, single.cluster)
        assert together.cluster.finished == single.cluster.finished
