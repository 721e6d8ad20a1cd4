"""Which GPUs of a host a job may get, and which it gets.

Rule: an exclusive job takes a GPU that nobody is on and keeps all others off it; shared jobs fill the least used first
(gpack=yes: the most used). Of those that are as good, a job gets the ones that are joined best, and glink=yes no others.
"""

from __future__ import annotations

from collections.abc import Sequence

from lavad.core.cluster.gpu_book import EXCLUSIVE_GPU, GpuBook, is_exclusive
from lavad.core.lang.gpureq import GpuReq, model_of
from lavad.core.site.gpu_links import choose, nvlinked
from lavad.core.site.host import Gpu


def matches(gpu: Gpu, req: GpuReq) -> bool:
    """Whether model and memory are what the job asks for (LSF: a model's name may be a part of the GPU's)."""
    model, memory = model_of(req)
    if model and model.lower() not in gpu.model.lower().replace(" ", ""):
        return False
    return gpu.memory >= max(memory or 0.0, req.gmem_mb or 0.0)


def is_open(gpu: Gpu, book: GpuBook, req: GpuReq) -> bool:
    """Whether the jobs on a GPU, what they have reserved of its memory, and its health leave it to one more job."""
    top = 1 if is_exclusive(req) else EXCLUSIVE_GPU
    if gpu.uuid in book.closed or book.jobs.get(gpu.uuid, 0) >= top:
        return False
    return not req.gmem_mb or book.mem.get(gpu.uuid, 0.0) + req.gmem_mb <= gpu.memory


def usable(gpus: Sequence[Gpu], book: GpuBook, req: GpuReq) -> list[Gpu]:
    """The GPUs that a job may get now, best first: least used, then by index."""
    return [gpus[at] for at in _usable(gpus, book, req)]


def _usable(gpus: Sequence[Gpu], book: GpuBook, req: GpuReq) -> list[int]:
    sign = -1 if req.gpack else 1
    found = [at for at, gpu in enumerate(gpus) if is_open(gpu, book, req) and matches(gpu, req)]
    return sorted(found, key=lambda at: (sign * book.jobs.get(gpus[at].uuid, 0), gpus[at].index))


def per_task(req: GpuReq) -> bool:
    """Whether ``num`` counts for each task; else for each host."""
    return req.per == "task"


def wanted(req: GpuReq, slots: int) -> int:
    """How many GPUs a part of ``slots`` tasks gets."""
    return (req.num or 1) * (slots if per_task(req) else 1)


def room(gpus: Sequence[Gpu], book: GpuBook, req: GpuReq) -> int:
    """How many GPUs a job may get here now; with glink=yes those that can be given out in joined sets of ``num``."""
    free = _tiled(gpus, _usable(gpus, book, req), req)
    if not req.glink:
        return len(free)
    num = req.num or 1
    islands = [sum(1 for at in free if at in island) for island in nvlinked(gpus)]
    return sum(size // num * num for size in islands) if per_task(req) else max(islands, default=0)


def _tiled(gpus: Sequence[Gpu], free: list[int], req: GpuReq) -> list[int]:
    """gtile=n: at most n of each NUMA node; gtile=!: equally many of each."""
    if req.gtile is None or per_task(req):
        return free
    nodes = {gpu.numa for gpu in gpus}
    most = req.gtile or -(-(req.num or 1) // max(1, len(nodes)))
    left = dict.fromkeys(nodes, most)
    kept = []
    for at in free:
        if left[gpus[at].numa]:
            left[gpus[at].numa] -= 1
            kept.append(at)
    return kept


def pick(gpus: Sequence[Gpu], book: GpuBook, req: GpuReq, slots: int) -> tuple[str, ...]:
    """UUIDs for a part of ``slots`` tasks, by task and then by index; there must be enough."""
    free = _tiled(gpus, _usable(gpus, book, req), req)
    sets: list[list[int]] = []
    for _ in range(slots if per_task(req) else 1):
        best = _level(gpus, book, free, req.num or 1) if not req.glink else free
        found = choose(gpus, best, req.num or 1, bool(req.glink))
        sets.append(_by_index(gpus, found))
        free = [at for at in free if at not in found]
    sets.sort(key=lambda one: [gpus[at].index for at in one])
    return tuple(gpus[at].uuid for one in sets for at in one)


def shared_out(gpus: Sequence[Gpu], uuids: Sequence[str], sizes: Sequence[int]) -> tuple[str, ...]:
    """The GPUs of a part in the order of its tasks, which get so many each: those of one task have the nearest links."""
    left = _by_index(gpus, [at for at, gpu in enumerate(gpus) if gpu.uuid in uuids])
    order: list[int] = []
    for size in sizes:
        found = choose(gpus, left, size, strict=False)
        order += _by_index(gpus, found)
        left = [at for at in left if at not in found]
    return tuple(gpus[at].uuid for at in (*order, *left))


def _by_index(gpus: Sequence[Gpu], found: Sequence[int]) -> list[int]:
    return sorted(found, key=lambda at: gpus[at].index)


def _level(gpus: Sequence[Gpu], book: GpuBook, free: list[int], count: int) -> list[int]:
    """The free GPUs that are used no more than the last one that is needed: among these, links decide."""
    if len(free) <= count:
        return free
    taken = book.jobs
    last = taken.get(gpus[free[count - 1]].uuid, 0)
    first = taken.get(gpus[free[0]].uuid, 0)
    if first != last:
        return free[:count]
    return [at for at in free if taken.get(gpus[at].uuid, 0) == last]


def is_joined(gpus: Sequence[Gpu], uuids: Sequence[str], req: GpuReq) -> bool:
    """glink=yes: whether these are whole sets of ``num`` within NVLink islands."""
    if not req.glink:
        return True
    num = req.num or 1
    mine = [sum(1 for at in island if gpus[at].uuid in uuids) for island in nvlinked(gpus)]
    return sum(count // num * num for count in mine) == len(uuids) and (per_task(req) or len(uuids) in mine)
