"""A job with roles that waits is tried again for whatever gives it room, also where none of its hosts has more than before."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from config.model.cluster import Limit
from config.model.guarantees import Amount, Pool, ServiceClass
from config.model.queue import QueueConfig
from lavad.core.job.spec import Role
from lavad.core.site.conf import ResourceConf
from lavad.sched.cycle import still_blocked
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.world import World

LICENSE = ResourceConf(name="lic", kind="numeric", consumable=True, locations=((2.0, ("all",)),))
EXCLUSIVE = {"queues": (QueueConfig(name="normal", exclusive=True),)}
GUARANTEE = Pool(name="p", type="slots", distribution=(("gold", Amount(3)),), hosts=("h1", "h2"))
GPU = "num=1:j_exclusive=yes"


def limit(**fields: Any) -> dict[str, Any]:
    return {"limits": (Limit(name="l", **fields),)}


def roles(**fields: Any) -> tuple[Role, ...]:
    return Role(name="a", count=2, least=2, slots=1, **fields), Role(name="b", count=1, least=1, slots=1)


ROOM: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[Role, ...], dict[str, Any]]] = {
    "slots of two users": (limit(users=("alice", "bob"), slots=5), {"slots": 4}, roles(), {}),
    "slots of other hosts": (limit(hosts=("h1", "h2"), slots=5), {"slots": 4, "on": "h2"}, roles(), {}),
    "memory of other hosts": (
        limit(hosts=("h1", "h2"), mem=5000.0),
        {"on": "h2", "resreq": "rusage[mem=4000]"},
        roles(resreq="rusage[mem=1000]"),
        {},
    ),
    "licenses of a role": ({}, {"on": "h2", "resreq": "rusage[lic=1]"}, roles(resreq="rusage[lic=1]"), {}),
    "licenses of the job": ({}, {"on": "h2", "resreq": "rusage[lic=1]"}, roles(), {"resreq": "rusage[lic=2]"}),
    "a host without jobs": (EXCLUSIVE, {}, roles(), {"exclusive": True}),
    "a host that a job had for itself": (EXCLUSIVE, {"exclusive": True}, roles(), {}),
    "GPUs": ({}, {"gpu": GPU}, roles(gpus=1), {"gpu": GPU}),
    "GPUs of a limit on other hosts": (
        limit(hosts=("h1", "h2"), resources=(("ngpus_physical", 2.0),)),
        {"on": "h2", "gpu": GPU},
        roles(gpus=1),
        {"gpu": GPU},
    ),
    "a pool on other hosts": (
        {"service_classes": (ServiceClass(name="gold"),), "pools": (GUARANTEE,)},
        {"slots": 4, "on": "h2"},
        roles(),
        {},
    ),
    "slots of a queue on a host": ({"queues": (QueueConfig(name="normal", hjob_limit=3),)}, {"slots": 2}, roles(), {}),
}


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize("looks", [0, still_blocked.LOOKS])
@pytest.mark.parametrize("room", ROOM)
def test_it_starts_once_there_is_room(room: str, looks: int, few: int) -> None:
    conf, before, named, fields = ROOM[room]
    world = World()
    world.memory = SchedulerCache(few=few)
    world.configure(resources=(LICENSE,), **conf)
    world.hosts("h1", "h2", slots=4, gpus=2)
    with patch.object(still_blocked, "LOOKS", looks):
        other = world.submit(user="bob", hosts=(before.get("on", "h1"),), **{k: v for k, v in before.items() if k != "on"})
        assert world.step().keys() == {other}
        waiting = world.submit(roles=named, slots=3, hosts=("h1",), **fields)
        for r1m in (0.0, 0.1, 0.2):
            world.load("h1", r1m=r1m)
            assert world.step() == {}
        world.finish(other)
        assert world.step().keys() == {waiting}
