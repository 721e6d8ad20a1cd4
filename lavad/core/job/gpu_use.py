"""What a part of an attempt uses, or used, of a GPU, and sums of it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class GpuUse(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One GPU, as its agent measured it. Use in percent, memory in MB, times in seconds, energy in J; what is not known is -1."""

    uuid: str
    index: int = -1
    util: int = -1
    """Of its processors, now."""
    mem: int = 0
    max_mem: int = 0
    held: float = 0.0
    known: float = 0.0
    """Of the time that it was held: that of which the use is known."""
    used: float = 0.0
    """The sum of time x use: 10 s at 50 % are 5."""
    idle: float = 0.0
    """Below 5 % of use."""
    max_util: int = -1
    min_util: int = -1
    mem_used: float = 0.0
    """As ``used``, of the bandwidth of its memory; with its limits."""
    max_mem_util: int = -1
    min_mem_util: int = -1
    energy: float = -1.0
    pcie_sent: float = 0.0
    """MB over PCIe."""
    pcie_received: float = 0.0

    @property
    def average(self) -> float:
        """Percent of use over the time of which it is known; -1 where it is not known."""
        return 100 * self.used / self.known if self.known else -1.0

    @property
    def idle_share(self) -> float:
        """The part of that time in which it was idle, 0 to 1."""
        return self.idle / self.known if self.known else 0.0


class GpuSums(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """GPU seconds of several GPUs: held, used (time x use) and idle; energy in J."""

    held: float = 0.0
    used: float = 0.0
    idle: float = 0.0
    energy: float = 0.0

    def plus(self, other: GpuSums) -> GpuSums:
        """Both together."""
        return GpuSums(self.held + other.held, self.used + other.used, self.idle + other.idle, self.energy + other.energy)


def total(sums: Iterable[GpuSums | None]) -> GpuSums:
    """All of them together."""
    found = GpuSums()
    for one in sums:
        found = found if one is None else found.plus(one)
    return found


def measured(gpus: Iterable[GpuUse]) -> GpuSums:
    """The sums of what was measured; how long they were held is for the master to say."""
    listed = tuple(gpus)
    used, idle = sum(gpu.used for gpu in listed), sum(gpu.idle for gpu in listed)
    return GpuSums(0.0, used, idle, sum(gpu.energy for gpu in listed if gpu.energy > 0))
