"""The smallest change that ``lava why`` tells, confirmed by trying every change there is on a small cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from config.model.cluster import HostConfig, Limit
from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.snapshot import restore, take
from lavad.core.decide.modify.permitted import Permitted
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.events.apply import apply
from lavad.core.job.spec import Spec
from lavad.core.site.conf import Conf, Params
from lavad.sched.ask.trial import Moment, starts
from lavad.sched.ask.what_if import find_changes
from lavad.sched.cycle.cycle import schedule
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.examples import examples
from tests.support.worlds.world import World

HOSTS = ("h1", "h2")
MEM = 12
"""MB of each host: so few that every amount can be tried."""
CONF = Conf(
    queues=(QueueConfig(name="normal", priority=30), QueueConfig(name="night", priority=20, hosts=("h2",))),
    hosts=tuple(HostConfig(name=name, slots=3) for name in HOSTS),
    limits=(Limit(name="bob", users=("bob",), slots=4),),
    params=Params(parallel_sched_by_slot=True),
)
RESREQS = [
    "",
    "span[hosts=1]",
    "span[ptile=1]",
    "rusage[mem=4]",
    "rusage[mem=9]",
    "rusage[mem=20]",
    "rusage[mem=7] span[hosts=1]",
]

jobs = st.fixed_dictionaries(
    {
        "user": st.sampled_from(["ann", "bob"]),
        "queue": st.sampled_from(["normal", "normal", "night"]),
        "slots": st.integers(1, 7),
        "resreq": st.sampled_from(RESREQS),
        "gpu": st.sampled_from(["", "", "", "num=2", "num=3"]),
    }
)


def starts_with(world: World, key: int, spec: Spec) -> bool:
    """Whether a job starts in the next cycle of a copy of the cluster in which it has this spec."""
    cluster = restore(take(world.cluster))
    number = cluster.spec_numbers.get(spec, cluster.next_spec)
    if number == cluster.next_spec:
        apply(cluster, ev.SpecAdded(at=world.now, spec=number, value=spec))
    apply(cluster, ev.JobModified(at=world.now, key=key, spec=number, name="job"))
    plan = schedule(cluster, world.soft, world.now, world.local, SchedulerCache())
    for event in accept_plan(cluster, plan, world.now, "brute"):
        apply(cluster, event)
    return key in cluster.started


def largest(world: World, key: int, changed: Iterable[tuple[int, Spec]]) -> int:
    """The largest number of these with which the job starts; 0: none."""
    return max((number for number, spec in changed if starts_with(world, key, spec)), default=0)


def told(texts: list[str], pattern: str) -> int:
    """The number in the one text that says this; 0: none does."""
    found = [int(match[1]) for text in texts if (match := re.search(pattern, text))]
    assert len(found) <= 1
    return found[0] if found else 0


@settings(max_examples=examples(120))
@given(st.lists(jobs, max_size=4), jobs)
def test_the_largest_number_that_starts_is_told(others, wanted):
    world = World(CONF)
    world.hosts(*HOSTS, slots=3, mem=MEM, gpus=2)
    for fields in others:
        world.submit(**fields)
    world.step()
    key = world.submit(**wanted)
    assume(key not in world.step())
    spec = world.cluster.spec_of(key)
    world.cluster.forget_changes()
    changes = find_changes(Moment(world.cluster, world.soft, world.now, world.local), key, Permitted.of(world.cluster, key))
    texts = [change.text for change in changes if ", and " not in change.text]
    slots = ((n, replace(spec, slots=n, max_slots=n)) for n in range(1, spec.slots))
    assert told(texts, r"^(\d+) slots? instead") == largest(world, key, slots)
    mem = re.search(r"mem=(\d+)", spec.resreq)
    if mem is not None:
        amounts = ((n, replace(spec, resreq=spec.resreq.replace(mem[0], f"mem={n}"))) for n in range(1, int(mem[1])))
        assert told(texts, r"^mem=(\d+) instead") == largest(world, key, amounts)
    if spec.gpu is not None:
        cards = ((n, replace(spec, gpu=replace(spec.gpu, num=n))) for n in range(1, spec.gpu.num or 1))
        assert told(texts, r"^(\d+) GPUs? instead") == largest(world, key, cards)


def test_a_change_that_does_not_start_it_is_caught() -> None:
    """The seeded bug: told without a trial, one slot fewer is no change that starts a job which needs two fewer."""
    world = World(CONF)
    world.hosts(*HOSTS, slots=3, mem=MEM)
    world.submit(slots=2)
    world.step()
    key = world.submit(slots=6)
    world.step()
    spec = world.cluster.spec_of(key)
    assert not starts_with(world, key, replace(spec, slots=5, max_slots=5))
    assert starts_with(world, key, replace(spec, slots=4, max_slots=4))
    world.cluster.forget_changes()
    assert not starts(Moment(world.cluster, world.soft, world.now, world.local), key)
    changes = find_changes(Moment(world.cluster, world.soft, world.now, world.local), key, Permitted.of(world.cluster, key))
    assert told([change.text for change in changes], r"^(\d+) slots? instead") == 4
    assert changes[0].size == pytest.approx(1 - 4 / 6)
