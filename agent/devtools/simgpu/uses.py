"""What runs on the simulated GPUs.

A process uses a GPU or an instance when its environment has the UUID in CUDA_VISIBLE_DEVICES and LAVA_SIM_GPU_MB=N: N MB
of it, and LAVA_SIM_GPU_UTIL percent (default 50). Of a process and its child the child counts: a shell around a program
uses none, though it has the same environment.
"""

from __future__ import annotations

from typing import NamedTuple

from agent.monitor.procscan import list_pids, read_file, read_proc

DEFAULT_UTIL = 50


class Use(NamedTuple):
    """What one process uses of each of its GPUs."""

    pid: int
    uuids: tuple[str, ...]
    mb: int
    util: int


def find_uses() -> list[Use]:
    """All processes that use a simulated GPU of any host."""
    uses: dict[int, Use] = {}
    for pid in list_pids():
        if (use := _parse_environ(pid, read_file(f"/proc/{pid}/environ", 1 << 20))) is not None:
            uses[pid] = use
    parents = {proc.ppid for pid in uses if (proc := read_proc(pid)) is not None}
    return [use for pid, use in uses.items() if pid not in parents]


def _parse_environ(pid: int, data: bytes) -> Use | None:
    if b"LAVA_SIM_GPU_MB=" not in data:
        return None
    pairs = (item.partition(b"=") for item in data.split(b"\0"))
    env = {name: value.decode(errors="replace") for name, _, value in pairs}
    try:
        mb, util = int(env[b"LAVA_SIM_GPU_MB"]), int(env.get(b"LAVA_SIM_GPU_UTIL", str(DEFAULT_UTIL)))
    except (KeyError, ValueError):
        return None
    return Use(pid, tuple(env.get(b"CUDA_VISIBLE_DEVICES", "").split(",")), mb, util)
