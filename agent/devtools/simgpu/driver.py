"""The state of the simulated driver of one host: its GPUs and instances, their compute modes, and who uses them."""

from __future__ import annotations

import hashlib
import os
import time

from agent.devtools.simgpu import codes, faults
from agent.devtools.simgpu.codes import Device
from agent.devtools.simgpu.faults import Faults
from agent.devtools.simgpu.models import Instance, Model, model_of, split
from agent.devtools.simgpu.uses import Use, find_uses

_SCAN_AGAIN = 0.1


def sim_uuid(host: str, index: int) -> str:
    """The same for a host name and index at all times; looks like a real one."""
    digest = hashlib.sha256(host.encode()).hexdigest()
    return f"GPU-51a00000-{digest[:4]}-{digest[4:8]}-{digest[8:12]}-{index:012x}"


def _instance_uuid(host: str, device: Device, profile: str) -> str:
    digest = hashlib.sha256(f"{host} {profile}".encode()).hexdigest()
    return f"MIG-51a00000-{digest[:4]}-{digest[4:8]}-{digest[8:12]}-{device.slot + 1:04x}{device.index:08x}"


class EventSet:
    """GPUs that a program listens to, and the errors that it was told or that were there before."""

    def __init__(self) -> None:
        self.gpus: set[int] = set()
        self.told: set[tuple[int, int]] = set()


class DriverState:
    """``count`` GPUs of a host."""

    def __init__(self, count: int, host: str) -> None:
        self.count = count
        self._host = host
        self._opened = 0
        self._uses: list[Use] = []
        self._scanned = -1.0
        self._modes: dict[int, int] = {}
        self._energy: dict[int, tuple[float, float]] = {}
        """Index of a GPU to when its energy was asked for last, and mJ until then."""
        self.event_sets: dict[int, EventSet] = {}

    def start(self) -> int:
        """nvmlInit."""
        if faults.now().gone:
            return codes.NOT_LOADED
        self._opened += 1
        return codes.SUCCESS

    def stop(self) -> int:
        """nvmlShutdown."""
        if self._opened == 0:
            return codes.UNINITIALIZED
        self._opened -= 1
        return codes.SUCCESS

    def why_not(self, device: Device | None = None) -> int:
        """The return code that a call (about a device) gets, or SUCCESS."""
        found = faults.now()
        if found.gone:
            self._opened = 0
        if self._opened == 0:
            return codes.UNINITIALIZED
        if device is None:
            return codes.SUCCESS
        if not 0 <= device.index < self.count or (device.slot >= 0 and self.instance(device) is None):
            return codes.INVALID_ARGUMENT
        return codes.LOST if found.lost(device.index) else codes.SUCCESS

    def faulty(self, device: Device, fault: str) -> bool:
        """Whether the GPU has this fault now."""
        return Faults().has(device.index, fault)

    def model(self, device: Device) -> Model:
        """That of the GPU."""
        return model_of(device.index)

    def instances(self, index: int) -> tuple[Instance, ...] | None:
        """Those of a GPU in MIG mode, None: it is not."""
        told = Faults().mig
        return split(os.environ.get("LAVA_SIM_GPU_MIG", "") if told is None else told).get(index)

    def instance(self, device: Device) -> Instance | None:
        """The instance that a handle means; None: a GPU, or one that is no more."""
        all_of_it = self.instances(device.index) or ()
        return all_of_it[device.slot] if 0 <= device.slot < len(all_of_it) else None

    def uuid(self, device: Device) -> str:
        """Of a GPU or an instance."""
        if (instance := self.instance(device)) is not None:
            return _instance_uuid(self._host, device, instance.profile)
        twin = device.index > 0 and self.faulty(device, "twin")
        return sim_uuid(self._host, device.index - twin)

    def memory_mb(self, device: Device) -> int:
        """All that it has."""
        instance = self.instance(device)
        return instance.memory_mb if instance is not None else self.model(device).memory_mb

    def mode(self, device: Device) -> int:
        """The compute mode of the GPU."""
        return self._modes.get(device.index, 0)

    def set_mode(self, device: Device, mode: int) -> None:
        """Until this process ends."""
        self._modes[device.index] = mode

    def milliwatts(self, device: Device) -> int:
        """As much of what it may take as it is busy."""
        model = self.model(device)
        return 1000 * model.idle + 10 * (model.limit - model.idle) * self.busy(device)

    def millijoules(self, device: Device) -> int:
        """Since the driver was loaded: as the power is now, it has been since it was last asked for."""
        now = time.monotonic()
        then, before = self._energy.get(device.index, (now, 0.0))
        self._energy[device.index] = now, before + self.milliwatts(device) * (now - then)
        return int(self._energy[device.index][1])

    def uses(self, device: Device) -> list[tuple[Use, Device]]:
        """Who uses a device, and which: of a GPU in MIG mode, one of its instances."""
        now = time.monotonic()
        if self._scanned < 0 or now - self._scanned > _SCAN_AGAIN:
            self._scanned, self._uses = now, find_uses()
        devices = [device]
        if device.slot < 0:
            devices += [Device(device.index, slot) for slot in range(len(self.instances(device.index) or ()))]
        return [(use, one) for one in devices for use in self._uses if self.uuid(one) in use.uuids]

    def busy(self, device: Device) -> int:
        """Percent of its time."""
        return min(100, sum(use.util for use, _ in self.uses(device)))
