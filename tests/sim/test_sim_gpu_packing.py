"""Jobs with GPUs of mixed sizes in virtual time: packed, those of whole hosts wait less than with the first host that fits."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import chain
from math import exp
from random import Random
from statistics import mean

import pytest

from config.model.queue import QueueConfig
from config.model.values import Limits
from lavad.core import events as ev
from lavad.core.site.conf import Conf, Params
from lavad.core.site.host import Facts, Gpu
from tests.support.worlds.world import World

HOSTS = 16
ISLANDS = tuple("".join("X" if a == b else "N" if a // 4 == b // 4 else "S" for b in range(8)) for a in range(8))
SIZES = ((1, 0.60), (2, 0.15), (4, 0.12), (8, 0.10), (16, 0.03))
"""GPUs of a job, and its share of the jobs; more than 8: so many hosts of 8."""
LOAD = 0.9
MEDIAN = 1800.0
SIGMA = 1.0
"""Seconds; run times are log-normal."""
FIRST_FIT = Params(parallel_sched_by_slot=True, lava_pack_weights=(("gpus", 0.0),))
PACKED = Params(parallel_sched_by_slot=True)

Arrival = tuple[float, int, float]
"""(seconds after the begin, GPUs, run time)."""


def trace(seed: int, jobs: int) -> list[Arrival]:
    random = Random(seed)
    sizes, shares = [size for size, _ in SIZES], [share for _, share in SIZES]
    run = MEDIAN * exp(SIGMA**2 / 2)
    gap = sum(size * share for size, share in SIZES) * run / (HOSTS * 8 * LOAD)
    at = 0.0
    found: list[Arrival] = []
    for _ in range(jobs):
        at += random.expovariate(1 / gap)
        found.append((at, random.choices(sizes, shares)[0], min(random.lognormvariate(0, SIGMA) * MEDIAN, 20 * MEDIAN)))
    return found


def site(params: Params, queue: QueueConfig) -> World:
    world = World(Conf(queues=(queue,), params=params))
    for number in range(HOSTS):
        cards = tuple(
            Gpu(uuid=f"G{number}-{at}", index=at, model="H200", memory=140_000, links=row, numa=at // 4)
            for at, row in enumerate(ISLANDS)
        )
        facts = Facts(ncpus=64, max_mem=500_000, gpus=cards)
        world.apply(ev.HostJoined(at=world.now, host=f"h{number:02}", facts=facts), ev.HostUp(at=world.now, host=f"h{number:02}"))
        world.load(f"h{number:02}", mem=500_000.0)
    return world


def waits(world: World, arrivals: list[Arrival]) -> dict[int, list[float]]:
    """GPUs of a job to the seconds that such jobs waited, in order of arrival."""
    begin = world.now
    ends: list[tuple[float, int]] = []
    coming = list(reversed(arrivals))
    jobs: dict[int, tuple[float, int, float]] = {}
    while coming or ends or world.pending():
        soonest = min(ends[0][0] if ends else float("inf"), begin + coming[-1][0] if coming else float("inf"))
        world.now = soonest
        while ends and ends[0][0] <= world.now:
            world.finish(heappop(ends)[1])
        while coming and begin + coming[-1][0] <= world.now:
            _, size, run = coming.pop()
            slots = max(1, size // 8)
            gpu = f"num={min(size, 8)}:j_exclusive=yes"
            wide = "span[ptile=1]" if slots > 1 else ""
            key = world.submit(slots=slots, gpu=gpu, resreq=wide, limits=Limits(run=60 * (int(run / 30) + 1)))
            jobs[key] = (world.now, size, run)
        for key in world.step():
            heappush(ends, (world.now + jobs[key][2], key))
            jobs[key] = (world.now - jobs[key][0], jobs[key][1], jobs[key][2])
    found: dict[int, list[float]] = {}
    for waited, size, _ in jobs.values():
        found.setdefault(size, []).append(waited)
    return found


QUEUE = QueueConfig(name="normal", slot_reserve=100_000, backfill=True)
NO_RESERVATIONS = QueueConfig(name="normal")
SEED = 102


@pytest.mark.parametrize(("queue", "jobs"), [(QUEUE, 500), (NO_RESERVATIONS, 1000)])
def test_jobs_of_whole_hosts_wait_a_fifth_less(queue: QueueConfig, jobs: int):
    """One trace of many: docs/placement.md has the figures of more, among them smaller ones."""
    arrivals = trace(SEED, jobs)
    first, packed = (waits(site(params, queue), arrivals) for params in (FIRST_FIT, PACKED))
    assert mean(packed[8]) <= 0.8 * mean(first[8])
    assert mean(packed[16]) <= mean(first[16])
    assert mean(chain(*packed.values())) <= mean(chain(*first.values()))
