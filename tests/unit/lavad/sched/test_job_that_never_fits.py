"""A job that no host can ever take says so."""

from __future__ import annotations

from typing import Any

import pytest

from lavad.core.site.conf import Params
from lavad.core.site.pend_reason import NEVER_RUSAGE, PendReason, text
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
