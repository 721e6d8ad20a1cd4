"""What is told of GPUs and their processes."""

from __future__ import annotations

from typing import NamedTuple

Handle = object
"""What NVML calls a device by: only ever given back to it."""


class GpuFact(NamedTuple):
    """What a GPU is, or an instance of one that is split (MIG); an instance has index, minor and model of its GPU."""

    uuid: str
    index: int  # type: ignore[assignment]  # a tuple has a method of this name
    model: str
    memory_mb: int
    """0: not known."""
    minor: int
    """The N of /dev/nvidiaN, -1: not known."""
    numa: int
    """The NUMA node that it is near to, -1: not known."""
    bus: str = ""
    """PCI address."""
    split: bool = False
    """In MIG mode: it has instances, and is not used itself."""
    parent: str = ""
    profile: str = ""
    slices: int = 0
    compute_slices: int = 0


class GpuProcess(NamedTuple):
    """A process on a GPU or an instance; what the driver does not tell is 0."""

    uuid: str
    pid: int
    mem_mb: int
    util_percent: int
    mem_util_percent: int = 0


Processes = list[GpuProcess]
