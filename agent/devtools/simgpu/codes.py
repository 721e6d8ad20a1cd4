"""Return codes of NVML, and how a function of C gets its arguments and gives its answers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypeVar

SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND, INSUFFICIENT_SIZE = 0, 1, 2, 3, 6, 7
NOT_LOADED, TIMEOUT, LOST = 9, 10, 15
WORDS = {
    SUCCESS: b"Success",
    UNINITIALIZED: b"Uninitialized",
    NOT_SUPPORTED: b"Not Supported",
    NOT_LOADED: b"Driver Not Loaded",
    TIMEOUT: b"Timeout",
    LOST: b"GPU is lost",
}
_SLOTS = 64

if TYPE_CHECKING:
    from agent.devtools.simgpu.driver import DriverState

Pointer: TypeAlias = "ctypes.c_void_p | ctypes._CArgObject"
"""What ``ctypes.byref`` gives, or a pointer to a structure (a GPU's handle)."""
Structures: TypeAlias = "ctypes.Array[ctypes.Structure]"
Text: TypeAlias = "ctypes.Array[ctypes.c_char]"
_CNumber: TypeAlias = "ctypes.c_uint | ctypes.c_ulonglong | ctypes.c_size_t"
T = TypeVar("T", covariant=True)


class Device(NamedTuple):
    """What a handle means: a GPU, or the instance of it in a slot."""

    index: int  # type: ignore[assignment]  # a tuple has a method of this name
    slot: int = -1


class Number(Protocol):
    """A number of C."""

    value: int


class Reference(Protocol[T]):
    """What ``ctypes.byref`` gives, with what it refers to."""

    @property
    def _obj(self) -> T: ...


def to_handle(device: Device) -> int:
    """The pointer that a caller gets for a device."""
    return (device.index + 1) * _SLOTS + device.slot + 1


def of_handle(handle: Pointer) -> Device:
    """The device of a pointer that a caller was given."""
    index, slot = divmod(ctypes.cast(handle, ctypes.c_void_p).value or 0, _SLOTS)
    return Device(index - 1, slot - 1)


def put(pointer: Pointer, kind: type[_CNumber], value: int) -> int:
    """A number for the caller."""
    ctypes.cast(pointer, ctypes.POINTER(kind))[0] = kind(value)
    return SUCCESS


def put_text(buffer: Text, length: Number, text: bytes) -> int:
    """A text for the caller."""
    if len(text) >= length.value:
        return INSUFFICIENT_SIZE
    ctypes.memmove(buffer, text + b"\0", len(text) + 1)
    return SUCCESS


def number(value: Callable[[DriverState, Device], int], kind: type[_CNumber] = ctypes.c_uint) -> Callable[..., int]:
    """A C function (handle, ..., pointer to a number)."""

    def function(driver: DriverState, handle: Pointer, *rest: Pointer) -> int:
        device = of_handle(handle)
        return driver.why_not(device) or put(rest[-1], kind, value(driver, device))

    return function


def of_gpu(function: Callable[..., int]) -> Callable[..., int]:
    """A C function that a MIG instance does not have."""

    def guarded(driver: DriverState, handle: Pointer, *rest: Pointer) -> int:
        return NOT_SUPPORTED if of_handle(handle).slot >= 0 else function(driver, handle, *rest)

    return guarded


def text(value: Callable[[DriverState, Device], bytes]) -> Callable[..., int]:
    """A C function (handle, buffer, its length)."""

    def function(driver: DriverState, handle: Pointer, buffer: Text, length: Number) -> int:
        device = of_handle(handle)
        return driver.why_not(device) or put_text(buffer, length, value(driver, device))

    return function


def struct(fill: Callable[[DriverState, Device, ctypes.Structure], None]) -> Callable[..., int]:
    """A C function (handle, pointer to a structure)."""

    def function(driver: DriverState, handle: Pointer, pointer: Reference[ctypes.Structure]) -> int:
        device = of_handle(handle)
        code = driver.why_not(device)
        if code == SUCCESS:
            fill(driver, device, pointer._obj)
        return code

    return function
