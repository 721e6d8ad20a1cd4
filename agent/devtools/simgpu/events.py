"""Events of the simulated driver: Xid errors, told once to each set of events that was there before them."""

from __future__ import annotations

import ctypes
import time

from agent.devtools.simgpu import faults
from agent.devtools.simgpu.codes import (
    INVALID_ARGUMENT,
    SUCCESS,
    TIMEOUT,
    Device,
    Number,
    Pointer,
    Reference,
    of_handle,
    put,
    to_handle,
)
from agent.devtools.simgpu.driver import DriverState, EventSet

XID = 8
"""The type of event, a bit: nvmlEventTypeXidCriticalError."""
_LOOK = 0.02


def create(driver: DriverState, pointer: Pointer) -> int:
    """nvmlEventSetCreate."""
    number = max(driver.event_sets, default=0) + 1
    driver.event_sets[number] = EventSet()
    return driver.why_not() or put(pointer, ctypes.c_size_t, number)


def free(driver: DriverState, handle: Pointer) -> int:
    """nvmlEventSetFree."""
    return SUCCESS if driver.event_sets.pop(_number(handle), None) is not None else INVALID_ARGUMENT


def register(driver: DriverState, handle: Pointer, types: Number, to: Pointer) -> int:
    """nvmlDeviceRegisterEvents."""
    device, found = of_handle(handle), driver.event_sets.get(_number(to))
    if (code := driver.why_not(device)) or found is None:
        return code or INVALID_ARGUMENT
    if types.value & XID:
        found.gpus.add(device.index)
        found.told |= {(gpu, xid) for gpu, xid in faults.now().xids() if gpu == device.index}
    return SUCCESS


def wait(driver: DriverState, handle: Pointer, pointer: Reference[ctypes.Structure], milliseconds: Number) -> int:
    """nvmlEventSetWait."""
    found, until = driver.event_sets.get(_number(handle)), time.monotonic() + milliseconds.value / 1000
    if found is None:
        return INVALID_ARGUMENT
    while not (code := driver.why_not()):
        present = {(gpu, xid) for gpu, xid in faults.now().xids() if gpu in found.gpus}
        found.told &= present
        for gpu, xid in sorted(present - found.told):
            found.told.add((gpu, xid))
            event = pointer._obj
            event.eventType, event.eventData = XID, xid
            ctypes.cast(ctypes.pointer(event), ctypes.POINTER(ctypes.c_size_t))[0] = to_handle(Device(gpu))
            event.gpuInstanceId = event.computeInstanceId = 0xFFFFFFFF
            return SUCCESS
        if time.monotonic() >= until:
            return TIMEOUT
        time.sleep(_LOOK)
    return code


def _number(handle: Pointer) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
