"""Which GPUs of a host a job may get, and which it gets.

Rule: an exclusive job takes a GPU that nobody is on and keeps all others off it; shared jobs fill the least used first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lavad.core.gpureq import GpuReq, model_of
from lavad.core.host import Gpu
from lavad.core.use import EXCLUSIVE_GPU


def is_exclusive(req: GpuReq) -> bool:
    """Whether a job with this requirement shares its GPUs with no other."""
    return req.mode == "exclusive_process" or bool(req.j_exclusive)


def matches(gpu: Gpu, req: GpuReq) -> bool:
    """Whether model and memory are what the job asks for (LSF: a model's name may be a part of the GPU's)."""
    model, memory = model_of(req)
    if model and model.lower() not in gpu.model.lower().replace(" ", ""):
        return False
    return gpu.memory >= max(memory or 0.0, req.gmem_mb or 0.0)


def usable(gpus: Sequence[Gpu], taken: Mapping[str, int], req: GpuReq) -> list[Gpu]:
    """The GPUs that a job may get now, best first: least used, then by index."""
    top = 1 if is_exclusive(req) else EXCLUSIVE_GPU
    found = [gpu for gpu in gpus if taken.get(gpu.uuid, 0) < top and matches(gpu, req)]
    return sorted(found, key=lambda gpu: (taken.get(gpu.uuid, 0), gpu.index))


def per_task(req: GpuReq) -> bool:
    """Whether ``num`` counts for each task; else for each host."""
    return req.per == "task"


def wanted(req: GpuReq, slots: int) -> int:
    """How many GPUs a part of ``slots`` tasks gets."""
    return (req.num or 1) * (slots if per_task(req) else 1)


def pick(gpus: Sequence[Gpu], taken: Mapping[str, int], req: GpuReq, slots: int) -> tuple[str, ...]:
    """UUIDs for a part of ``slots`` tasks, in order of index; the caller has made sure that there are enough."""
    chosen = usable(gpus, taken, req)[: wanted(req, slots)]
    return tuple(gpu.uuid for gpu in sorted(chosen, key=lambda gpu: gpu.index))
