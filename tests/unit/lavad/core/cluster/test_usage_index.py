"""What a job on many hosts uses is indexed part by part, and always as if it were indexed again as a whole."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lavad.core.cluster.invariants import check_invariants
from lavad.core.cluster.usage_index import MANY, changed_parts
from lavad.core.job.job import Job
from lavad.core.lang.states import PartState
from tests.support.worlds.world import World

NAMES = [f"h{number:02}" for number in range(MANY + 4)]


def _gang(resreq: str = "rusage[mem=100]") -> tuple[World, int]:
    world = World()
    world.hosts(*NAMES, slots=2, gpus=2)
    key = world.submit(slots=2 * len(NAMES), resreq=resreq, gpu="num=1")
    world.step()
    return world, key


def _job(world: World, key: int) -> Job:
    return world.cluster.jobs.rows[key]


@pytest.mark.parametrize("resreq", ["rusage[mem=100]", "rusage[mem=100:duration=5:decay=1]", "select[mem>1]"])
def test_the_indexes_are_right_after_each_report(resreq: str) -> None:
    world, key = _gang(resreq)
    run = _job(world, key).run
    assert run is not None
    touched = {name: world.cluster.use.hosts[name].touched for name in NAMES}
    world.hear("prepared", key, run.uid, NAMES[3], "10.0.0.1:7")
    # it uses what it did: a scheduler need not look at any host again
    assert {name: world.cluster.use.hosts[name].touched for name in NAMES} == touched
    assert world.cluster.use.hosts[NAMES[3]].jobs[key].address
    check_invariants(world.cluster)
    for name in NAMES:
        world.hear("prepared", key, run.uid, name, "10.0.0.1:7")
        check_invariants(world.cluster)
    for name in reversed(NAMES):
        world.hear("started", key, run.uid, name, 7, world.now, "/")
        check_invariants(world.cluster)
    world.finish(key)
    check_invariants(world.cluster)
    assert all(use.slots == 0 and not use.jobs for use in world.cluster.use.hosts.values())


def test_only_parts_that_changed_are_found_and_only_where_nothing_else_did() -> None:
    world, key = _gang()
    old = _job(world, key)
    assert old.run is not None
    first, *others = old.run.parts
    for new in (replace(first, state=PartState.PREPARED), replace(first, state=PartState.GONE), replace(first, pid=7)):
        assert changed_parts(old, replace(old, run=replace(old.run, parts=(new, *others)))) == [(first, new)]
    for new in (replace(first, slots=1), replace(first, gpus=()), replace(first, reserved=()), replace(first, host="other")):
        assert changed_parts(old, replace(old, run=replace(old.run, parts=(new, *others)))) is None
    assert changed_parts(old, replace(old, name="other")) is None
    assert changed_parts(old, replace(old, run=replace(old.run, started=5.0))) is None
    assert changed_parts(old, replace(old, run=replace(old.run, parts=tuple(others)))) is None
    gone = replace(old, run=replace(old.run, parts=(replace(first, state=PartState.GONE), *others)))
    assert changed_parts(gone, old) is None
