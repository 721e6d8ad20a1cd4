"""Whole hosts that are guaranteed to a class, beside slots that are reserved there for jobs of others (SLOT_RESERVE)."""

from __future__ import annotations

from config.model.guarantees import Amount, Pool, ServiceClass
from config.model.queue import QueueConfig
from lavad.core.site.pend_reason import POOL
from tests.support.worlds.preempting import step
from tests.support.worlds.world import World

POOLS = (Pool(name="pool", type="hosts", distribution=(("gold", Amount(1)), ("silver", Amount(1)))),)


def test_a_host_that_a_class_has_stays_its_own_while_slots_are_reserved_there_for_a_later_job_of_others() -> None:
    world = World()
    queues = (
        QueueConfig(name="gold", priority=30),
        QueueConfig(name="big", priority=25, slot_reserve=1000),
        QueueConfig(name="normal", priority=20),
    )
    classes = (ServiceClass(name="gold", queues=("gold",), auto_attach=True), ServiceClass(name="silver"))
    world.configure(queues=queues, service_classes=classes, pools=POOLS)
    world.hosts("h1", "h2", "h3", slots=5)
    gold = [world.submit(queue="gold", slots=3) for _ in range(2)]
    step(world)
    big = world.submit(queue="big")
    normal = world.submit(queue="normal")
    step(world)
    assert set(world.cluster.started) == set(gold)
    assert all(POOL in dict(world.why(key)) for key in (big, normal))
