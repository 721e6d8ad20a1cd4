"""What each GPU is, and its MIG instances."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from agent.monitor.gpu.figures import MB, Figures
from agent.monitor.gpu.nvml import Library
from agent.monitor.gpu.records import GpuFact, Handle

_NODE_WORDS = 16
"""Of 64 bits: a host has at most 1024 NUMA nodes."""
_LINK_WORDS = {10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
_NVLINK = 2
_MEMORY_V2 = 0x02000028


class Device(NamedTuple):
    """A GPU or an instance that answers."""

    fact: GpuFact
    handle: Handle


def read_devices(nvml: Library, figures: Figures) -> tuple[list[Device], list[int]] | None:
    """All that answer, by index, each GPU before its instances; and the indexes of GPUs that do not say who they are.

    None: the driver does not say how many there are.
    """
    count = nvml.ask("", "nvmlDeviceGetCount")
    if count is None:
        return None
    devices: dict[str, Device] = {}
    silent = []
    for index in range(count):
        gpu = _read_gpu(nvml, figures, index)
        if gpu is None:
            silent.append(index)
        elif (other := devices.get(gpu.fact.uuid)) is not None:
            figures.tell(str(index), "uuid", f"the UUID {gpu.fact.uuid} of GPU {other.fact.index}")
        else:
            devices[gpu.fact.uuid] = gpu
            for instance in _read_instances(nvml, figures, gpu) if gpu.fact.split else ():
                devices.setdefault(instance.fact.uuid, instance)
    return list(devices.values()), silent


def _read_gpu(nvml: Library, figures: Figures, index: int) -> Device | None:
    about = str(index)
    handle = nvml.ask(about, "nvmlDeviceGetHandleByIndex", index)
    uuid = None if handle is None else nvml.ask(about, "nvmlDeviceGetUUID", handle)
    if handle is None or uuid is None:
        return None
    minor = nvml.ask(about, "nvmlDeviceGetMinorNumber", handle)
    bus = _bus(nvml.ask(about, "nvmlDeviceGetPciInfo", handle))
    mode = nvml.ask(about, "nvmlDeviceGetMigMode", handle)
    fact = GpuFact(
        str(uuid),
        index,
        str(nvml.ask(about, "nvmlDeviceGetName", handle) or "NVIDIA"),
        _memory(nvml, figures, about, handle),
        int(minor) if minor is not None else -1,
        _numa(nvml, about, handle, bus),
        bus,
        bool(mode is not None and mode[0]),
    )
    return Device(fact, handle)


def _read_instances(nvml: Library, figures: Figures, gpu: Device) -> Iterator[Device]:
    about, parent = str(gpu.fact.index), gpu.fact
    for slot in range(nvml.ask(about, "nvmlDeviceGetMaxMigDeviceCount", gpu.handle) or 0):
        handle = nvml.ask(about, "nvmlDeviceGetMigDeviceHandleByIndex", gpu.handle, slot)
        uuid = None if handle is None else nvml.ask(about, "nvmlDeviceGetUUID", handle)
        if uuid is None:
            continue
        what = nvml.ask(about, "nvmlDeviceGetAttributes", handle)
        slices = int(what.gpuInstanceSliceCount) if what is not None else 0
        compute = int(what.computeInstanceSliceCount) if what is not None else 0
        memory = _memory(nvml, figures, str(uuid), handle)
        fact = parent._replace(
            uuid=str(uuid),
            memory_mb=memory,
            split=False,
            parent=parent.uuid,
            profile=_profile(str(nvml.ask(about, "nvmlDeviceGetName", handle) or ""), slices, compute, memory),
            slices=slices,
            compute_slices=compute,
        )
        yield Device(fact, handle)


def _profile(name: str, slices: int, compute: int, memory: int) -> str:
    """As nvidia-smi names it, from the name of the device ("NVIDIA A100-SXM4-40GB MIG 1g.5gb"), else from its figures."""
    if found := name.partition(" MIG ")[2]:
        return found.strip()
    lead = f"{compute}c." if 0 < compute < slices else ""
    return f"{lead}{slices}g.{math.ceil(memory / 1024)}gb" if slices else ""


def _memory(nvml: Library, figures: Figures, about: str, handle: Handle) -> int:
    found = read_memory(nvml, about, handle)
    return max(0, figures.memory(about, "memory", found.total if found is not None else None, MB))


def read_memory(nvml: Library, about: str, handle: Handle) -> Any:
    """Total and used bytes; as nvidia-smi says, without what the driver keeps for itself, where the driver tells that apart."""
    found = nvml.ask(about, "nvmlDeviceGetMemoryInfo", handle, _MEMORY_V2)
    return found if found is not None else nvml.ask(about, "nvmlDeviceGetMemoryInfo", handle)


def _bus(pci: object) -> str:
    bus = getattr(pci, "busId", b"")
    return bus.decode(errors="replace") if isinstance(bus, bytes) else str(bus)


def _numa(nvml: Library, about: str, handle: Handle, bus: str) -> int:
    """As the kernel says, of a PCI address as NVML writes it (00000000:3B:00.0); else as the driver does."""
    try:
        with open(f"/sys/bus/pci/devices/{bus.lower()[4:]}/numa_node", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        pass
    nodes = nvml.ask(about, "nvmlDeviceGetMemoryAffinity", handle, _NODE_WORDS, 0)
    bits = sum(int(word) << 64 * at for at, word in enumerate(nodes or ()))
    return bits.bit_length() - 1 if bits and not bits & (bits - 1) else -1


def link(nvml: Library, a: Device, b: Device) -> str:
    """How two of a host are joined, in nvidia-smi's words; between instances of a GPU "", and no instance uses NVLink."""
    one, other = a.fact.parent or a.fact.uuid, b.fact.parent or b.fact.uuid
    if one == other:
        return ""
    about = one
    whole = not (a.fact.parent or b.fact.parent or a.fact.split or b.fact.split)
    if whole and nvml.ask(about, "nvmlDeviceGetP2PStatus", a.handle, b.handle, _NVLINK) == 0:
        return "NV"
    level = nvml.ask(about, "nvmlDeviceGetTopologyCommonAncestor", a.handle, b.handle)
    return _LINK_WORDS.get(level, "") if level is not None else ""
