"""Three departments share GPUs 1:2:3 over a virtual day, in each of the ways that a site may say so; nobody starves."""

from __future__ import annotations

from typing import Any

import pytest

from config.model.queue import QueueConfig
from config.model.values import FairShare
from lavad.core.site.conf import Conf, Params
from tests.support.worlds.virtual_time import VirtualSite
from tests.support.worlds.world import World

SHARES = {"physics": 1, "maths": 2, "biology": 3}
GPUS = 24
HOURS = 3600.0
WISHES = {"physics": "num=2:j_exclusive=yes", "maths": "num=1:j_exclusive=yes", "biology": "num=4:j_exclusive=yes"}
"""What the jobs of each department ask for on a host: they differ in size."""
LENGTHS = {"physics": 1700.0, "maths": 1100.0, "biology": 1450.0}
GROUPS = tuple((name, (name[:3],)) for name in SHARES)
USERS = {name[:3]: name for name in SHARES}


def day(queues: tuple[QueueConfig, ...], wishes: dict[str, str], **more: Any) -> dict[str, float]:
    """GPU seconds of each department, each of which always has jobs that wait; in its own queue where there are three."""
    world = World(Conf(queues=queues, params=Params(parallel_sched_by_slot=True), user_groups=GROUPS, **more))
    world.hosts(*(f"h{at}" for at in range(GPUS // 8)), slots=64, gpus=8)
    site = VirtualSite(world, length=lambda user: LENGTHS[USERS[user]])

    def refill(world: World) -> None:
        waiting = dict.fromkeys(SHARES, 0)
        for number, pending in world.cluster.pending.items():
            waiting[USERS[world.cluster.specs.rows[number].user]] += len(pending)
        for name, count in waiting.items():
            queue = name if len(queues) > 1 else queues[0].name
            for _ in range(30 - count if count < 15 else 0):
                world.submit(user=name[:3], queue=queue, gpu=wishes[name])

    site.run(24 * HOURS, refill)
    assert sum(site.gpu_seconds.values()) > 0.9 * GPUS * 24 * HOURS, "the GPUs are not left idle for it"
    return {USERS[user]: seconds for user, seconds in site.gpu_seconds.items()}


def check(seconds: dict[str, float]) -> None:
    total = sum(seconds.values())
    for name, count in SHARES.items():
        assert seconds[name] / total == pytest.approx(count / sum(SHARES.values()), rel=0.05), seconds


def alike(wish: str) -> dict[str, str]:
    return dict.fromkeys(SHARES, wish)


def test_queues_with_weights_of_gpus() -> None:
    check(day(tuple(QueueConfig(name=name, gpu_weight=count) for name, count in SHARES.items()), WISHES))


def test_one_queue_by_the_dominant_share() -> None:
    """Slots are plenty: the GPUs are what is short, and each department's dominant share."""
    share = FairShare(shares=tuple(SHARES.items()), dominant_resources=("slots", "mem", "gpus"))
    check(day((QueueConfig(name="all", share=share),), alike("num=1:j_exclusive=yes")))


def by_formula(gpu_run_time_factor: float) -> dict[str, float]:
    share = FairShare(
        shares=tuple(SHARES.items()),
        cpu_time_factor=0.0,
        run_time_factor=0.0,
        run_job_factor=0.2,
        gpu_run_time_factor=gpu_run_time_factor,
        enable_gpu_hist_run_time=True,
    )
    one, two = "num=1:j_exclusive=yes", "num=2:j_exclusive=yes"
    return day((QueueConfig(name="all", share=share),), {"physics": two, "maths": one, "biology": two})


def test_one_queue_by_lsfs_formula_with_the_gpu_term() -> None:
    check(by_formula(1.0))
    with pytest.raises(AssertionError):
        check(by_formula(0.0))


def test_other_shares_do_not_pass_for_these() -> None:
    with pytest.raises(AssertionError):
        check(day(tuple(QueueConfig(name=name, gpu_weight=1) for name in SHARES), WISHES))
