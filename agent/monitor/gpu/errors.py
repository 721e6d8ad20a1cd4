"""What is wrong with a GPU: what it says itself, the Xid errors that its driver tells, and how long it has been too hot.

Rule: what a program can cause (Xid 13, 31, 43, 45, 68, 109 …) is no fault of a GPU: no user can have one taken out.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from agent.monitor.gpu.facts import Device
from agent.monitor.gpu.nvml import LOST, RESET, Library, words
from agent.monitor.gpu.state import ecc_errors

HEALTH, GONE, FAULT, HELD = "health", "lost", "fault", "held"
"""Of GpuState.cause: jobs may go on; a reset may bring it back; an administrator has to look; processes have it."""
BUS = 79
"""The Xid of a GPU that has fallen off the bus."""
FATAL = {
    46: "it stopped processing",
    48: "double bit ECC error",
    62: "its microcontroller has halted",
    64: "row remapping failed",
    74: "NVLink error",
    95: "uncontained ECC error",
    110: "security fault",
    119: "its system processor does not answer",
    120: "its system processor failed",
    136: "an NVLink cannot be trained",
    140: "unrecovered ECC error",
    143: "it cannot be initialized",
    158: "fatal timeout",
}
"""Xids after which NVIDIA's catalogue has a GPU reset (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html: RESET_GPU,
or, for 48 and 74, its text), as it does for BUS the machine restarted.

Left out, though it has it reset for them: 109 (a context switch took too long), which NVIDIA's Kubernetes device plugin takes for
an error of programs; 155, which links that are switched off on purpose cause too; 156, a repair that waits for the next reset.
"""
TOLD_FOR = 3600.0
"""Seconds for which an Xid is told: the master may be away for a while."""
HOT_FOR = 60.0
_XID_EVENT = 8
_SLOWED = 0x40 | 0x80
"""Reasons for slow clocks: the board slows down for heat, or for its power supply."""
_MOST_EVENTS = 100
log = logging.getLogger("lava-agent")


class Fault(NamedTuple):
    """What is wrong, and of what kind that is; "" if nothing is."""

    error: str = ""
    cause: str = ""


class Judge:
    """Of the GPUs of a host, each time that they are looked at. ``clock``: seconds, of any beginning."""

    def __init__(self, nvml: Library, clock: Callable[[], float]) -> None:
        self._nvml = nvml
        self._clock = clock
        self._opened = 0
        self._events: object = None
        self._heard: set[str] = set()
        self._xids: dict[str, tuple[int, float]] = {}
        """UUID to the newest fatal Xid, and when it was told."""
        self._slow_since: dict[str, float] = {}

    def judge(self, devices: Mapping[str, Device]) -> dict[str, Fault]:
        """What is wrong with each GPU that answers, by UUID."""
        gpus = {uuid: device for uuid, device in devices.items() if not device.fact.parent}
        if gpus:
            self._listen(gpus)
        return {uuid: self._why_ill(device) for uuid, device in gpus.items()}

    def silent(self, uuid: str) -> Fault:
        """Of a GPU that is not there any more."""
        if why := self._nvml.why_closed():
            return Fault(why, HEALTH)
        return self._lost(uuid, "lost")

    def _lost(self, uuid: str, word: str) -> Fault:
        return Fault(f"{word} (Xid {BUS})" if self._xids.get(uuid, (0, 0.0))[0] == BUS else word, GONE)

    def _listen(self, gpus: Mapping[str, Device]) -> None:
        """Hear of the Xids since the last look; of those before the driver was opened nobody tells."""
        nvml = self._nvml
        if self._opened != nvml.opened:
            self._opened, self._heard = nvml.opened, set()
            self._events = nvml.ask("", "nvmlEventSetCreate")
        if self._events is None:
            return
        for uuid in gpus.keys() - self._heard:
            self._heard.add(uuid)
            nvml.ask(uuid, "nvmlDeviceRegisterEvents", gpus[uuid].handle, _XID_EVENT, self._events)
        by_handle = {_address(device.handle): uuid for uuid, device in gpus.items()}
        for _ in range(_MOST_EVENTS):
            event = nvml.ask("", "nvmlEventSetWait_v2", self._events, 0)
            if event is None:
                break
            uuid = by_handle.get(_address(event.device), "")
            if uuid and event.eventType == _XID_EVENT:
                self._note(uuid, int(event.eventData))

    def _note(self, uuid: str, xid: int) -> None:
        log.warning("GPU %s: Xid %d", uuid, xid)
        if xid in FATAL or xid == BUS:
            self._xids[uuid] = xid, self._clock()

    def _why_ill(self, gpu: Device) -> Fault:
        uuid, nvml = gpu.fact.uuid, self._nvml
        nvml.forget(uuid)
        nvml.ask(uuid, "nvmlDeviceGetUtilizationRates", gpu.handle)
        nvml.ask(uuid, "nvmlDeviceGetUUID", gpu.handle)
        if code := nvml.error(uuid):
            return self._lost(uuid, words(code)) if code in (LOST, RESET) else Fault(words(code), HEALTH)
        xid, at = self._xids.get(uuid, (0, 0.0))
        if xid in FATAL and self._clock() - at < TOLD_FOR:
            return Fault(f"Xid {xid}: {FATAL[xid]}", FAULT)
        if (errors := ecc_errors(nvml, gpu)) > 0:
            return Fault(f"{errors} uncorrected ECC errors", FAULT)
        rows = nvml.ask(uuid, "nvmlDeviceGetRemappedRows", gpu.handle)
        if rows is not None and rows[3]:
            return Fault("row remapping failed", FAULT)
        if rows is not None and rows[2]:
            return Fault("rows of its memory are remapped by the next reset", HEALTH)
        return self._heat(gpu)

    def _heat(self, gpu: Device) -> Fault:
        uuid, now = gpu.fact.uuid, self._clock()
        reasons = self._nvml.ask(uuid, "nvmlDeviceGetCurrentClocksEventReasons", gpu.handle)
        if not (reasons or 0) & _SLOWED:
            self._slow_since.pop(uuid, None)
            return Fault()
        since = self._slow_since.setdefault(uuid, now)
        if now - since < HOT_FOR:
            return Fault()
        return Fault("slowed down by heat" if reasons & 0x40 else "slowed down by its power supply", HEALTH)


def _address(handle: object) -> int:
    """Handles of one device are different objects that point to the same."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
