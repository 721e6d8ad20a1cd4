"""A job that no host can ever take says so."""

from __future__ import annotations

from typing import Any

import pytest

from config.model.cluster import HostConfig
from lavad.core.job.spec import Role
from lavad.core.site.conf import Params
from lavad.core.site.pend_reason import JOB_RUSAGE, NEVER_RUSAGE, NEVER_TOGETHER, PendReason, text
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.world import World


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"slots": 9}, PendReason.NEVER_SLOTS),
        ({"slots": 5, "resreq": "span[hosts=1]"}, PendReason.NEVER_HOST_SLOTS),
        ({"resreq": "rusage[mem=17000]"}, NEVER_RUSAGE + 10),
        ({"gpu": "num=3"}, PendReason.NEVER_GPUS),
        ({"resreq": "select[ncpus>64]"}, PendReason.NO_SUITABLE_HOST),
        ({"resreq": "rusage[mem=15000]", "slots": 1}, 0),
        ({"gpu": "num=2"}, 0),
        ({"resreq": "select[mem>20000]"}, 0),
    ],
)
def test_no_host_can_ever(fields: dict[str, Any], reason: int, few: int) -> None:
    world = World()
    world.memory = SchedulerCache(few=few)
    world.configure(params=Params(parallel_sched_by_slot=True))
    world.hosts("h1", "h2", slots=4, gpus=2)
    for host in ("h1", "h2"):
        world.load(host, mem=100.0)
    for _ in range(8):
        world.submit(gpu="num=1:j_exclusive=yes")
    world.step()
    job = world.submit(**{"slots": 1} | fields)
    world.step()
    first = world.why(job)[0][0]
    never = {PendReason.NEVER_SLOTS, PendReason.NEVER_HOST_SLOTS, NEVER_RUSAGE + 10, PendReason.NEVER_GPUS}
    assert first == reason if reason else first not in {*never, PendReason.NO_SUITABLE_HOST}
    if reason:
        assert "no host can ever" in text(first, world.cluster.conf)


TOGETHER = NEVER_TOGETHER + 10


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize(
    ("fields", "reason", "of_hosts"),
    [
        ({"gpu": "num=1/task"}, PendReason.NEVER_GPUS_TOGETHER, PendReason.GPU_BUSY),
        ({"gpu": "num=1/task", "slots": 4}, PendReason.GPU_BUSY, PendReason.GPU_BUSY),
        ({"gpu": "num=2/task", "slots": 3}, PendReason.NEVER_GPUS_TOGETHER, PendReason.GPU_BUSY),
        ({"resreq": "rusage[mem=6000/task]"}, TOGETHER, JOB_RUSAGE + 10),
        ({"resreq": "rusage[mem=6000/task]", "slots": 4}, JOB_RUSAGE + 10, JOB_RUSAGE + 10),
        ({"resreq": "rusage[mem=4000/task] span[ptile=1]"}, PendReason.NEVER_SLOTS, None),
        ({"resreq": "rusage[mem=9000/task] span[ptile=2]", "slots": 4}, TOGETHER, None),
        ({}, PendReason.HOST_LESS_SLOTS, PendReason.HOST_LESS_SLOTS),
    ],
)
def test_what_all_hosts_have_too_little_of_is_named(fields: dict[str, Any], reason: int, of_hosts: int | None, few: int) -> None:
    """Two hosts, each with four slots, two GPUs and 16 GB, and on one of them a job that takes some of all."""
    world = World()
    world.memory = SchedulerCache(few=few)
    world.configure(params=Params(parallel_sched_by_slot=True))
    world.hosts("h1", "h2", slots=4, gpus=2)
    for host in ("h1", "h2"):
        world.load(host, mem=16_000.0)
    world.submit(gpu="num=1:j_exclusive=yes", resreq="rusage[mem=6000]")
    world.step()
    job = world.submit(**{"slots": 8} | fields)
    world.step()
    found = world.why(job)
    assert found[0][0] == reason
    if of_hosts is not None:
        assert {code for code, count in found if count} == {of_hosts}
    if reason in (TOGETHER, PendReason.NEVER_GPUS_TOGETHER):
        assert "There are no suitable hosts for the job: all together" in text(reason, world.cluster.conf)


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize(
    ("fields", "by_slot", "reason"),
    [
        ({"slots": 4, "resreq": "span[hosts=1]"}, False, PendReason.NEVER_SLOTS_BY_CPU),
        ({"slots": 8}, False, PendReason.NEVER_SLOTS_BY_CPU),
        ({"slots": 9}, False, PendReason.NEVER_SLOTS),
        ({"slots": 8}, True, None),
        ({"slots": 4}, False, None),
    ],
)
def test_parallel_jobs_are_placed_by_cpus(fields: dict[str, Any], by_slot: bool, reason: PendReason | None, few: int) -> None:
    """LSF's default: a host with more slots than CPUs gives them to several jobs."""
    world = World()
    world.memory = SchedulerCache(few=few)
    hosts = tuple(HostConfig(name=name, slots=4) for name in ("h1", "h2"))
    world.configure(params=Params(parallel_sched_by_slot=by_slot), hosts=hosts)
    world.hosts("h1", "h2", slots=2)
    job = world.submit(**fields)
    started = world.step()
    assert list(started) == ([] if reason else [job])
    assert reason is None or world.why(job)[0][0] == reason


@pytest.mark.parametrize(
    ("roles", "never"),
    [
        ((Role(name="a", count=3, least=3, slots=4), Role(name="b")), PendReason.NEVER_SLOTS),  # 13 slots, and there are 12
        ((Role(name="a", count=3, least=3, slots=4),), None),
        ((Role(name="a", count=20, least=12),), None),
        ((Role(name="a"), Role(name="b", count=9, least=9, resreq="select[hname!=h1]")), PendReason.NEVER_SLOTS),
        ((Role(name="a"), Role(name="b", count=8, least=8, resreq="select[hname!=h1]")), None),
        ((Role(name="a", count=4, least=4, spread=True),), PendReason.JOB_NO_SPAN),
        ((Role(name="a", count=3, least=3, spread=True),), None),
    ],
)
def test_roles_that_no_hosts_can_ever_hold(roles: tuple[Role, ...], never: PendReason | None) -> None:
    """Also while other jobs have them all."""
    world = World()
    world.hosts("h1", "h2", "h3", slots=4)
    world.submit(slots=12, max_slots=12)
    world.step()
    least = sum(role.least * role.slots for role in roles)
    key = world.submit(roles=roles, slots=least, max_slots=sum(role.count * role.slots for role in roles), launch="roles")
    world.step()
    reason, hosts = world.why(key)[0]
    assert (reason if not hosts else None) == never
