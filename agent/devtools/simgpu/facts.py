"""What the simulated devices are: identity, memory, PCI address, links, and MIG."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TypeAlias

from agent.devtools.simgpu.codes import (
    INVALID_ARGUMENT,
    NOT_FOUND,
    NOT_SUPPORTED,
    SUCCESS,
    Device,
    Number,
    Pointer,
    Reference,
    Text,
    number,
    of_gpu,
    of_handle,
    put,
    put_text,
    struct,
    text,
    to_handle,
)
from agent.devtools.simgpu.driver import DriverState
from agent.devtools.simgpu.models import numa_of

_Nodes: TypeAlias = "ctypes.Array[ctypes.c_ulonglong]"
ISLAND = 4
"""GPUs 0-3 are joined by NVLink, 4-7 too, and so on; within an island each two share a PCIe switch."""
_VERSION = b"550.54.15"
_INSTANCES = 7
_NVLINK = 2
_NOT_SUPPORTED_LINK = 5


def _get_count(driver: DriverState, pointer: Pointer) -> int:
    return driver.why_not() or put(pointer, ctypes.c_uint, driver.count)


def _get_handle(driver: DriverState, index: Number, pointer: Pointer) -> int:
    device = Device(index.value)
    return driver.why_not(device) or put(pointer, ctypes.c_size_t, to_handle(device))


def _get_driver_version(driver: DriverState, buffer: Text, length: Number) -> int:
    return driver.why_not() or put_text(buffer, length, _VERSION)


def _name(driver: DriverState, device: Device) -> bytes:
    name, instance = driver.model(device).name, driver.instance(device)
    return (name if instance is None else f"{name} MIG {instance.profile}").encode()


def _get_pci(driver: DriverState, handle: Pointer, pointer: Reference[ctypes.Structure]) -> int:
    device = of_handle(handle)
    if code := driver.why_not(device):
        return code
    pci = pointer._obj
    pci.bus, pci.domain, pci.device = 0x10 + 8 * device.index, 0, 0
    pci.busId = f"00000000:{pci.bus:02X}:00.0".encode()
    return SUCCESS


def _get_affinity(driver: DriverState, handle: Pointer, size: int, nodes: Reference[_Nodes], _: Number) -> int:
    device = of_handle(handle)
    node = numa_of(device.index, driver.count)
    if code := driver.why_not(device):
        return code
    if node < 0:
        return NOT_SUPPORTED
    for word in range(size):
        nodes._obj[word] = 1 << node % 64 if word == node // 64 else 0
    return SUCCESS


def _get_p2p(driver: DriverState, one: Pointer, other: Pointer, kind: int, pointer: Pointer) -> int:
    a, b = of_handle(one), of_handle(other)
    joined = a.index // ISLAND == b.index // ISLAND or kind != _NVLINK
    status = 0 if joined else _NOT_SUPPORTED_LINK
    return driver.why_not(a) or driver.why_not(b) or put(pointer, ctypes.c_uint, status)


def _get_ancestor(driver: DriverState, one: Pointer, other: Pointer, pointer: Pointer) -> int:
    a, b = of_handle(one), of_handle(other)
    level = 10 if a.index // 2 == b.index // 2 else 30 if a.index // ISLAND == b.index // ISLAND else 50
    return driver.why_not(a) or driver.why_not(b) or put(pointer, ctypes.c_uint, level)


def _get_mig_mode(driver: DriverState, handle: Pointer, current: Pointer, pending: Pointer) -> int:
    device = of_handle(handle)
    on = driver.instances(device.index) is not None
    return driver.why_not(device) or put(current, ctypes.c_uint, on) or put(pending, ctypes.c_uint, on)


def _get_instance(driver: DriverState, handle: Pointer, slot: Number, pointer: Pointer) -> int:
    device = of_handle(handle)
    if code := driver.why_not(device):
        return code
    instance = Device(device.index, slot.value)
    return put(pointer, ctypes.c_size_t, to_handle(instance)) if driver.instance(instance) is not None else NOT_FOUND


def _get_parent(driver: DriverState, handle: Pointer, pointer: Pointer) -> int:
    device = of_handle(handle)
    return driver.why_not(device) or put(pointer, ctypes.c_size_t, to_handle(Device(device.index)))


def _fill_attributes(driver: DriverState, device: Device, attributes: ctypes.Structure) -> None:
    if (instance := driver.instance(device)) is not None:
        attributes.gpuInstanceSliceCount = instance.slices
        attributes.computeInstanceSliceCount = instance.compute
        attributes.memorySizeMB = instance.memory_mb


def _get_id(driver: DriverState, handle: Pointer, pointer: Pointer) -> int:
    device = of_handle(handle)
    return driver.why_not(device) or (INVALID_ARGUMENT if device.slot < 0 else put(pointer, ctypes.c_uint, device.slot + 1))


FUNCTIONS: dict[str, Callable[..., int | bytes]] = {
    "nvmlSystemGetDriverVersion": _get_driver_version,
    "nvmlDeviceGetCount_v2": _get_count,
    "nvmlDeviceGetHandleByIndex_v2": _get_handle,
    "nvmlDeviceGetUUID": text(lambda driver, device: driver.uuid(device).encode()),
    "nvmlDeviceGetName": text(_name),
    "nvmlDeviceGetMinorNumber": of_gpu(number(lambda driver, device: device.index)),
    "nvmlDeviceGetPciInfo_v3": of_gpu(_get_pci),
    "nvmlDeviceGetMemoryAffinity": of_gpu(_get_affinity),
    "nvmlDeviceGetP2PStatus": _get_p2p,
    "nvmlDeviceGetTopologyCommonAncestor": _get_ancestor,
    "nvmlDeviceGetMigMode": of_gpu(_get_mig_mode),
    "nvmlDeviceGetMaxMigDeviceCount": of_gpu(number(lambda driver, device: _INSTANCES)),
    "nvmlDeviceGetMigDeviceHandleByIndex": of_gpu(_get_instance),
    "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": _get_parent,
    "nvmlDeviceIsMigDeviceHandle": number(lambda driver, device: device.slot >= 0),
    "nvmlDeviceGetAttributes_v2": struct(_fill_attributes),
    "nvmlDeviceGetGpuInstanceId": _get_id,
    "nvmlDeviceGetComputeInstanceId": number(lambda driver, device: 0),
}
