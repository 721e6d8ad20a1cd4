"""Which GPUs of a host a job may get, and which it gets.

Rule: an exclusive job takes a GPU that nobody is on and keeps all others off it; shared jobs fill the least used first
(gpack=yes: the most used), and of these, without gmem, the GPU with the least memory in use as measured. Of those that are as
good, a job gets the ones that are joined best, and glink=yes no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from math import inf

from msgspec.structs import replace

from lavad.core.cluster.gpu_book import EXCLUSIVE_GPU, GpuBook, is_exclusive
from lavad.core.lang.gpureq import GpuReq, mig_sizes, model_of
from lavad.core.plan.volatile import GpuState
from lavad.core.site.gpu_links import choose, nvlinked
from lavad.core.site.host import Gpu
from lavad.core.site.pend_reason import PendReason

States = Mapping[str, GpuState]
NO_STATES: States = {}
_JOINTS = str.maketrans("-/", "__")
_SOLD = 0.9
"""Of the memory by which a GPU is sold, the least that its driver shows: of 80 GB, 79.6 GiB, or 74.5 where GB are decimal."""
_MOST = 1.1
"""The most that it shows: a GPU of more is another model."""
_RELAXED = (
    ("glink", PendReason.NEVER_GPU_LINKS),
    ("gtile", PendReason.NEVER_GPU_TILES),
    ("gmem_mb", PendReason.NEVER_GPU_MEM),
    ("gmodel", PendReason.NEVER_GPU_MODEL),
)


def matches(gpu: Gpu, req: GpuReq) -> bool:
    """Whether a device is what the job asks for: an instance of its size (mig) or a whole GPU, its model, its memory.

    LSF: a model's name may be a part of the GPU's, which is written without blanks and with ``_`` for ``-`` and ``/``.
    """
    return _is_asked(gpu, *_asked(req))


@lru_cache(maxsize=4096)
def _asked(req: GpuReq) -> tuple[tuple[int, int] | None, str, float, float]:
    """Of a device: (slices of a MIG instance, a part of its model's name, the least MB of memory, the most of a whole GPU)."""
    model, memory = model_of(req)
    least = max((memory or 0.0) * _SOLD, req.gmem_mb or 0.0)
    return mig_sizes(req), _plain(model), least, memory * _MOST if memory else inf


def _is_asked(gpu: Gpu, sizes: tuple[int, int] | None, model: str, least: float, most: float) -> bool:
    if gpu.split or ((gpu.slices, gpu.compute_slices) != sizes if sizes is not None else gpu.parent):
        return False
    if gpu.memory < least or (gpu.memory > most and not gpu.parent):
        return False
    return not model or model in _plain(gpu.model)


@lru_cache(maxsize=1024)
def _plain(model: str) -> str:
    return model.lower().replace(" ", "").translate(_JOINTS)


def is_open(gpu: Gpu, book: GpuBook, req: GpuReq) -> bool:
    """Whether the jobs on a GPU, what they have reserved of its memory, and its health leave it to one more job."""
    top = 1 if is_exclusive(req) else EXCLUSIVE_GPU
    if gpu.uuid in book.closed or book.jobs.get(gpu.uuid, 0) >= top:
        return False
    return not req.gmem_mb or book.mem.get(gpu.uuid, 0.0) + req.gmem_mb <= gpu.memory


def usable(gpus: Sequence[Gpu], book: GpuBook, req: GpuReq) -> list[Gpu]:
    """The GPUs that a job may get now, best first: least used, then by index."""
    return [gpus[at] for at in usable_at(gpus, book, req)]


def usable_at(gpus: Sequence[Gpu], book: GpuBook, req: GpuReq, states: States = NO_STATES) -> list[int]:
    sign = -1 if req.gpack else 1
    # what a job reserves with gmem is counted; else GPUs differ in what is measured
    measured = {} if req.gpack or req.gmem_mb else {uuid: state.gb_used for uuid, state in states.items()}
    asked = _asked(req)
    found = [at for at, gpu in enumerate(gpus) if is_open(gpu, book, req) and _is_asked(gpu, *asked)]
    return sorted(found, key=lambda at: (sign * book.jobs.get(gpus[at].uuid, 0), measured.get(gpus[at].uuid, 0), gpus[at].index))


def per_task(req: GpuReq) -> bool:
    """Whether ``num`` counts for each task; else for each host."""
    return req.per == "task"


def wanted(req: GpuReq, slots: int) -> int:
    """How many GPUs a part of ``slots`` tasks gets."""
    return (req.num or 1) * (slots if per_task(req) else 1)


def room(gpus: Sequence[Gpu], book: GpuBook, req: GpuReq) -> int:
    """How many GPUs a job may get here now; with glink=yes those that can be given out in joined sets of ``num``."""
    free, num = usable_at(gpus, book, req), req.num or 1
    if not per_task(req):
        return _room(gpus, free, req, num)
    if req.gtile != 0:
        return _room(gpus, free, req, len(free))
    # gtile=!: how many of each node depends on how many tasks there are
    count = 0
    while count + num <= len(free) and _room(gpus, free, req, count + num) >= count + num:
        count += num
    return count


def _room(gpus: Sequence[Gpu], free: list[int], req: GpuReq, count: int) -> int:
    num = req.num or 1
    if not req.glink:
        return len(tiled(gpus, free, req, count))
    if per_task(req):
        return sum(len(found) // num * num for found in in_islands(gpus, tiled(gpus, free, req, count)))
    return max((len(tiled(gpus, found, req, count)) for found in in_islands(gpus, free)), default=0)


def in_islands(gpus: Sequence[Gpu], free: list[int]) -> list[list[int]]:
    """The free GPUs by NVLink island."""
    return [found for island in nvlinked(gpus) if (found := [at for at in free if at in island])]


def tiled(gpus: Sequence[Gpu], free: list[int], req: GpuReq, count: int) -> list[int]:
    """Of the free GPUs those that a part of ``count`` GPUs may have: gtile=n: n of each NUMA node; gtile=!: equally many.

    LSF: gtile is per host, so with num=N/task it is about the GPUs of all its tasks there.
    """
    if req.gtile is None:
        return free
    nodes = {gpu.numa for gpu in gpus}
    left = dict.fromkeys(nodes, req.gtile or -(-count // max(1, len(nodes))))
    if not req.glink:
        return _within(gpus, free, left)
    kept = []
    size = (req.num or 1) if per_task(req) else 1
    for island in sorted(in_islands(gpus, free), key=lambda found: -len(found)):
        found = _within(gpus, island, left)
        # what makes no whole set leaves its share of the node to other islands
        for at in found[len(found) // size * size :]:
            left[gpus[at].numa] += 1
        kept += found[: len(found) // size * size]
    return [at for at in free if at in kept]


def _within(gpus: Sequence[Gpu], free: list[int], left: dict[int, int]) -> list[int]:
    """The first of them, no more of each NUMA node than are ``left``, which is brought up to date."""
    kept = []
    for at in free:
        if left[gpus[at].numa]:
            left[gpus[at].numa] -= 1
            kept.append(at)
    return kept


def pick(gpus: Sequence[Gpu], book: GpuBook, req: GpuReq, slots: int, states: States = NO_STATES) -> tuple[str, ...]:
    """UUIDs for a part of ``slots`` tasks, by task and then by index; there must be enough. ``states``: how they are now."""
    return tuple(gpus[at].uuid for one in find_sets(gpus, book, req, slots, states) for at in one)


def find_sets(gpus: Sequence[Gpu], book: GpuBook, req: GpuReq, slots: int, states: States = NO_STATES) -> list[list[int]]:
    """The same as positions: with num=N/task a set for each task, else one set."""
    free, num = usable_at(gpus, book, req, states), req.num or 1
    if per_task(req) or not req.glink:
        free = tiled(gpus, free, req, wanted(req, slots))
    else:
        # one set: each island by itself
        kept = {at for found in in_islands(gpus, free) for at in tiled(gpus, found, req, num)}
        free = [at for at in free if at in kept]
    sets: list[list[int]] = []
    for _ in range(slots if per_task(req) else 1):
        best = _level(gpus, book, free, num) if not req.glink else free
        found = choose(gpus, best, num, bool(req.glink))
        sets.append(by_index(gpus, found))
        free = [at for at in free if at not in found]
    return sorted(sets, key=lambda one: [gpus[at].index for at in one])


def by_index(gpus: Sequence[Gpu], found: Sequence[int]) -> list[int]:
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


def is_joined(gpus: Sequence[Gpu], uuids: Sequence[str], req: GpuReq, sizes: Sequence[int] = ()) -> bool:
    """glink=yes: whether these are whole sets of ``num`` within NVLink islands; ``sizes``: so many for each task, in order."""
    if not req.glink:
        return True
    if sizes:
        at = {gpu.uuid: place for place, gpu in enumerate(gpus)}
        sets = [{at[uuid] for uuid in uuids[end - size : end]} for end, size in zip(accumulate(sizes), sizes, strict=True)]
        return all(any(one <= island for island in nvlinked(gpus)) for one in sets)
    num = req.num or 1
    mine = [sum(1 for at in island if gpus[at].uuid in uuids) for island in nvlinked(gpus)]
    return sum(count // num * num for count in mine) == len(uuids) and (per_task(req) or len(uuids) in mine)


def why_never(hosts: Iterable[Sequence[Gpu]], req: GpuReq) -> int:
    """Why none of these hosts could give a job its GPUs if nobody else had any: what its requirement names; 0: one could.

    Its options are left out one after the other: the one without which a host could do is the reason.
    """
    every, num, nobody = list(hosts), req.num or 1, GpuBook()

    def fits(one: GpuReq) -> bool:
        return any(room(gpus, nobody, one) >= num for gpus in every)

    if fits(req):
        return 0
    if req.gmodel is not None:
        named = replace(req, gmodel=model_of(req)[0])
        if named != req and fits(named):
            return PendReason.NEVER_GPU_MEM
    for option, reason in _RELAXED:
        if getattr(req, option) is not None:
            req = replace(req, **{option: None})
            if fits(req):
                return reason
    if req.mig is not None:
        return PendReason.NEVER_GPU_MIG if any(every) else PendReason.NEVER_GPUS
    split = any(sum(1 for gpu in gpus if gpu.split or not gpu.parent) >= num for gpus in every)
    return PendReason.NEVER_GPU_WHOLE if split else PendReason.NEVER_GPUS
