"""What each part uses of each of its GPUs, summed up from samples.

Rule: between two samples a GPU is taken to have been as the later one finds it. A GPU that one part holds alone is its own,
whoever runs on it: the device's figures are the part's. Of a GPU that several parts hold, use and memory are those of each
part's processes; energy and traffic, which no driver tells by process, are divided by use, or evenly while none is used.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from proto import agent_pb2 as pb
from proto.daemon.saved import read_saved
from proto.gpu_waste import IDLE
from proto.whole_file import replace_file

SAVE_EVERY = 10.0
"""Seconds between writes of the sums."""
SET_BACK = 60.0
"""Seconds by which a reading is older than the last one only where the clock was set back: what follows is counted from there."""
STALE = 86_400.0
"""Seconds after which the notes of a part that nobody asks for are dropped."""


class GpuReading(NamedTuple):
    """A GPU now; what the driver does not tell is -1."""

    uuid: str
    index: int  # type: ignore[assignment]  # a tuple has a method of this name
    util: int = -1
    """Percent of the time that its processors were busy."""
    mem_util: int = -1
    mem_mb: int = -1
    energy: float = -1.0
    """J, since the driver was loaded."""
    power: float = -1.0
    """W."""
    pcie_sent: float = -1.0
    pcie_received: float = -1.0
    """MB/s."""
    at: float = 0.0
    """When it was read, in seconds since the epoch; 0: just now."""


class Held(NamedTuple):
    """The GPUs that a part holds, and since when, in seconds since the epoch."""

    gpus: tuple[str, ...]
    since: float


class GpuShare(NamedTuple):
    """What the processes of one part use of a GPU: MB, and percent of its processors and of its memory's time."""

    mem: int
    util: int
    mem_util: int


class GpuLook(NamedTuple):
    """One look at the GPUs of the host."""

    readings: Mapping[str, GpuReading]
    """By uuid; a GPU that does not answer is left out."""
    shares: Mapping[str, Mapping[str, GpuShare]]
    """UUID to the uid of a part."""


NO_LOOK = GpuLook({}, {})


class GpuSum(msgspec.Struct, omit_defaults=True):
    """The sums of one part and GPU; times in seconds, memory in MB, energy in J, traffic in MB."""

    uuid: str
    since: float
    at: float
    """Until when it is summed up: the time of the last reading."""
    seen: float = 0.0
    """When the part was sampled last."""
    index: int = -1
    util: int = -1
    mem_util: int = -1
    mem: int = 0
    max_mem: int = 0
    known: float = 0.0
    """Of the time held: that of which the use is known."""
    used: float = 0.0
    idle: float = 0.0
    max_util: int = -1
    min_util: int = -1
    mem_used: float = 0.0
    max_mem_util: int = -1
    min_mem_util: int = -1
    energy: float = -1.0
    counter: float = -1.0
    """What the GPU's own energy counter said last."""
    power: float = -1.0
    """This part's share of it, in W."""
    pcie_sent: float = 0.0
    pcie_received: float = 0.0

    def enter(self, now: float, reading: GpuReading | None, own: GpuShare | None, share: float) -> None:
        """Take a sample. ``own``: that of its processes where it shares the GPU; ``share``: of energy and traffic."""
        at = now if reading is None else reading.at or now
        if (back := self.at - at) > SET_BACK:
            self.since, self.seen, self.at = self.since - back, self.seen - back, at
        self.seen = max(self.seen, now)
        passed, self.at = max(0.0, at - self.at), max(self.at, at)
        if reading is None:
            self.util, self.mem_util, self.counter, self.power = -1, -1, -1.0, -1.0
            return
        if not passed:  # read before the last sample, or before the part began
            return
        self.index = reading.index
        own = own or GpuShare(max(0, reading.mem_mb), reading.util, reading.mem_util)
        self.mem, self.max_mem = own.mem, max(self.max_mem, own.mem)
        self._use(own.util, own.mem_util, passed)
        self._spend(reading, share, passed)

    def _use(self, util: int, mem_util: int, passed: float) -> None:
        self.util, self.mem_util = util, mem_util = min(util, 100), min(mem_util, 100)
        if util >= 0:
            self.known += passed
            self.used += passed * util / 100
            self.idle += passed if util < IDLE else 0.0
            self.max_util = max(self.max_util, util)
            self.min_util = util if self.min_util < 0 else min(self.min_util, util)
        if mem_util >= 0:
            self.mem_used += passed * mem_util / 100
            self.max_mem_util = max(self.max_mem_util, mem_util)
            self.min_mem_util = mem_util if self.min_mem_util < 0 else min(self.min_mem_util, mem_util)

    def _spend(self, reading: GpuReading, share: float, passed: float) -> None:
        spent = reading.power * passed if reading.power >= 0 else -1.0
        if 0 <= self.counter < reading.energy:  # a driver that was loaded again counts from 0
            spent = reading.energy - self.counter
        self.counter, self.power = reading.energy, reading.power * share if reading.power >= 0 else -1.0
        if spent >= 0:
            self.energy = max(0.0, self.energy) + spent * share
        self.pcie_sent += max(0.0, reading.pcie_sent) * passed * share
        self.pcie_received += max(0.0, reading.pcie_received) * passed * share

    def close(self, at: float) -> None:
        """The part ended at that time: until then all was as the last sample found it."""
        passed, self.at = max(0.0, at - self.at), max(self.at, at)
        self.seen = self.at
        self._use(self.util, self.mem_util, passed)
        if self.power >= 0:
            self.energy = max(0.0, self.energy) + self.power * passed
        self.util, self.mem_util, self.mem = -1, -1, 0

    def message(self) -> pb.GpuUse:
        return pb.GpuUse(
            uuid=self.uuid,
            index=self.index,
            util=self.util,
            mem=self.mem,
            max_mem=self.max_mem,
            held=max(0.0, self.seen - self.since),
            known=self.known,
            used=self.used,
            idle=self.idle,
            max_util=self.max_util,
            min_util=self.min_util,
            mem_used=self.mem_used,
            max_mem_util=self.max_mem_util,
            min_mem_util=self.min_mem_util,
            energy=self.energy,
            pcie_sent=self.pcie_sent,
            pcie_received=self.pcie_received,
        )


GpuSums = dict[str, dict[str, GpuSum]]
"""The uid of a part to the UUID of a GPU to its sums."""


class GpuMeter:
    """The sums of all parts of a host; safe to use from several threads.

    ``path``: where they are kept for the agent after this one, whose sums go on; "": nowhere.
    """

    def __init__(self, path: str = "") -> None:
        self._path = path
        self._lock = threading.Lock()
        self._saved = 0.0
        self.sums = read_saved(path, GpuSums) or {}

    def enter(self, now: float, held: Mapping[str, Held], look: GpuLook) -> dict[str, list[pb.GpuUse]]:
        """Take a sample of all parts that hold GPUs; what each has used so far."""
        with self._lock:
            found = self._enter(now, held, look)
            if self._path and (found or self.sums) and now >= self._saved + SAVE_EVERY:
                self._saved = now
                self._save()
        return found

    def close(self, uid: str, held: Held, at: float) -> list[pb.GpuUse]:
        """A part has ended at that time: what it used in all; its sums are dropped."""
        with self._lock:
            sums = self._sums_of(uid, held)
            del self.sums[uid]
        for one_gpu in sums.values():
            one_gpu.close(at)
        return [one_gpu.message() for one_gpu in sums.values()]

    def drop(self, uid: str) -> None:
        """Nothing is kept of a part."""
        with self._lock:
            self.sums.pop(uid, None)

    def _save(self) -> None:
        # a full disk takes a restarted agent its sums; it must not take jobs anything
        with contextlib.suppress(OSError):
            replace_file(self._path, msgspec.json.encode(self.sums))

    def _enter(self, now: float, held: Mapping[str, Held], look: GpuLook) -> dict[str, list[pb.GpuUse]]:
        for uid in [uid for uid, sums in self.sums.items() if uid not in held and _is_stale(sums.values(), now)]:
            del self.sums[uid]
        holders = Counter(uuid for one in held.values() for uuid in one.gpus)
        users = {uuid: sum(share.util for share in look.shares.get(uuid, {}).values()) for uuid in holders}
        found: dict[str, list[pb.GpuUse]] = {}
        for uid, one in held.items():
            sums = self._sums_of(uid, one)
            for uuid, one_gpu in sums.items():
                own, share = None, 1.0
                if holders[uuid] > 1:
                    own = look.shares.get(uuid, {}).get(uid, GpuShare(0, 0, 0))
                    share = own.util / users[uuid] if users[uuid] else 1 / holders[uuid]
                one_gpu.enter(now, look.readings.get(uuid), own, share)
            found[uid] = [one_gpu.message() for one_gpu in sums.values()]
        return found

    def _sums_of(self, uid: str, held: Held) -> dict[str, GpuSum]:
        sums = self.sums.setdefault(uid, {})
        for uuid in held.gpus:
            if uuid not in sums:
                sums[uuid] = GpuSum(uuid=uuid, since=held.since, at=held.since, seen=held.since)
        return sums


def _is_stale(sums: Iterable[GpuSum], now: float) -> bool:
    return all(now - one_gpu.seen > STALE for one_gpu in sums)
