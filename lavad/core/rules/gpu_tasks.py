"""The GPUs of tasks that need different numbers of them (roles): which go to which task on one host.

Rule: a task's GPUs are joined as well as may be; with glink=yes each task's are within one NVLink island, and gtile is about the
GPUs of all tasks on the host, as with num=N/task.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from msgspec.structs import replace

from lavad.core.cluster.gpu_book import GpuBook
from lavad.core.lang.gpureq import GpuReq
from lavad.core.rules.gpus import NO_STATES, States, by_index, find_sets, in_islands, tiled, usable_at
from lavad.core.site.gpu_links import choose
from lavad.core.site.host import Gpu


def give_tasks(
    gpus: Sequence[Gpu], book: GpuBook, req: GpuReq, sizes: Sequence[int], states: States = NO_STATES
) -> tuple[str, ...] | None:
    """UUIDs for tasks that get so many each, in their order; None: there are not enough that are free, or joined."""
    total = sum(sizes)
    whole = replace(req, num=max(1, total), per="host")
    free = usable_at(gpus, book, whole, states)
    if req.glink:
        islands = in_islands(gpus, tiled(gpus, free, whole, total))
        islands.sort(key=lambda found: (len(found), free.index(found[0])))
        sets = _by_island(islands, sizes)
        return None if sets is None else tuple(gpus[at].uuid for one in sets for at in by_index(gpus, one))
    if len(tiled(gpus, free, whole, total)) < total:
        return None
    chosen = by_index(gpus, find_sets(gpus, book, whole, 1, states)[0]) if total else []
    order: list[int] = []
    for size in sizes:
        found = choose(gpus, chosen, size, strict=False)
        order += by_index(gpus, found)
        chosen = [at for at in chosen if at not in found]
    return tuple(gpus[at].uuid for at in order)


def _by_island(islands: list[list[int]], sizes: Sequence[int]) -> list[list[int]] | None:
    """Sets within islands, in the order of the tasks."""
    largest = sorted(range(len(sizes)), key=lambda task: -sizes[task])
    places = _places(tuple(map(len, islands)), tuple(sizes[task] for task in largest))
    if places is None:
        return None
    left = [list(island) for island in islands]
    sets: list[list[int]] = [[] for _ in sizes]
    for task, place in zip(largest, places, strict=True):
        if place >= 0:
            sets[task], left[place] = left[place][: sizes[task]], left[place][sizes[task] :]
    return sets


@lru_cache(maxsize=65_536)
def _places(rooms: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The island of each task (-1: it has no GPUs), so that all fit, every way tried, the island with the least room first."""
    if not any(sizes):
        return (-1,) * len(sizes)
    if sum(sizes) > sum(rooms):
        return None
    tried = set()
    for place in sorted(range(len(rooms)), key=rooms.__getitem__):
        room = rooms[place] - sizes[0]
        if room < 0 or room in tried:
            continue
        tried.add(room)
        rest = _places((*rooms[:place], room, *rooms[place + 1 :]), sizes[1:])
        if rest is not None:
            return (place, *rest)
    return None
