"""Reading /proc directly: who is there, whose child, and what it has used.

Rule: one short file read per process and no objects kept, since this runs every few seconds for all jobs of a host
(several times cheaper than psutil). A process that goes away while it is read is simply not there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
_KERNEL_THREAD = 0x00200000
_FLAGS = os.O_RDONLY | os.O_CLOEXEC


class Proc(NamedTuple):
    """One process. CPU in clock ticks, memory in KB; ``start``, in ticks since boot, names the process with its pid."""

    pid: int
    state: str
    ppid: int
    pgrp: int
    session: int
    own: int
    """CPU of the process itself, all its threads, ended ones too."""
    reaped: int
    """CPU of its ended children that it has waited for, with theirs."""
    threads: int
    start: int
    rss: int
    kernel: bool
    """A thread of the kernel."""


def list_pids() -> list[int]:
    """All processes, in rising order: a parent is then mostly read before its child (see ``cputime``)."""
    return sorted([int(name) for name in os.listdir("/proc") if name.isdigit()])


def parse_stat(pid: int, data: bytes) -> Proc | None:
    """The text of /proc/PID/stat; the name in it may hold blanks and brackets. None: not such a text."""
    f = data[data.rfind(b")") + 1 :].split(None, 22)
    if len(f) < 22:
        return None
    return Proc(
        pid,
        f[0].decode(),
        int(f[1]),
        int(f[2]),
        int(f[3]),
        int(f[11]) + int(f[12]),
        int(f[13]) + int(f[14]),
        int(f[17]),
        int(f[19]),
        int(f[21]) * PAGE_KB,
        bool(int(f[6]) & _KERNEL_THREAD),
    )


def read_file(path: str, size: int = 4096) -> bytes:
    """The first ``size`` bytes in one read; b"" when it cannot be read."""
    try:
        fd = os.open(path, _FLAGS)
    except OSError:
        return b""
    try:
        return os.read(fd, size)
    except OSError:
        return b""
    finally:
        os.close(fd)


def read_proc(pid: int) -> Proc | None:
    """None: gone, or not to be seen by this user."""
    data = read_file(f"/proc/{pid}/stat")
    return parse_stat(pid, data) if data else None


def read_procs(pids: Iterable[int]) -> dict[int, Proc]:
    """Those of ``pids`` that are there, read in the order given."""
    found: dict[int, Proc] = {}
    for pid in pids:
        if (proc := read_proc(pid)) is not None:
            found[pid] = proc
    return found


def read_pss(pid: int) -> tuple[int, int] | None:
    """Proportional memory and proportional swap in KB. None: gone, not allowed, or a kernel without smaps_rollup.

    It walks the page tables (0.35 ms for a small Python, far more for a large process): not for every sample.
    """
    pss = swap = -1
    for line in read_file(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            pss = int(line.split()[1])
        elif line.startswith(b"SwapPss:"):
            swap = int(line.split()[1])
    return (pss, max(swap, 0)) if pss >= 0 else None


def folder_of(pid: int) -> str:
    """The working folder of a process, "" when it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def parent_of(pid: int) -> int:
    """The parent's pid, 0 when the process is gone."""
    proc = read_proc(pid)
    return proc.ppid if proc is not None else 0
