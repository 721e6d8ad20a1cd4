"""A simulated libnvidia-ml, for hosts without GPUs: the library alone, so that the real pynvml runs on top of it.

Rule: functions have the names, arguments and return codes of the C functions, and fill the structures pointed to.
A process uses a GPU when its environment has the GPU's UUID in CUDA_VISIBLE_DEVICES and LAVA_SIM_GPU_MB=N: N MB of it,
and LAVA_SIM_GPU_UTIL percent (default 50). Of a process and its child the child counts: a shell around a program uses
none, though it has the same environment.
LAVA_SIM_GPU_FAULTS names a JSON file {"<index>": "lost" | "ecc", "driver": "gone"}, read at each call.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from agent.monitor.procscan import list_pids, read_file, read_proc

SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, INSUFFICIENT_SIZE, NOT_LOADED, LOST = 0, 1, 2, 7, 9, 15
NOT_FOUND = 6
MODEL = b"NVIDIA Simulated-80GB"
MEMORY_MB = 81920
ISLAND = 4
"""GPUs 0-3 are joined by NVLink, 4-7 too, and so on; within an island each two share a PCIe switch."""
DEFAULT_UTIL = 50
_SCAN_AGAIN = 0.1
_VERSION = b"999.51.00"
_ERRORS = {SUCCESS: b"Success", UNINITIALIZED: b"Uninitialized", NOT_LOADED: b"Driver Not Loaded", LOST: b"GPU is lost"}


if TYPE_CHECKING:
    Pointer = ctypes.c_void_p | ctypes._CArgObject
    """What ``ctypes.byref`` gives, or a pointer to a structure (a GPU's handle)."""
    Structures = ctypes.Array[ctypes.Structure]
    _CNumber = ctypes.c_uint | ctypes.c_ulonglong | ctypes.c_size_t

T = TypeVar("T", covariant=True)


class _Number(Protocol):
    """A number of C."""

    value: int


class Reference(Protocol[T]):
    """What ``ctypes.byref`` gives, with what it refers to."""

    @property
    def _obj(self) -> T: ...


class _Use(NamedTuple):
    pid: int
    uuids: tuple[str, ...]
    mb: int
    util: int


def sim_uuid(host: str, index: int) -> str:
    """The same for a host name and index at all times; looks like a real one."""
    digest = hashlib.sha256(host.encode()).hexdigest()
    return f"GPU-51a00000-{digest[:4]}-{digest[4:8]}-{digest[8:12]}-{index:012x}"


def find_uses() -> list[_Use]:
    """All processes that use a simulated GPU of any host."""
    uses: dict[int, _Use] = {}
    for pid in list_pids():
        if (use := _parse_environ(pid, read_file(f"/proc/{pid}/environ", 1 << 20))) is not None:
            uses[pid] = use
    parents = {proc.ppid for pid in uses if (proc := read_proc(pid)) is not None}
    return [use for pid, use in uses.items() if pid not in parents]


def _parse_environ(pid: int, data: bytes) -> _Use | None:
    if b"LAVA_SIM_GPU_MB=" not in data:
        return None
    pairs = (item.partition(b"=") for item in data.split(b"\0"))
    env = {name: value.decode(errors="replace") for name, _, value in pairs}
    try:
        mb, util = int(env[b"LAVA_SIM_GPU_MB"]), int(env.get(b"LAVA_SIM_GPU_UTIL", str(DEFAULT_UTIL)))
    except (KeyError, ValueError):
        return None
    return _Use(pid, tuple(env.get(b"CUDA_VISIBLE_DEVICES", "").split(",")), mb, util)


def install(driver: SimulatedDriver) -> None:
    """Make pynvml use this driver in place of libnvidia-ml.so.1."""
    import pynvml

    with pynvml.libLoadLock:
        pynvml._nvmlGetFunctionPointer_cache.clear()
        pynvml.nvmlLib = driver


def uninstall() -> None:
    """Let pynvml look for the real library again."""
    import pynvml

    with pynvml.libLoadLock:
        pynvml._nvmlGetFunctionPointer_cache.clear()
        pynvml.nvmlLib = None


class SimulatedDriver:
    """``count`` GPUs of a host, as a library object: ``getattr`` gives the C functions."""

    def __init__(self, count: int, host: str) -> None:
        self._count = count
        self._host = host
        self._opened = 0
        self._uses: list[_Use] = []
        self._scanned = -1.0
        self._energy: dict[int, tuple[float, float]] = {}
        """Index of a GPU to when its energy was asked for last, and mJ until then."""
        self._functions: dict[str, Callable[..., int | bytes]] = {}

    def __getattr__(self, name: str) -> Callable[..., int | bytes]:
        # ctypes' functions take attributes (restype), bound methods do not
        function = self.__dict__["_functions"].get(name)
        if function is None:
            method = _FUNCTIONS.get(name)
            if method is None:
                raise AttributeError(name)
            function = self._functions[name] = partial(method, self)
        return function  # type: ignore[no-any-return]

    def faults(self) -> dict[str, str]:
        """The faults to be shown now."""
        path = os.environ.get("LAVA_SIM_GPU_FAULTS", "")
        try:
            found = json.loads(read_file(path, 1 << 16) or b"{}") if path else {}
        except ValueError:
            return {}
        return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}

    def start(self) -> int:
        if self.faults().get("driver") == "gone":
            return NOT_LOADED
        self._opened += 1
        return SUCCESS

    def stop(self) -> int:
        if self._opened == 0:
            return UNINITIALIZED
        self._opened -= 1
        return SUCCESS

    def count(self) -> int:
        return self._count

    def uuid(self, index: int) -> str:
        return sim_uuid(self._host, index)

    def why_not(self, index: int | None = None) -> int:
        """The return code that a call about a GPU gets, or SUCCESS."""
        faults = self.faults()
        if faults.get("driver") == "gone":
            self._opened = 0
        if self._opened == 0:
            return UNINITIALIZED
        if index is not None and not 0 <= index < self._count:
            return INVALID_ARGUMENT
        return LOST if index is not None and faults.get(str(index)) == "lost" else SUCCESS

    def spent(self, index: int, power: int) -> int:
        """mJ since the driver was loaded: as the power is now, it has been since it was last asked for."""
        now = time.monotonic()
        then, before = self._energy.get(index, (now, 0.0))
        self._energy[index] = now, before + power * (now - then)
        return int(self._energy[index][1])

    def uses(self, index: int) -> list[_Use]:
        now = time.monotonic()
        if self._scanned < 0 or now - self._scanned > _SCAN_AGAIN:
            self._scanned, self._uses = now, find_uses()
        uuid = self.uuid(index)
        return [use for use in self._uses if uuid in use.uuids]


def _index(handle: Pointer) -> int:
    return (ctypes.cast(handle, ctypes.c_void_p).value or 0) - 1


def _put(pointer: Pointer, kind: type[_CNumber], value: int) -> int:
    ctypes.cast(pointer, ctypes.POINTER(kind))[0] = kind(value)
    return SUCCESS


def _put_text(buffer: ctypes.Array[ctypes.c_char], length: _Number, text: bytes) -> int:
    size = length.value
    if len(text) >= size:
        return INSUFFICIENT_SIZE
    ctypes.memmove(buffer, text + b"\0", len(text) + 1)
    return SUCCESS


def _number(value: Callable[[SimulatedDriver, int], int], kind: type[_CNumber] = ctypes.c_uint) -> Callable[..., int]:
    """A C function (handle, ..., pointer to a number)."""

    def function(driver: SimulatedDriver, handle: Pointer, *rest: Pointer) -> int:
        index = _index(handle)
        return driver.why_not(index) or _put(rest[-1], kind, value(driver, index))

    return function


def _text(value: Callable[[SimulatedDriver, int], bytes]) -> Callable[..., int]:
    """A C function (handle, buffer, its length)."""

    def function(driver: SimulatedDriver, handle: Pointer, buffer: ctypes.Array[ctypes.c_char], length: _Number) -> int:
        index = _index(handle)
        return driver.why_not(index) or _put_text(buffer, length, value(driver, index))

    return function


def _struct(fill: Callable[[SimulatedDriver, int, ctypes.Structure], None]) -> Callable[..., int]:
    """A C function (handle, pointer to a structure)."""

    def function(driver: SimulatedDriver, handle: Pointer, pointer: Reference[ctypes.Structure]) -> int:
        index = _index(handle)
        code = driver.why_not(index)
        if code == SUCCESS:
            fill(driver, index, pointer._obj)
        return code

    return function


def _get_count(driver: SimulatedDriver, pointer: Pointer) -> int:
    return driver.why_not() or _put(pointer, ctypes.c_uint, driver.count())


def _get_handle(driver: SimulatedDriver, index: _Number, pointer: Pointer) -> int:
    return driver.why_not(index.value) or _put(pointer, ctypes.c_size_t, index.value + 1)


def _get_driver_version(driver: SimulatedDriver, buffer: ctypes.Array[ctypes.c_char], length: _Number) -> int:
    return driver.why_not() or _put_text(buffer, length, _VERSION)


def _error_string(_: SimulatedDriver, code: int) -> bytes:
    return _ERRORS.get(code, b"Unknown Error")


def _fill_memory(driver: SimulatedDriver, index: int, memory: ctypes.Structure) -> None:
    used = sum(use.mb for use in driver.uses(index))
    memory.total = MEMORY_MB << 20
    memory.used = min(used, MEMORY_MB) << 20
    memory.free = memory.total - memory.used


def _fill_rates(driver: SimulatedDriver, index: int, rates: ctypes.Structure) -> None:
    rates.gpu = min(100, sum(use.util for use in driver.uses(index)))
    rates.memory = rates.gpu // 2


def _milliwatts(driver: SimulatedDriver, index: int) -> int:
    """60 W when it is idle, 400 W at full use."""
    return 60_000 + 3_400 * min(100, sum(use.util for use in driver.uses(index)))


def _millijoules(driver: SimulatedDriver, index: int) -> int:
    return driver.spent(index, _milliwatts(driver, index))


def _pcie(driver: SimulatedDriver, handle: Pointer, counter: _Number, pointer: Pointer) -> int:
    """KB/s: 10 MB/s sent and 20 MB/s received for each percent of use."""
    index = _index(handle)
    if code := driver.why_not(index):
        return code
    busy = min(100, sum(use.util for use in driver.uses(index)))
    return _put(pointer, ctypes.c_uint, busy * 10_240 * (counter.value + 1))


def _fill_temperature(driver: SimulatedDriver, index: int, temperature: ctypes.Structure) -> None:
    temperature.temperature = _celsius(driver, index)


def _celsius(driver: SimulatedDriver, index: int) -> int:
    return 35 + min(100, sum(use.util for use in driver.uses(index))) // 3


def _get_processes(driver: SimulatedDriver, handle: Pointer, count: Reference[_Number], array: Structures | None) -> int:
    index = _index(handle)
    if code := driver.why_not(index):
        return code
    uses = driver.uses(index)
    room, count._obj.value = count._obj.value, len(uses)
    if room < len(uses):
        return INSUFFICIENT_SIZE
    for slot, use in zip(array or (), uses, strict=False):
        slot.pid, slot.usedGpuMemory = use.pid, use.mb << 20
        slot.gpuInstanceId = slot.computeInstanceId = 0xFFFFFFFF
    return SUCCESS


def _get_process_use(
    driver: SimulatedDriver, handle: Pointer, samples: Structures | None, count: Reference[_Number], since: _Number
) -> int:
    index = _index(handle)
    if code := driver.why_not(index):
        return code
    now = time.time_ns() // 1000
    uses = driver.uses(index) if now > since.value else []
    if not uses:
        return NOT_FOUND
    if samples is None:
        count._obj.value = len(uses)
        return INSUFFICIENT_SIZE
    for slot, use in zip(samples, uses, strict=False):
        slot.pid, slot.timeStamp, slot.smUtil, slot.memUtil = use.pid, now, use.util, use.util // 2
    count._obj.value = min(len(samples), len(uses))
    return SUCCESS


def _get_p2p(driver: SimulatedDriver, one: Pointer, other: Pointer, kind: int, pointer: Pointer) -> int:
    a, b = _index(one), _index(other)
    joined = a // ISLAND == b // ISLAND or kind != 2
    return driver.why_not(a) or driver.why_not(b) or _put(pointer, ctypes.c_uint, 0 if joined else 5)


def _get_ancestor(driver: SimulatedDriver, one: Pointer, other: Pointer, pointer: Pointer) -> int:
    a, b = _index(one), _index(other)
    level = 10 if a // 2 == b // 2 else 30 if a // ISLAND == b // ISLAND else 50
    return driver.why_not(a) or driver.why_not(b) or _put(pointer, ctypes.c_uint, level)


def _get_remapped(driver: SimulatedDriver, handle: Pointer, *pointers: Pointer) -> int:
    index = _index(handle)
    return driver.why_not(index) or max(_put(pointer, ctypes.c_uint, 0) for pointer in pointers)


def _ecc_errors(driver: SimulatedDriver, index: int) -> int:
    return 2 if driver.faults().get(str(index)) == "ecc" else 0


_FUNCTIONS: dict[str, Callable[..., int | bytes]] = {
    "nvmlInit_v2": SimulatedDriver.start,
    "nvmlInitWithFlags": lambda driver, _: driver.start(),
    "nvmlShutdown": SimulatedDriver.stop,
    "nvmlErrorString": _error_string,
    "nvmlSystemGetDriverVersion": _get_driver_version,
    "nvmlDeviceGetCount_v2": _get_count,
    "nvmlDeviceGetHandleByIndex_v2": _get_handle,
    "nvmlDeviceGetUUID": _text(lambda driver, index: driver.uuid(index).encode()),
    "nvmlDeviceGetName": _text(lambda driver, index: MODEL),
    "nvmlDeviceGetMinorNumber": _number(lambda driver, index: index),
    "nvmlDeviceGetMemoryInfo": _struct(_fill_memory),
    "nvmlDeviceGetMemoryInfo_v2": _struct(_fill_memory),
    "nvmlDeviceGetUtilizationRates": _struct(_fill_rates),
    "nvmlDeviceGetPowerUsage": _number(_milliwatts),
    "nvmlDeviceGetTotalEnergyConsumption": _number(_millijoules, ctypes.c_ulonglong),
    "nvmlDeviceGetPcieThroughput": _pcie,
    "nvmlDeviceGetTemperatureV": _struct(_fill_temperature),
    "nvmlDeviceGetTemperature": _number(_celsius),
    "nvmlDeviceGetTotalEccErrors": _number(_ecc_errors, ctypes.c_ulonglong),
    "nvmlDeviceGetRemappedRows": _get_remapped,
    "nvmlDeviceGetComputeRunningProcesses_v3": _get_processes,
    "nvmlDeviceGetProcessUtilization": _get_process_use,
    "nvmlDeviceGetP2PStatus": _get_p2p,
    "nvmlDeviceGetTopologyCommonAncestor": _get_ancestor,
}
