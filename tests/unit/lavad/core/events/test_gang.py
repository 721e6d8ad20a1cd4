"""What hosts tell of the parts of one job, folded together: the cluster is the same as one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.events.apply import apply, apply_all
from lavad.core.events.base import IllegalMove
from lavad.core.events.gang import fold_gang
from lavad.core.job.job import End
from lavad.core.lang.states import PartState
from tests.support.examples import examples
from tests.support.worlds.snapshot import difference, snapshot
from tests.support.worlds.world import World

HOSTS = [f"h{number:02d}" for number in range(12)]


def _world() -> World:
    """A job on all hosts, whose record is as after a failed start."""
    world = World()
    world.hosts(*HOSTS, slots=2)
    world.submit(slots=2 * len(HOSTS))
    world.step()
    world.cluster.forget_changes()
    return world


def _told(kind: str, host: str, **fields: Any) -> ev.Event:
    said: dict[str, Any] = {"at": 5.0, "key": 1, "attempt": 1, "host": host} | fields
    return getattr(ev, kind)(**said)  # type: ignore[no-any-return]


TOLD = st.one_of(
    st.builds(lambda host: _told("PartPrepared", host, address="10.0.0.1:7"), st.sampled_from(HOSTS)),
    st.builds(lambda host: _told("PartStarted", host, pid=8, started=4.0, cwd="/"), st.sampled_from(HOSTS)),
    st.builds(
        lambda host, status: _told("PartEnded", host, end=End(at=4.0, status=status)),
        st.sampled_from(HOSTS),
        st.sampled_from([0, 0, 0, 256]),
    ),
    st.builds(lambda host, stopped: _told("PartStopped", host, stopped=stopped), st.sampled_from(HOSTS), st.booleans()),
    st.builds(lambda host: _told("PartGone", host, post=1), st.sampled_from(HOSTS)),
    st.builds(lambda host: _told("PartRefused", host, code="cwd", why=f"no folder on {host}"), st.sampled_from(HOSTS)),
    st.builds(lambda: ev.GangReleased(at=5.0, key=1, attempt=1)),
)


def _all_of(world: World) -> dict[str, Any]:
    return snapshot(world.cluster) | {"changed": dict(world.cluster.jobs.changed), "version": world.cluster.version}


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(TOLD, min_size=2, max_size=40))
def test_together_as_one_by_one(events: list[ev.Event]) -> None:
    worlds = _world(), _world()
    apply_all(worlds[0].cluster, events)
    for event in events:
        apply(worlds[1].cluster, event)
    check_invariants(worlds[0].cluster)
    assert not difference(_all_of(worlds[0]), _all_of(worlds[1]))
    for world in worlds:
        world.cluster.undo_changes()
    assert not difference(snapshot(worlds[0].cluster), snapshot(worlds[1].cluster))


def test_one_fold_for_all_but_the_first_host_and_failures() -> None:
    world = _world()
    prepared = [_told("PartPrepared", host) for host in HOSTS]
    assert fold_gang(world.cluster, prepared, 0) == 0
    assert fold_gang(world.cluster, prepared, 1) == len(HOSTS) - 1
    run = world.cluster.jobs.rows[1].run
    assert run is not None
    assert [part.state for part in run.parts] == [PartState.OFFERED] + [PartState.PREPARED] * (len(HOSTS) - 1)
    ends = [_told("PartEnded", host, end=End(at=4.0, status=256 * (host == HOSTS[5]))) for host in HOSTS[1:]]
    assert fold_gang(world.cluster, ends, 0) == 4


def test_an_event_of_another_attempt_is_refused() -> None:
    world = _world()
    events = [_told("PartPrepared", host, attempt=2) for host in HOSTS]
    with pytest.raises(IllegalMove):
        apply_all(world.cluster, events)
