"""What a question knows of hosts from the trials before: each trial ends as it would with a cache of its own."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from msgspec.structs import replace

from lavad.core.job.spec import Spec
from lavad.core.lang.states import JobState
from lavad.sched.ask.trial import Moment, starts
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.examples import examples
from tests.support.worlds.mixed_site import act, make_world, sites, stories
from tests.support.worlds.world import World

MOST = 3
"""Waiting jobs that are asked about after each cycle."""


def others(spec: Spec, queues: tuple[str, ...]) -> list[Spec | None]:
    """As it is, smaller, without options, and in other queues."""
    smaller = replace(spec, slots=1, max_slots=1, resreq="", roles=())
    plain = replace(spec, gpu=None, exclusive=False, reservation="", service_class="", group="")
    return [None, smaller, plain, *(replace(plain, queue=queue, slots=2, max_slots=2) for queue in queues), None]


@settings(max_examples=examples(60))
@given(sites, stories)
def test_a_trial_ends_as_it_would_alone(site: dict[str, Any], story: list[tuple[tuple[Any, ...], bool]]) -> None:
    world = make_world(site)
    for action, is_followed in story:
        act(world, site["queues"], action)
        ask_about(world, site["queues"])
        if is_followed:
            world.accept(world.schedule())


def ask_about(world: World, queues: tuple[str, ...]) -> None:
    world.cluster.forget_changes()
    moment = Moment(world.cluster, world.soft, world.now, world.local)
    caches = SchedulerCache(), SchedulerCache(few=1)
    waiting = [key for key in sorted(world.cluster.jobs.rows) if world.cluster.jobs.rows[key].state is JobState.PEND]
    for key in waiting[:MOST]:
        for spec in others(world.cluster.spec_of(key), queues):
            alone = starts(moment, key, spec)
            for cache in caches:
                assert starts(moment, key, spec, cache) == alone, (key, spec)
