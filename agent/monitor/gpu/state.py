"""How a GPU is now. An instance tells its memory alone: use, heat and power are those of its GPU."""

from __future__ import annotations

from agent.monitor.gpu.facts import Device, read_memory
from agent.monitor.gpu.figures import MOST_CELSIUS, MOST_WATTS, Figures
from agent.monitor.gpu.nvml import Library
from proto import agent_pb2 as pb

_MODES = {0: "DEFAULT", 1: "EXCLUSIVE_THREAD", 2: "PROHIBITED", 3: "EXCLUSIVE_PROCESS"}
_SENT, _RECEIVED = 0, 1
_LAST_PSTATE = 15
_MOST_KILOBYTES = 1 << 30
"""A second over PCIe."""


def unknown(uuid: str, error: str, cause: str = "") -> pb.GpuState:
    """Of a device that does not answer; ``error`` and ``cause`` as of ``errors.Fault``."""
    return pb.GpuState(
        uuid=uuid,
        util=-1,
        mem_util=-1,
        mem_used=-1,
        temperature=-1,
        power=-1,
        ecc=-1,
        pstate=-1,
        pcie_sent=-1,
        pcie_received=-1,
        error=error,
        cause=cause,
    )


def read_state(nvml: Library, figures: Figures, device: Device, error: str, cause: str) -> pb.GpuState:
    """``error`` and ``cause``: what is wrong with it."""
    uuid, handle = device.fact.uuid, device.handle
    state = unknown(uuid, error, cause)
    memory = read_memory(nvml, uuid, handle)
    state.mem_used = figures.memory(uuid, "used memory", memory.used if memory is not None else None)
    state.mode = _MODES.get(nvml.ask(uuid, "nvmlDeviceGetComputeMode", handle), "")
    if device.fact.parent:
        return state
    rates = nvml.ask(uuid, "nvmlDeviceGetUtilizationRates", handle)
    if rates is not None:
        state.util = figures.percent(uuid, "use", rates.gpu)
        state.mem_util = figures.percent(uuid, "memory use", rates.memory)
    celsius = figures.within(uuid, "temperature", _temperature(nvml, device), 0, MOST_CELSIUS)
    state.temperature = -1 if celsius is None else celsius
    power = figures.within(uuid, "power", nvml.ask(uuid, "nvmlDeviceGetPowerUsage", handle), 0, 1000 * MOST_WATTS)
    state.power = -1 if power is None else power / 1000
    state.ecc = ecc_errors(nvml, device)
    pstate = nvml.ask(uuid, "nvmlDeviceGetPerformanceState", handle)
    state.pstate = int(pstate) if pstate is not None and 0 <= pstate <= _LAST_PSTATE else -1
    state.pcie_sent = _traffic(nvml, figures, device, _SENT)
    state.pcie_received = _traffic(nvml, figures, device, _RECEIVED)
    return state


def read_energy(nvml: Library, device: Device) -> float:
    """J since the driver was loaded, -1: not told."""
    found = nvml.ask(device.fact.uuid, "nvmlDeviceGetTotalEnergyConsumption", device.handle)
    return -1.0 if found is None else found / 1000


def ecc_errors(nvml: Library, device: Device) -> int:
    """Uncorrected ones since the driver was loaded, -1: not counted."""
    found = nvml.ask(device.fact.uuid, "nvmlDeviceGetTotalEccErrors", device.handle, 1, 0)
    return -1 if found is None else int(found)


def _temperature(nvml: Library, device: Device) -> int | None:
    for name in ("nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature"):
        if (found := nvml.ask(device.fact.uuid, name, device.handle, 0)) is not None:
            return _signed(int(found))
    return None


def _signed(value: int) -> int:
    """NVML's older function gives an unsigned number."""
    return value - (1 << 32) if value >= 1 << 31 else value


def _traffic(nvml: Library, figures: Figures, device: Device, way: int) -> float:
    """MB/s; NVML counts for 20 ms."""
    found = nvml.ask(device.fact.uuid, "nvmlDeviceGetPcieThroughput", device.handle, way)
    kilobytes = figures.within(device.fact.uuid, "PCIe traffic", found, 0, _MOST_KILOBYTES)
    return -1 if kilobytes is None else kilobytes / 1024
