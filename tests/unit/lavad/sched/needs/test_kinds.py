"""Classes that differ in one amount alone share all else, and those that differ in anything else share nothing."""

from __future__ import annotations

from typing import Any

import pytest

from config.model.queue import QueueConfig
from config.model.values import Limits
from lavad.core.lang.gpureq import GpuReq
from lavad.sched.needs.kinds import Needs
from lavad.sched.needs.needs import read_need
from tests.support.worlds.world import World

OTHERS: list[dict[str, Any]] = [
    {"user": "bob"},
    {"queue": "short"},
    {"slots": 2, "max_slots": 2},
    {"hosts": ("h1",)},
    {"exclusive": True},
    {"limits": Limits(run=60)},
    {"begin": 2e6},
    {"reservation": "alice#0"},
    {"memory_auto": True},
    {"from_host": "h1"},
    {"resreq": "rusage[tmp=100]"},
]


def two_queues() -> World:
    world = World()
    world.configure(queues=(QueueConfig(name="normal"), QueueConfig(name="short")))
    world.hosts("h1", "h2")
    return world


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: next(iter(other)))
def test_only_what_differs_in_the_amount_alone_is_of_one_kind(other: dict[str, Any]) -> None:
    world, needs = two_queues(), Needs()
    first, second, third = (world.spec(resreq=f"rusage[mem={amount}]") for amount in (100, 200, 300))
    apart = world.spec(**{"resreq": "rusage[mem=100]"} | other)
    kinds = [needs.kind_of(world.cluster, number) for number in (first, second, third, apart)]
    assert None not in kinds
    kind = kinds[0][0] if kinds[0] is not None else None
    assert [(found[0] is kind, found[1]) for found in kinds if found is not None] == [
        (True, 100.0),
        (True, 200.0),
        (True, 300.0),
        (False, 100.0),
    ]
    for number in (first, second, third, apart):
        found, expected = needs.of(world.cluster, number), read_need(world.cluster, number)
        assert found is not None
        assert expected is not None
        for field in found.__struct_fields__:
            assert getattr(found, field) == getattr(expected, field), field


OTHER_REQUIREMENTS = [
    "",
    "rusage[mem=100:duration=5]",
    "rusage[mem=1,tmp=2]",
    "select[mem>5] rusage[mem=1]",
    "rusage[mem=5GB]",
]


@pytest.mark.parametrize("resreq", OTHER_REQUIREMENTS)
def test_other_requirements_are_no_kind(resreq: str) -> None:
    world, needs = two_queues(), Needs()
    number = world.spec(resreq=resreq)
    assert needs.kind_of(world.cluster, number) is None
    assert needs.of(world.cluster, number) is not None


def test_what_the_queue_reserves_as_well_is_no_kind() -> None:
    world, needs = World(), Needs()
    world.queues(QueueConfig(name="normal", res_req="rusage[tmp=10]"))
    world.hosts("h1")
    number = world.spec(resreq="rusage[mem=100]")
    assert needs.kind_of(world.cluster, number) is None
    need = needs.of(world.cluster, number)
    assert need is not None
    assert dict(need.per_host) | dict(need.per_slot) == {"tmp": 10.0, "mem": 100.0}


def test_gpus_are_part_of_the_kind() -> None:
    world, needs = two_queues(), Needs()
    some = [world.spec(resreq="rusage[mem=100]", gpu=gpu) for gpu in ("", "num=1", "num=2")]
    found = [needs.kind_of(world.cluster, number) for number in some]
    assert len({id(one[0]) for one in found if one is not None}) == 3
    gpus = [need.gpu for number in some if (need := needs.of(world.cluster, number)) is not None]
    assert [gpu.num if isinstance(gpu, GpuReq) else None for gpu in gpus] == [None, 1, 2]
