"""The GPUs of this host, through NVML.

Rule: no call raises. A host without a driver is a normal host (``open_gpus`` gives None), a driver without some
function gives the rest, a GPU that is lost stays listed and is named by ``health``, and a driver that went away is
opened again.
NVML may block on broken hardware: call from a thread that may wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from agent.monitor.gpu_meter import GpuReading

REOPEN_EVERY = 30.0
"""Seconds between tries to open a driver that went away or lost a GPU."""

_LINK_WORDS = {0: "SELF", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
_BROKEN = frozenset({1, 9, 15, 16, 18, 28})
"""UNINITIALIZED, DRIVER_NOT_LOADED, GPU_IS_LOST, RESET_REQUIRED, LIB_RM_VERSION_MISMATCH, GPU_NOT_FOUND."""
_LOST = 15


class GpuFact(NamedTuple):
    """What a GPU is. ``minor`` is the N of /dev/nvidiaN, -1: not known."""

    uuid: str
    index: int  # type: ignore[assignment]  # a tuple has a method of this name
    model: str
    memory_mb: int
    minor: int
    numa: int
    """The NUMA node that it is near to, -1: not known."""


class GpuProcess(NamedTuple):
    """A process on a GPU; what the driver does not tell is 0."""

    uuid: str
    pid: int
    mem_mb: int
    util_percent: int


class GpuLoad(NamedTuple):
    """How busy a GPU is. ``ecc``: uncorrected errors since the driver was loaded; 0 too where there is no ECC."""

    uuid: str
    util_percent: int
    mem_used_mb: int
    temperature: int
    ecc: int


Processes = list[GpuProcess]
Loads = list[GpuLoad]
Handle = object
"""What NVML calls a GPU by: only ever given back to it."""
Handles = list[tuple[int, Handle]]


class GpuSource:
    """An opened NVML; safe to use from several threads. ``nvml`` is the module pynvml."""

    def __init__(self, nvml: ModuleType, clock: Callable[[], float] = time.monotonic) -> None:
        self._nvml = nvml
        self._clock = clock
        self._lock = threading.RLock()
        self._facts: dict[int, GpuFact] = {}
        self._handles: dict[int, Handle] = {}
        self._errors: dict[int, int] = {}
        self._sampled: dict[str, int] = {}
        self._open = False
        self._broken = False
        self._tried = 0.0
        self._start()

    def list(self) -> tuple[GpuFact, ...]:
        """All GPUs ever seen by this source, by index."""
        with self._lock:
            self._ready()
            return tuple(self._facts[index] for index in sorted(self._facts))

    def processes(self) -> Processes:
        """Memory and use of each process on each GPU; pids are those of the host's own namespace."""
        found: Processes = []
        with self._lock:
            for index, handle in self._ready():
                uuid = self._facts[index].uuid
                busy = self._utilisation(index, handle)
                for one in self._ask(index, "nvmlDeviceGetComputeRunningProcesses", handle) or ():
                    found.append(GpuProcess(uuid, int(one.pid), _mb(one.usedGpuMemory), busy.get(int(one.pid), 0)))
        return found

    def load(self) -> Loads:
        """Utilisation, memory, temperature and errors of each GPU that answers."""
        found: Loads = []
        with self._lock:
            for index, handle in self._ready():
                rates = self._ask(index, "nvmlDeviceGetUtilizationRates", handle)
                memory = self._ask(index, "nvmlDeviceGetMemoryInfo", handle)
                if rates is None and memory is None:
                    continue
                found.append(
                    GpuLoad(
                        self._facts[index].uuid,
                        int(rates.gpu) if rates is not None else 0,
                        _mb(memory.used) if memory is not None else 0,
                        self._temperature(index, handle),
                        self._ecc(index, handle),
                    )
                )
        return found

    def readings(self) -> dict[str, GpuReading]:
        """How each GPU that answers is now, by uuid, with its counters."""
        found: dict[str, GpuReading] = {}
        with self._lock:
            for index, handle in self._ready():
                fact = self._facts[index]
                memory = self._ask(index, "nvmlDeviceGetMemoryInfo", handle)
                if memory is None:
                    continue
                rates = self._ask(index, "nvmlDeviceGetUtilizationRates", handle)
                energy = self._ask(index, "nvmlDeviceGetTotalEnergyConsumption", handle)
                power = self._ask(index, "nvmlDeviceGetPowerUsage", handle)
                found[fact.uuid] = GpuReading(
                    fact.uuid,
                    fact.index,
                    int(rates.gpu) if rates is not None else -1,
                    int(rates.memory) if rates is not None else -1,
                    _mb(memory.used),
                    energy / 1000 if energy is not None else -1.0,
                    power / 1000 if power is not None else -1.0,
                    self._traffic(index, handle, 0),
                    self._traffic(index, handle, 1),
                )
        return found

    def _traffic(self, index: int, handle: Handle, counter: int) -> float:
        """MB/s over PCIe, sent (0) or received (1)."""
        found = self._ask(index, "nvmlDeviceGetPcieThroughput", handle, counter)
        return found / 1024 if found is not None else -1.0

    def health(self) -> dict[str, str]:
        """What is wrong with each GPU, by uuid; "" when nothing is."""
        with self._lock:
            answering = dict(self._ready())
            known = sorted(self._facts.items())
            return {fact.uuid: self._why_ill(index, answering.get(index)) for index, fact in known}

    def links(self) -> tuple[tuple[str, ...], ...]:
        """How each pair is joined, in nvidia-smi's words: SELF, NV (NVLink), PIX, PXB, PHB, NODE, SYS; "" unknown."""
        with self._lock:
            answering = dict(self._ready())
            indexes = sorted(self._facts)
            return tuple(tuple(self._link(answering, a, b) for b in indexes) for a in indexes)

    def driver(self) -> str:
        """The driver's version, or ""."""
        with self._lock:
            self._ready()
            return str(self._ask(-1, "nvmlSystemGetDriverVersion") or "")

    def close(self) -> None:
        """Let go of the driver."""
        with self._lock:
            self._stop()

    def _start(self) -> None:
        self._tried = self._clock()
        self._errors, self._handles, self._broken = {}, {}, False
        try:
            self._nvml.nvmlInit()
        except Exception:
            self._broken = True
            return
        self._open = True
        for index in range(self._ask(-1, "nvmlDeviceGetCount") or 0):
            handle = self._ask(index, "nvmlDeviceGetHandleByIndex", index)
            if handle is not None:
                self._handles[index] = handle
                self._learn(index, handle)

    def _learn(self, index: int, handle: Handle) -> None:
        uuid = self._ask(index, "nvmlDeviceGetUUID", handle)
        if uuid is None:
            return
        name = self._ask(index, "nvmlDeviceGetName", handle)
        memory = self._ask(index, "nvmlDeviceGetMemoryInfo", handle)
        minor = self._ask(index, "nvmlDeviceGetMinorNumber", handle)
        size = _mb(memory.total) if memory is not None else 0
        number = int(minor) if minor is not None else -1
        numa = _numa_of(self._ask(index, "nvmlDeviceGetPciInfo", handle))
        self._facts[index] = GpuFact(str(uuid), index, str(name or "NVIDIA"), size, number, numa)

    def _stop(self) -> None:
        if self._open:
            self._open = False
            try:
                self._nvml.nvmlShutdown()
            except Exception:
                self._broken = True

    def _ready(self) -> Handles:
        """The GPUs that can be asked, by index; opens the driver again when it went away."""
        if self._broken and self._clock() - self._tried >= REOPEN_EVERY:
            self._stop()
            self._start()
        return [(index, handle) for index, handle in self._handles.items() if index in self._facts]

    def _ask(self, index: int, name: str, *args: Handle) -> Any:
        """The answer of one NVML function about one GPU (-1: of none); None when there is none."""
        try:
            answer = getattr(self._nvml, name)(*args)
        except Exception as error:  # pynvml raises more than NVMLError when a driver is older or half gone
            self._note(index, getattr(error, "value", 0))
            return None
        return answer

    def _note(self, index: int, code: object) -> None:
        if code in _BROKEN and isinstance(code, int):
            self._broken = True
            self._errors[index] = code

    def _utilisation(self, index: int, handle: Handle) -> dict[int, int]:
        """Mean use in percent of each process since it was last asked for."""
        uuid = self._facts[index].uuid
        sums: dict[int, tuple[int, int]] = {}
        newest = self._sampled.get(uuid, 0)
        for one in self._ask(index, "nvmlDeviceGetProcessUtilization", handle, newest) or ():
            if one.pid and one.smUtil <= 100:  # old drivers leave rubbish in unused entries
                total, count = sums.get(one.pid, (0, 0))
                sums[one.pid] = (total + one.smUtil, count + 1)
                self._sampled[uuid] = max(self._sampled.get(uuid, 0), one.timeStamp)
        return {pid: round(total / count) for pid, (total, count) in sums.items()}

    def _temperature(self, index: int, handle: Handle) -> int:
        for name in ("nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature"):
            if (found := self._ask(index, name, handle, 0)) is not None:
                return int(found)
        return 0

    def _ecc(self, index: int, handle: Handle) -> int:
        return int(self._ask(index, "nvmlDeviceGetTotalEccErrors", handle, 1, 0) or 0)

    def _why_ill(self, index: int, handle: Handle | None) -> str:
        if handle is None:
            return _words(self._errors.get(index, self._errors.get(-1, 0)))
        self._errors.pop(index, None)
        self._ask(index, "nvmlDeviceGetUtilizationRates", handle)
        self._ask(index, "nvmlDeviceGetUUID", handle)
        if index in self._errors:
            return _words(self._errors[index])
        if errors := self._ecc(index, handle):
            return f"{errors} uncorrected ECC errors"
        rows = self._ask(index, "nvmlDeviceGetRemappedRows", handle)
        if rows is not None and rows[3]:
            return "row remapping failed"
        return ""

    def _link(self, handles: dict[int, Handle], a: int, b: int) -> str:
        if a == b:
            return "SELF"
        if a not in handles or b not in handles:
            return ""
        if self._ask(a, "nvmlDeviceGetP2PStatus", handles[a], handles[b], 2) == 0:  # over NVLink: can be done
            return "NV"
        level = self._ask(a, "nvmlDeviceGetTopologyCommonAncestor", handles[a], handles[b])
        return _LINK_WORDS.get(level, "") if level is not None else ""


def open_gpus(clock: Callable[[], float] = time.monotonic) -> GpuSource | None:
    """The GPUs of this host, or None when it has none, no driver or no library."""
    try:
        import pynvml
    except ImportError:
        return None
    source = GpuSource(pynvml, clock)
    if not source.list():
        source.close()
        return None
    return source


def _numa_of(pci: object) -> int:
    """Of a PCI address as NVML writes it (00000000:3B:00.0)."""
    bus = getattr(pci, "busId", b"")
    text = (bus.decode(errors="replace") if isinstance(bus, bytes) else str(bus)).lower()
    try:
        with open(f"/sys/bus/pci/devices/{text[4:]}/numa_node", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return -1


def _mb(size: int | None) -> int:
    """Bytes as MB; NVML's "not available" as 0."""
    return size // 1048576 if size is not None and size < 1 << 60 else 0


def _words(code: int) -> str:
    return "lost" if code == _LOST else "needs a reset" if code == 16 else "the driver does not answer"
