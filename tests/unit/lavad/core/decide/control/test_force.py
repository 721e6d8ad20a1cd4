"""brun: a job that an administrator forces to run."""

from __future__ import annotations

from typing import Any

import pytest

from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.control.force import force
from lavad.core.job.spec import Checkpoint
from lavad.core.lang.asks import Caller, Refused, Run
from tests.support.worlds.preempting import states, step, world_of
from tests.support.worlds.world import World

BOSS = Caller(user="boss", uid=1, host="h1")
NIGHT = QueueConfig(name="q", priority=30, run_window="8:00-18:00")


def brun(world: World, job: int, **options: Any) -> None:
    world.configure(admins=("boss",))
    world.apply(*force(world.cluster, Run(job=str(job), **options), BOSS, world.now, f"uid{job}").events)


def test_with_f_a_closed_run_window_does_not_suspend_it() -> None:
    world = world_of(NIGHT)
    world.local = (1, 19 * 3600)
    plain, forced = world.submit(queue="q"), world.submit(queue="q")
    step(world)
    assert states(world, plain, forced) == ["PEND", "PEND"]
    brun(world, plain)
    brun(world, forced, force=True)
    step(world)
    assert states(world, plain, forced) == ["SSUSP", "RUN"]


@pytest.mark.parametrize(("afresh", "wanted"), [(False, 3), (True, -1)])
def test_with_b_it_starts_over(afresh: bool, wanted: int) -> None:
    world = world_of()
    spec = world.spec(checkpoint=Checkpoint(folder="/ck", method="app"))
    job = world.cluster.next_job
    world.apply(ev.JobSubmitted(at=world.now, key=job, spec=spec, name="job", restart=3))
    brun(world, job, afresh=afresh)
    row = world.cluster.jobs.rows[job]
    assert row.run is not None
    assert (row.checkpoint, row.run.checkpoint) == (wanted, wanted)


@pytest.mark.parametrize(
    ("slots", "gpu", "hosts", "wanted"),
    [
        (1, "num=1", [], {"h1": 1}),
        (1, "num=2:j_exclusive=yes", [], {"h2": 2}),
        (2, "num=1/task:j_exclusive=yes", ["h2", "h1"], {"h2": 2}),
        (3, "num=1/task:j_exclusive=yes", ["h1", "h2"], {"h1": 1, "h2": 2}),
        (3, "num=1/task:j_exclusive=yes", ["h1", "h2#1"], None),
        (4, "num=2", ["h2#1"], None),
        (1, "num=2:j_exclusive=yes", ["h1"], None),
        (1, "gmem=100G", ["h1"], {"h1": 1}),
        (1, "gmem=100G:gmodel=A100", [], None),
        (1, "mig=1", [], None),
    ],
)
def test_gpus_are_taken_of_what_is_free(slots: int, gpu: str, hosts: list[str], wanted: dict[str, int] | None) -> None:
    """h1 has two GPUs, one of which a job has for itself, h2 two."""
    world = World()
    world.hosts("h1", "h2", slots=4, gpus=2)
    world.submit(gpu="num=1:j_exclusive=yes", hosts=("h1",))
    world.step()
    job = world.submit(slots=slots, gpu=gpu)
    if wanted is None:
        with pytest.raises(Refused, match="Not enough free job slots or GPUs on the hosts"):
            brun(world, job, hosts=hosts)
        return
    brun(world, job, hosts=hosts)
    run = world.cluster.jobs.rows[job].run
    assert run is not None
    assert {part.host: len(set(part.gpus)) for part in run.parts} == wanted
    check_invariants(world.cluster)


def test_a_job_that_binds_cpus_is_not_placed_without_its_cpus() -> None:
    world = world_of()
    job = world.submit(resreq="affinity[core(1)]")
    with pytest.raises(Refused, match=r"binds CPUs \(affinity\[\]\)"):
        brun(world, job)


@pytest.mark.parametrize(
    ("slots", "hosts", "wanted"),
    [
        (4, ["h1", "h1"], {"h1": 4}),
        (5, ["h1", "h1"], None),
        (8, ["all", "h1"], {"h1": 4, "h2": 4}),
        (9, ["h1", "all"], None),
        (3, ["h2#2", "h2#1"], {"h2": 3}),
        (4, ["h2#2", "h2#1"], None),
        (6, ["h2#2", "h1"], {"h2": 2, "h1": 4}),
    ],
)
def test_a_host_that_is_named_twice_is_one(slots: int, hosts: list[str], wanted: dict[str, int] | None) -> None:
    world = World()
    world.hosts("h1", "h2", slots=4)
    job = world.submit(slots=slots)
    if wanted is None:
        with pytest.raises(Refused, match="Not enough free job slots on the hosts"):
            brun(world, job, hosts=hosts)
        return
    brun(world, job, hosts=hosts)
    run = world.cluster.jobs.rows[job].run
    assert run is not None
    assert {part.host: part.slots for part in run.parts} == wanted
    check_invariants(world.cluster)


def test_a_closed_host_is_not_forced_to_take_it() -> None:
    world = World()
    world.hosts("h1", "h2", slots=2)
    world.host_switch("h1", closed=True)
    with pytest.raises(Refused, match="Not enough free job slots on the hosts"):
        brun(world, world.submit(), hosts=["h1"])
    job = world.submit(slots=2)
    brun(world, job, hosts=["h1", "h2"])
    assert world.running()[job] == {"h2": 2}


def test_a_host_that_a_job_has_for_itself_is_taken_only_by_name() -> None:
    world = world_of(QueueConfig(name="q", priority=30, exclusive=True))
    alone, other = world.submit(queue="q", exclusive=True), world.submit(queue="q")
    step(world)
    (host,) = world.running()[alone]
    for name in world.cluster.hosts.rows:
        world.host_switch(name, closed=name != host)
    with pytest.raises(Refused, match="Not enough free job slots on the hosts"):
        brun(world, other)
    brun(world, other, hosts=[host])
    assert world.running()[other] == {host: 1}
