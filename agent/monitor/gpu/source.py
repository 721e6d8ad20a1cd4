"""The GPUs of this host as they are asked: facts, states, processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import ModuleType

from agent.monitor.gpu.errors import Fault, Judge
from agent.monitor.gpu.facts import Device, link, read_devices
from agent.monitor.gpu.figures import MB, MOST_MEMORY, Figures
from agent.monitor.gpu.nvml import Library
from agent.monitor.gpu.records import GpuFact, GpuProcess, Processes
from agent.monitor.gpu.state import read_energy, read_state, unknown
from agent.monitor.gpu_meter import GpuReading
from proto import agent_pb2 as pb

FACTS_EVERY = 30.0
"""Seconds after which GPUs and instances are looked up again: those of MIG change while the driver runs."""


class GpuSource:
    """NVML, asked; safe to use from several threads. ``nvml`` is the module pynvml."""

    def __init__(self, nvml: ModuleType, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._nvml = Library(nvml, clock)
        self._judge = Judge(self._nvml, clock)
        self._figures = Figures()
        self._facts: dict[str, GpuFact] = {}
        self._joined: dict[tuple[str, str], str] = {}
        self._driver = ""
        self._devices: dict[str, Device] = {}
        self._silent: list[int] = []
        self._opened = 0
        self._learned_at = 0.0
        self._sampled: dict[str, int] = {}

    def list(self) -> tuple[GpuFact, ...]:
        """All devices ever seen by this source, by index, each GPU before its instances."""
        with self._lock:
            self._ready()
            return tuple(self._facts.values())

    def links(self) -> tuple[tuple[str, ...], ...]:
        """How each pair is joined, in nvidia-smi's words: SELF, NV (NVLink), PIX, PXB, PHB, NODE, SYS; "" unknown.

        Of a GPU that is lost: as it was.
        """
        with self._lock:
            self._ready()
            return tuple(tuple("SELF" if a == b else self._joined.get((a, b), "") for b in self._facts) for a in self._facts)

    def driver(self) -> str:
        """The driver's version, or ""."""
        with self._lock:
            self._ready()
            return self._driver

    def look(self) -> tuple[tuple[pb.GpuState, ...], dict[str, GpuReading]]:
        """How each device is that was ever seen, of one that does not answer, why; and by UUID the counters of those that do."""
        with self._lock:
            devices = self._ready()
            faults = self._judge.judge(devices)
            states = tuple(self._state(fact, devices.get(fact.uuid), faults) for fact in self._facts.values())
            return states, {
                state.uuid: _reading(device.fact, state, read_energy(self._nvml, device))
                for state in states
                if (device := devices.get(state.uuid)) is not None and state.mem_used >= 0
            }

    def states(self) -> tuple[pb.GpuState, ...]:
        """How each device is."""
        return self.look()[0]

    def readings(self) -> dict[str, GpuReading]:
        """The counters of each device that answers, by UUID."""
        return self.look()[1]

    def processes(self) -> Processes:
        """Memory and use of each process on each device; pids are those of the host's own namespace."""
        found: Processes = []
        with self._lock:
            for uuid, device in self._ready().items():
                if device.fact.split:
                    continue
                busy = self._utilisation(uuid, device)
                for one in self._nvml.ask(uuid, "nvmlDeviceGetComputeRunningProcesses", device.handle) or ():
                    found.append(GpuProcess(uuid, int(one.pid), _mb(one.usedGpuMemory), *busy.get(int(one.pid), (0, 0))))
        return found

    def mode(self, uuid: str) -> int | None:
        """The compute mode of a GPU by its number in NVML (0: default, 3: exclusive process); None: it does not say."""
        with self._lock:
            device = self._ready().get(uuid)
            found = self._nvml.ask(uuid, "nvmlDeviceGetComputeMode", device.handle) if device else None
            return None if found is None else int(found)

    def set_mode(self, uuid: str, mode: int) -> str:
        """Change the compute mode of a GPU, for which NVML wants root; why that cannot be done, "" when it was."""
        with self._lock:
            device = self._ready().get(uuid)
            if device is None:
                return "it does not answer"
            return self._nvml.tell(uuid, "nvmlDeviceSetComputeMode", device.handle, mode)

    def error(self) -> str:
        """What is wrong with the driver, or with GPUs that do not say who they are; "" when nothing is."""
        with self._lock:
            self._ready()
            if why := self._nvml.why_closed():
                return why
            return "" if not self._silent else f"GPU {', '.join(map(str, self._silent))} does not answer"

    def close(self) -> None:
        """Let go of the driver."""
        with self._lock:
            self._nvml.close()

    def _ready(self) -> dict[str, Device]:
        """The devices that can be asked, by UUID; opens the driver and looks them up again when that is due."""
        if not self._nvml.ready():
            self._devices = {}
            return self._devices
        now = self._clock()
        if self._opened != self._nvml.opened or now - self._learned_at >= FACTS_EVERY:
            self._opened, self._learned_at = self._nvml.opened, now
            self._learn()
        return self._devices

    def _learn(self) -> None:
        found = read_devices(self._nvml, self._figures)
        if found is None:
            self._devices = {}
            return
        devices, silent = found
        self._devices = {device.fact.uuid: device for device in devices}
        kept = [fact for uuid, fact in self._facts.items() if uuid not in self._devices and fact.parent not in self._devices]
        facts = sorted([*(device.fact for device in devices), *kept], key=lambda fact: (fact.index, bool(fact.parent)))
        known = {self._facts[uuid].index for uuid in self._facts if uuid not in self._devices}
        self._silent = [index for index in silent if index not in known]
        self._facts = {fact.uuid: fact for fact in facts}
        self._driver = str(self._nvml.ask("", "nvmlSystemGetDriverVersion") or self._driver)
        joined = {(a.fact.uuid, b.fact.uuid): link(self._nvml, a, b) for a in devices for b in devices if a is not b}
        self._joined |= joined

    def _state(self, fact: GpuFact, device: Device | None, faults: dict[str, Fault]) -> pb.GpuState:
        fault = faults.get(fact.parent or fact.uuid)
        if fault is None or device is None:
            return unknown(fact.uuid, *self._judge.silent(fact.parent or fact.uuid))
        return read_state(self._nvml, self._figures, device, *fault)

    def _utilisation(self, uuid: str, device: Device) -> dict[int, tuple[int, int]]:
        """Mean use of processors and memory in percent, of each process since it was last asked for."""
        sums: dict[int, tuple[int, int, int]] = {}
        newest = self._sampled.get(uuid, 0)
        for one in self._nvml.ask(uuid, "nvmlDeviceGetProcessUtilization", device.handle, newest) or ():
            if one.pid and one.smUtil <= 100 and one.memUtil <= 100:  # old drivers leave rubbish in unused entries
                total, memory, count = sums.get(one.pid, (0, 0, 0))
                sums[one.pid] = (total + one.smUtil, memory + one.memUtil, count + 1)
                self._sampled[uuid] = max(self._sampled.get(uuid, 0), one.timeStamp)
        return {pid: (round(total / count), round(memory / count)) for pid, (total, memory, count) in sums.items()}


def open_gpus(clock: Callable[[], float] = time.monotonic) -> GpuSource | None:
    """The GPUs of this host, which may have none now; None without NVML's Python module."""
    try:
        import pynvml
    except ImportError:
        return None
    return GpuSource(pynvml, clock)


def _reading(fact: GpuFact, state: pb.GpuState, energy: float) -> GpuReading:
    traffic = state.pcie_sent, state.pcie_received
    return GpuReading(fact.uuid, fact.index, state.util, state.mem_util, state.mem_used, energy, state.power, *traffic)


def _mb(size: int | None) -> int:
    """Bytes as MB; NVML's "not available" as 0."""
    return size // MB if size is not None and size <= MOST_MEMORY else 0
