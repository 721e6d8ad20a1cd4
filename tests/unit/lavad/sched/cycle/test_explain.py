"""Why classes with GPUs wait: hosts are asked again only where they have changed, and the reasons are those of asking all."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.plan.volatile import WhyClass
from lavad.core.site.conf import Params
from lavad.core.site.host import Facts, Gpu
from lavad.core.site.pend_reason import PendReason
from lavad.sched.cycle.explain import host_reasons
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.examples import examples
from tests.support.worlds.world import World

JOBS = st.tuples(
    st.sampled_from(["num=1", "num=2", "num=4", "num=1/task", "num=1:gmodel=K80"]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from(["", "rusage[mem=3000]", "span[ptile=1]"]),
    st.sampled_from(["ann", "ben", "cat"]),
)


def world_of(few: int, hosts: list[int]) -> World:
    """Hosts with so many GPUs; ``few``: up to how many they are asked one by one."""
    world = World()
    world.configure(params=Params(parallel_sched_by_slot=True), queues=(QueueConfig(name="normal"),))
    world.memory = SchedulerCache(few=few)
    for number, count in enumerate(hosts):
        name = f"h{number}"
        gpus = tuple(Gpu(uuid=f"{name}.{at}", index=at, model="H200", memory=140_000) for at in range(count))
        world.apply(ev.HostJoined(at=world.now, host=name, facts=Facts(ncpus=4, max_mem=8_000, gpus=gpus)))
        world.apply(ev.HostUp(at=world.now, host=name))
        world.load(name, mem=8_000.0)
    return world


def reasons(few: int, hosts: list[int], rounds: list[list[tuple[str, int, str, str]]]) -> list[dict[int, WhyClass]]:
    world = world_of(few, hosts)
    found = []
    for jobs in rounds:
        for gpu, slots, resreq, user in jobs:
            world.submit(slots=slots, gpu=f"{gpu}:j_exclusive=yes", resreq=resreq, user=user)
        plan = world.schedule()
        world.accept(plan)
        found.append(dict(plan.why))
    return found


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.sampled_from([0, 1, 2, 4]), min_size=1, max_size=6),
    st.lists(st.lists(JOBS, min_size=1, max_size=8), min_size=1, max_size=3),
)
def test_the_reasons_are_those_of_asking_every_host(hosts: list[int], rounds: list[list[tuple[str, int, str, str]]]) -> None:
    """On many hosts they are known from one class to the next; on few all are asked."""
    assert reasons(1, hosts, rounds) == reasons(10_000, hosts, rounds)


def test_hosts_that_another_class_might_use_before_are_not_taken_for_its_own() -> None:
    """What is known of them goes by where they are in memory, where others may be once they are gone."""
    world = world_of(1, [1])
    key = world.submit(slots=2, gpu="num=2:j_exclusive=yes")
    state = CycleState(world.cluster, world.soft, world.now, world.local, SchedulerCache(few=1))
    spec = world.cluster.spec_of(key)
    need = Need.of(1, spec, world.cluster.queue_conf[spec.queue], world.cluster.conf)
    for reason in (PendReason.HOST_QUE_MEMB, PendReason.HOST_USR_SPEC) * 5:
        why = host_reasons(state, need, Eligibility(np.array([reason]), False, (0, 0), 0))
        assert [code for code, count, _ in why.reasons if count] == [reason]


def test_a_job_that_wants_hosts_for_itself_gives_others_no_reason_of_its_own() -> None:
    """Where every host is full, whichever is asked about first."""
    for order in (1, -1):
        world = world_of(1, [0, 0])
        for _ in range(8):
            world.submit()
        assert len(world.step()) == 8
        asked: list[dict[str, Any]] = [{"exclusive": True, "slots": 2}, {"slots": 2}][::order]
        keys = [world.submit(**fields) for fields in asked][::order]
        world.step()
        assert [world.why(key) for key in keys] == [[(PendReason.HOST_NONEXCLUSIVE, 2)], [(PendReason.HOST_JOB_LIMIT, 2)]]


def test_full_hosts_and_one_that_a_job_has_for_itself_say_so_however_many_there_are() -> None:
    for few in (1, 10_000):
        world = world_of(few, [0, 0, 0])
        world.submit(exclusive=True)
        world.step()
        for _ in range(8):
            world.submit()
        world.step()
        key = world.submit()
        world.step()
        assert world.why(key) == [(PendReason.HOST_JOB_LIMIT, 2), (PendReason.HOST_EXCLUSIVE, 1)]


def test_of_a_compound_requirement_full_hosts_say_the_same_however_many_there_are() -> None:
    found = []
    for few in (1, 10_000):
        world = world_of(few, [0, 0, 0, 2])
        world.submit(exclusive=True)
        world.step()
        for _ in range(12):
            world.submit()
        world.step()
        keys = [
            world.submit(slots=2, resreq=text) for text in ("1*{select[ngpus<1]}+1*{}", "1*{}+1*{select[ngpus<1]}", "1*{}+1*{}")
        ]
        world.step()
        found.append([sorted(world.why(key)) for key in keys])
    assert found[0] == found[1]
    assert found[0][0] == [(PendReason.HOST_RES_REQ, 1), (PendReason.HOST_JOB_LIMIT, 2), (PendReason.HOST_EXCLUSIVE, 1)]
    assert found[0][2] == [(PendReason.HOST_JOB_LIMIT, 3), (PendReason.HOST_EXCLUSIVE, 1)]
