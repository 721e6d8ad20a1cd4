"""What a job with GPUs would break on a host of what other jobs need whole: its GPUs together, and its islands of GPUs.

Rule: of two hosts the one with the smaller ``Cost`` is the better. A GPU is idle that no job is on and that is not closed; a
host is whole while all its GPUs are idle, an island likewise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from lavad.core.cluster.gpu_book import GpuBook
from lavad.core.lang.gpureq import GpuReq
from lavad.core.rules.gpus import find_sets
from lavad.core.site.gpu_links import Islands, islands_of
from lavad.core.site.host import Gpu

Cost = tuple[int, int, int, int, int, int]
"""(jobs on the most used GPU of the job, GPUs of a whole host that is broken, islands over which its GPUs are split needlessly,
GPUs of whole islands that are broken, idle GPUs left in its islands, idle GPUs left on the host)."""
_Sets = tuple[tuple[int, ...], ...]


def cost_of(gpus: Sequence[Gpu], book: GpuBook, req: GpuReq, slots: int) -> Cost:
    """The cost of a part of ``slots`` tasks on a host that has room for it."""
    sets = tuple(map(tuple, find_sets(gpus, book, req, slots)))
    jobs = book.jobs
    devices = tuple(at for at, gpu in enumerate(gpus) if not gpu.split)
    idle = tuple(at for at in devices if gpus[at].uuid not in book.closed and not jobs.get(gpus[at].uuid))
    used = max((jobs.get(gpus[at].uuid, 0) for one in sets for at in one), default=0)
    return (-used if req.gpack else used, *_broken(islands_of(gpus), devices, idle, sets))


@lru_cache(maxsize=65_536)
def _broken(islands: Islands, devices: tuple[int, ...], idle: tuple[int, ...], sets: _Sets) -> tuple[int, int, int, int, int]:
    chosen, free = {at for one in sets for at in one}, set(idle)
    rest = len(free - chosen)
    split = sum(sum(not island.isdisjoint(one) for island in islands) - _fewest(islands, len(one)) for one in sets)
    whole = len(devices) if free.issuperset(devices) and rest else 0
    touched = [island for island in islands if not island.isdisjoint(chosen)]
    broken = sum(len(island) for island in touched if len(island) > 1 and island <= free and not island <= chosen)
    return whole, split, broken, sum(len((island & free) - chosen) for island in touched), rest


def _fewest(islands: Islands, count: int) -> int:
    """How few islands hold so many GPUs."""
    found = 0
    for size in sorted(map(len, islands), reverse=True):
        if count <= 0:
            break
        count -= size
        found += 1
    return found
