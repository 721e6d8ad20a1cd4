"""How the simulated devices are: use, memory, heat, power, errors, compute mode, and the processes on them."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

from agent.devtools.simgpu.codes import (
    INSUFFICIENT_SIZE,
    INVALID_ARGUMENT,
    NOT_FOUND,
    NOT_SUPPORTED,
    SUCCESS,
    Device,
    Number,
    Pointer,
    Reference,
    Structures,
    number,
    of_gpu,
    of_handle,
    put,
    struct,
)
from agent.devtools.simgpu.driver import DriverState

_NONE = 0xFFFFFFFF
_HOT = 0x40
"""Of the reasons for slow clocks: nvmlClocksEventReasonHwThermalSlowdown (0x40)."""
_MODES = 4


def _fill_memory(driver: DriverState, device: Device, memory: ctypes.Structure) -> None:
    size = driver.memory_mb(device)
    used = min(sum(use.mb for use, _ in driver.uses(device)), size)
    memory.total, memory.used, memory.free = size << 20, used << 20, (size - used) << 20
    if driver.faulty(device, "nonsense"):
        memory.total = memory.used = (1 << 64) - 1


def _get_rates(driver: DriverState, handle: Pointer, pointer: Reference[ctypes.Structure]) -> int:
    device = of_handle(handle)
    if (code := driver.why_not(device)) or driver.instances(device.index) is not None:
        return code or NOT_SUPPORTED
    rates, busy = pointer._obj, driver.busy(device)
    rates.gpu, rates.memory = (255, 255) if driver.faulty(device, "nonsense") else (busy, busy // 2)
    return SUCCESS


def _celsius(driver: DriverState, device: Device) -> int:
    if driver.faulty(device, "nonsense"):
        return -40
    return 95 if driver.faulty(device, "hot") else 35 + driver.busy(device) // 3


def _fill_temperature(driver: DriverState, device: Device, temperature: ctypes.Structure) -> None:
    temperature.temperature = _celsius(driver, device)


def _get_traffic(driver: DriverState, handle: Pointer, counter: Number, pointer: Pointer) -> int:
    """KB/s: 10 MB/s sent and 20 MB/s received for each percent of use."""
    device = of_handle(handle)
    return driver.why_not(device) or put(pointer, ctypes.c_uint, 10_240 * (counter.value + 1) * driver.busy(device))


def _get_processes(driver: DriverState, handle: Pointer, count: Reference[Number], array: Structures | None) -> int:
    device = of_handle(handle)
    if code := driver.why_not(device):
        return code
    uses = driver.uses(device)
    room, count._obj.value = count._obj.value, len(uses)
    if room < len(uses):
        return INSUFFICIENT_SIZE
    for slot, (use, one) in zip(array or (), uses, strict=False):
        slot.pid, slot.usedGpuMemory = use.pid, use.mb << 20
        slot.gpuInstanceId = _NONE if one.slot < 0 else one.slot + 1
        slot.computeInstanceId = _NONE if one.slot < 0 else 0
    return SUCCESS


def _get_process_use(
    driver: DriverState, handle: Pointer, samples: Structures | None, count: Reference[Number], since: Number
) -> int:
    device = of_handle(handle)
    if (code := driver.why_not(device)) or driver.instances(device.index) is not None:
        return code or NOT_SUPPORTED
    now = time.time_ns() // 1000
    uses = driver.uses(device) if now > since.value else []
    if not uses:
        return NOT_FOUND
    if samples is None:
        count._obj.value = len(uses)
        return INSUFFICIENT_SIZE
    for slot, (use, _) in zip(samples, uses, strict=False):
        slot.pid, slot.timeStamp, slot.smUtil, slot.memUtil = use.pid, now, use.util, use.util // 2
    count._obj.value = min(len(samples), len(uses))
    return SUCCESS


def _get_remapped(driver: DriverState, handle: Pointer, *pointers: Pointer) -> int:
    device = of_handle(handle)
    pending, failed = driver.faulty(device, "remap"), driver.faulty(device, "remapfailed")
    answers = (0, pending + failed, pending, failed)
    return driver.why_not(device) or max(map(put, pointers, [ctypes.c_uint] * 4, answers))


def _set_mode(driver: DriverState, handle: Pointer, mode: Number) -> int:
    device = of_handle(handle)
    if code := driver.why_not(device):
        return code
    if not 0 <= mode.value < _MODES:
        return INVALID_ARGUMENT
    driver.set_mode(device, mode.value)
    return SUCCESS


FUNCTIONS: dict[str, Callable[..., int | bytes]] = {
    "nvmlDeviceGetMemoryInfo": struct(_fill_memory),
    "nvmlDeviceGetMemoryInfo_v2": struct(_fill_memory),
    "nvmlDeviceGetUtilizationRates": _get_rates,
    "nvmlDeviceGetTemperatureV": of_gpu(struct(_fill_temperature)),
    "nvmlDeviceGetTemperature": of_gpu(number(_celsius)),
    "nvmlDeviceGetPowerUsage": of_gpu(number(DriverState.milliwatts)),
    "nvmlDeviceGetPowerManagementLimit": of_gpu(number(lambda driver, device: 1000 * driver.model(device).limit)),
    "nvmlDeviceGetPerformanceState": of_gpu(number(lambda driver, device: 0 if driver.busy(device) else 8)),
    "nvmlDeviceGetPcieThroughput": of_gpu(_get_traffic),
    "nvmlDeviceGetTotalEnergyConsumption": of_gpu(number(DriverState.millijoules, ctypes.c_ulonglong)),
    "nvmlDeviceGetTotalEccErrors": of_gpu(number(lambda driver, device: 2 * driver.faulty(device, "ecc"), ctypes.c_ulonglong)),
    "nvmlDeviceGetRemappedRows": of_gpu(_get_remapped),
    "nvmlDeviceGetCurrentClocksEventReasons": of_gpu(
        number(lambda driver, device: _HOT * driver.faulty(device, "hot"), ctypes.c_ulonglong)
    ),
    "nvmlDeviceGetComputeMode": number(lambda driver, device: driver.mode(device)),
    "nvmlDeviceSetComputeMode": of_gpu(_set_mode),
    "nvmlDeviceGetComputeRunningProcesses_v3": _get_processes,
    "nvmlDeviceGetProcessUtilization": _get_process_use,
}
