"""What of a host's GPUs is taken: by how many jobs, and how much of the memory.

Rule: the usage index and a ledger count by the same book. A device is a GPU or a MIG instance; either has a UUID.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from lavad.core.job.spec import Spec
from lavad.core.lang.gpureq import GpuReq

EXCLUSIVE_GPU = 1_000_000


def gpu_weight(spec: Spec) -> int:
    """The weight of a job of this spec on a GPU: exclusive, or one of several that share it."""
    return EXCLUSIVE_GPU if spec.gpu is not None and is_exclusive(spec.gpu) else 1


def is_exclusive(req: GpuReq) -> bool:
    """Whether a job with this requirement shares its GPUs with no other."""
    return req.mode == "exclusive_process" or bool(req.j_exclusive)


def gpu_memory(spec: Spec) -> float:
    """MB that a job of this spec reserves of each of its GPUs (gmem)."""
    return (spec.gpu.gmem_mb or 0.0) if spec.gpu is not None else 0.0


def gpu_amounts(spec: Spec, count: int) -> tuple[tuple[str, float], ...]:
    """What limits of lsb.resources count of ``count`` devices that a job of this spec has: LSF's names, gmem in MB.

    A device counts for each job on it, as in LSF.
    """
    if spec.gpu is None or not count:
        return ()
    mode = "ngpus_excl_p" if is_exclusive(spec.gpu) else "ngpus_shared"
    memory = count * gpu_memory(spec)
    return ("ngpus", count), ("ngpus_physical", count), (mode, count), ("gmem", memory)


class GpuBook:
    """Of one host. ``closed``: devices that no new job may get, the instances of a closed GPU too."""

    __slots__ = ("closed", "jobs", "mem")

    def __init__(
        self, jobs: dict[str, int] | None = None, mem: dict[str, float] | None = None, closed: Collection[str] = ()
    ) -> None:
        self.jobs: dict[str, int] = {} if jobs is None else jobs
        """UUID to the number of jobs on it; an exclusive job counts 1,000,000."""
        self.mem: dict[str, float] = {} if mem is None else mem
        """UUID to the MB that jobs have reserved."""
        self.closed = closed

    def count(self, gpus: Iterable[str], spec: Spec, sign: int) -> None:
        """Add (``sign`` 1) or subtract (-1) a job on these."""
        weight, memory = sign * gpu_weight(spec), gpu_memory(spec)
        for gpu in gpus:
            count = self.jobs.get(gpu, 0) + weight
            if count:
                self.jobs[gpu] = count
            else:
                self.jobs.pop(gpu, None)
            if memory:
                left = round(self.mem.get(gpu, 0.0) + sign * memory, 6)
                if left:
                    self.mem[gpu] = left
                else:
                    self.mem.pop(gpu, None)

    def copy(self, closed: Collection[str] = ()) -> GpuBook:
        """One of its own, with these closed."""
        return GpuBook(self.jobs.copy(), self.mem.copy(), closed)
