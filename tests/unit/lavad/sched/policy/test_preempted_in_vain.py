"""Jobs for which preemption makes no room: it is not tried again for others in the cycle."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from config.model.queue import QueueConfig
from lavad.sched.policy.preempt import InVain, Preemptor
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.examples import examples
from tests.support.worlds.preempting import HIGH, LOW, run, step, world_of
from tests.support.worlds.world import World

RESREQS = ["", "rusage[mem=3000]", "rusage[mem=9000]", "rusage[mem=2000] span[hosts=1]", "span[ptile=2]", "rusage[mem=16000]"]
waiting = st.fixed_dictionaries(
    {"user": st.sampled_from(["ann", "bob"]), "slots": st.sampled_from([1, 1, 2, 4, 9]), "resreq": st.sampled_from(RESREQS)}
)
running = st.fixed_dictionaries({"slots": st.sampled_from([1, 2, 3]), "resreq": st.sampled_from(RESREQS[:3])})
queues = st.sampled_from([HIGH, replace(HIGH, hjob_limit=1), replace(HIGH, ujob_limit=2)])


def busy(queue: QueueConfig, jobs: list[dict[str, Any]]) -> World:
    world = world_of(queue, LOW, hosts=("h1", "h2", "h3"))
    for job in jobs:
        run(world, queue="low", **job)
    return world


@settings(max_examples=examples(150))
@given(queues, st.lists(running, max_size=8), st.lists(waiting, max_size=8))
def test_the_plan_is_that_of_trying_each(queue: QueueConfig, before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    world = busy(queue, before)
    for job in after:
        world.submit(queue="high", **job)
    with patch.object(InVain, "covers", lambda *_: False):
        each = world.schedule(SchedulerCache())
    plan = world.schedule(SchedulerCache())
    step(world)
    assert (plan.placements, plan.preemptions) == (each.placements, each.preemptions)
    assert {number: why.reasons for number, why in plan.why.items()} == {number: why.reasons for number, why in each.why.items()}


@pytest.mark.parametrize("more", [{"priority": 5}, {"user": "bob"}, {"resreq": "rusage[mem=9500]"}])
def test_what_takes_no_less_is_not_tried(more: dict[str, str]) -> None:
    """A suspended victim keeps its memory."""
    world = busy(HIGH, [{"slots": 4, "resreq": "rusage[mem=9000]"}] * 3)
    tried = []
    find = Preemptor._find

    def counting(self: Preemptor, *arguments: object, **options: bool) -> object:
        tried.append(arguments)
        return find(self, *arguments, **options)  # type: ignore[arg-type]

    world.submit(queue="high", resreq="rusage[mem=9000]")
    world.submit(queue="high", **{"resreq": "rusage[mem=9000]", **more})  # type: ignore[arg-type]
    with patch.object(Preemptor, "_find", counting):
        plan = world.schedule(SchedulerCache())
    assert (len(tried), plan.preemptions) == (1, ())
