"""Jobs that a plan starts alike are accepted as they are one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from config.model.queue import QueueConfig
from lavad.core.decide.placement.placement import _Acceptance, accept_plan
from lavad.core.events import Event, GroupSet, JobHeld, JobMoved
from lavad.core.job.groups import JobGroup
from lavad.core.job.job import Placed
from lavad.core.lang.ids import key_of
from lavad.core.plan.plan import Placement, Plan
from lavad.core.site.limit_book import LimitBook
from tests.support.examples import examples
from tests.support.worlds.world import World

SPECS: list[dict[str, Any]] = [
    {},
    {"slots": 2},
    {"exclusive": True},
    {"rerunnable": True},
    {"resreq": "rusage[mem=1000]"},
    {"group": "/g/a", "max_slots": 4},
]


def _world(limit: int = 0, queue: dict[str, Any] | None = None, **fields: Any) -> World:
    world = World()
    world.queues(QueueConfig(name="normal", **(queue or {})))
    world.hosts("h1", "h2", slots=7)
    world.apply(GroupSet(at=world.now, value=JobGroup(name="/g", owner="ann", limit=3)))
    world.submit(array="1-30", limit=limit, **fields)
    world.submit(array="1-5")
    world.submit()
    for _ in range(6):
        world.submit(**fields)
    world.apply(JobMoved(at=world.now, key=6, position=-1.0), JobHeld(at=world.now, key=8))
    return world


def _one_by_one(world: World, plan: Plan) -> list[Event]:
    draft = _Acceptance(world.cluster, world.now, "s", LimitBook(world.cluster.conf))
    for placement in plan.placements:
        draft.take(replace(plan, placements=(placement,)))
    return draft.events


KEYS = [
    *(key_of(1, index) for index in range(1, 12)),
    1,
    4,
    5,
    6,
    7,
    8,
    9,
    4,
    5,
    key_of(2, 1),
    key_of(2, 2),
    key_of(2, 7),
    3,
    key_of(10, 1),
]
KNOWN = range(4, 10)
"""Separate jobs, which the plan names with their classes."""
PARTS = st.sampled_from([("h1", 1), ("h1", 1), ("h1", 1), ("h2", 1), ("h1", 2), ("h3", 1)])
PLACED = st.tuples(st.lists(st.sampled_from(KEYS), min_size=1, max_size=12), PARTS, st.sampled_from([(), (("mem", 1000.0),)]))


@settings(max_examples=examples(300), deadline=None)
@given(
    placed=st.lists(PLACED, max_size=4),
    limit=st.sampled_from([0, 0, 3]),
    queue=st.sampled_from([{}, {}, {"ujob_limit": 4}, {"hjob_limit": 2}]),
    fields=st.sampled_from(SPECS),
)
def test_a_plan_is_accepted_as_one_by_one(
    placed: list[tuple[list[int], tuple[str, int], Any]], limit: int, queue: dict[str, Any], fields: dict[str, Any]
) -> None:
    world = _world(limit, queue, **fields)
    placements = [
        Placement(key, (Placed(host=host, slots=slots, reserved=reserved),), world.cluster.get(key).spec if key in KNOWN else 0)
        for keys, (host, slots), reserved in placed
        for key in keys
    ]
    plan = Plan(world.cluster.version, placements=tuple(placements))
    events = accept_plan(world.cluster, plan, world.now, "s")
    assert events == _one_by_one(world, plan)
    world.apply(*events)


@pytest.mark.parametrize(
    ("limit", "queue", "fields", "started"),
    [
        (0, {}, {}, 14),
        (4, {}, {}, 4),
        (0, {"ujob_limit": 5}, {}, 5),
        (0, {"hjob_limit": 2}, {}, 4),
        (0, {}, {"exclusive": True}, 2),
        (0, {}, {"group": "/g", "max_slots": 4}, 3),
    ],
)
def test_what_a_plan_wants_beyond_slots_and_limits_stays_pending(
    limit: int, queue: dict[str, Any], fields: dict[str, Any], started: int
) -> None:
    world = _world(limit, queue, **fields)
    wanted = [(host, index) for host, indices in (("h1", range(1, 11)), ("h2", range(11, 21))) for index in indices]
    placements = tuple(Placement(key_of(1, index), (Placed(host=host, slots=1),)) for host, index in wanted)
    events = accept_plan(world.cluster, Plan(world.cluster.version, placements=placements), world.now, "s")
    assert len(events) == started
    world.apply(*events)
