"""A small cluster with a queue that preempts another, cycle by cycle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from config.model.queue import QueueConfig
from config.model.values import JobAction, JobControl, Preemption
from lavad.core.cluster.invariants import check_invariants
from lavad.core.plan.plan import Plan
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.world import World

HIGH = QueueConfig(name="high", priority=60, preemption=Preemption(preemptive=True))
LOW = QueueConfig(name="low", priority=20)
REQUEUE = QueueConfig(name="low", priority=20, job_controls=(JobControl(JobAction.SUSPEND, "brequeue $LSB_JOBID"),))


def world_of(*queues: QueueConfig, hosts: Sequence[str] = ("h1",), slots: int = 4, **about: Any) -> World:
    world = World()
    world.queues(*(queues or (HIGH, LOW)))
    world.hosts(*hosts, slots=slots, **about)
    return world


def step(world: World) -> Plan:
    """One cycle, accepted, the same without memory."""
    plan = world.schedule()
    fresh = world.schedule(SchedulerCache())
    columns = world.schedule(SchedulerCache(few=1))
    for field in ("placements", "preemptions", "resumes", "suspensions", "releases", "promises", "wake_at"):
        assert getattr(plan, field) == getattr(fresh, field) == getattr(columns, field), field
    world.accept(plan)
    world.soft.why.update(plan.why)
    world.soft.why_job = plan.why_job
    check_invariants(world.cluster)
    return plan


def states(world: World, *keys: int) -> list[str]:
    return [world.cluster.jobs.rows[key].state.name for key in keys]


def run(world: World, count: int = 1, **fields: object) -> list[int]:
    """Jobs that start one after the other, a minute apart."""
    keys = []
    for _ in range(count):
        keys.append(world.submit(**fields))  # type: ignore[arg-type]
        step(world)
        world.now += 60
    return keys
