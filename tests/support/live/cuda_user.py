"""A program that uses the first GPU that it sees, by NVIDIA's driver alone: ``python cuda_user.py MB SECONDS``.

It says how many it sees and the UUID of the first, takes the memory, says that it is ready, and computes for so long; with 0
seconds it holds the memory until its standard input ends.
"""

from __future__ import annotations

import ctypes
import sys
import time
import uuid

_PART = 256 << 20
"""Bytes that are written at a time."""


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(mb: int, seconds: float) -> None:
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *arguments: object) -> None:
        if code := getattr(cuda, name)(*arguments):
            sys.exit(f"{name}: CUDA error {code}")

    count, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    memory, size = ctypes.c_uint64(), mb << 20
    name = ctypes.create_string_buffer(16)
    call("cuInit", 0)
    call("cuDeviceGetCount", ctypes.byref(count))
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDeviceGetUuid", name, device)
    say(f"sees {count.value}: GPU-{uuid.UUID(bytes=name.raw)}")
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
    say("ready")
    if not seconds:
        sys.stdin.read()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for at in range(0, size, _PART):
            many = ctypes.c_size_t(min(_PART, size - at))
            call("cuMemsetD8Async", ctypes.c_uint64(memory.value + at), ctypes.c_ubyte(1), many, None)
        call("cuCtxSynchronize")


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
