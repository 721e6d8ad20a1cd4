"""What an idle rank waits for: the newest of its processes, its system call, and where in the kernel it sleeps.

Rule: only ranks that have used no CPU for some samples are looked at, once, and then again now and then.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agent.monitor.procscan import TICKS, Proc, read_file

STOPPED = "stopped"
STILL = 3
AGAIN = 12
IDLE = 0.02
"""Of a core: less is no work."""

_X86 = {
    0: "read",
    1: "write",
    7: "poll",
    17: "pread64",
    18: "pwrite64",
    19: "readv",
    20: "writev",
    23: "select",
    34: "pause",
    35: "nanosleep",
    42: "connect",
    43: "accept",
    44: "sendto",
    45: "recvfrom",
    46: "sendmsg",
    47: "recvmsg",
    61: "wait4",
    65: "semop",
    70: "msgrcv",
    72: "fcntl",
    73: "flock",
    74: "fsync",
    128: "rt_sigtimedwait",
    130: "rt_sigsuspend",
    202: "futex",
    230: "clock_nanosleep",
    232: "epoll_wait",
    247: "waitid",
    257: "openat",
    270: "pselect6",
    271: "ppoll",
    281: "epoll_pwait",
    288: "accept4",
    441: "epoll_pwait2",
    449: "futex_waitv",
}
_ARM = {
    25: "fcntl",
    32: "flock",
    22: "epoll_pwait",
    56: "openat",
    63: "read",
    64: "write",
    72: "pselect6",
    73: "ppoll",
    82: "fsync",
    95: "waitid",
    98: "futex",
    101: "nanosleep",
    115: "clock_nanosleep",
    202: "accept",
    203: "connect",
    206: "sendto",
    207: "recvfrom",
    211: "sendmsg",
    212: "recvmsg",
    242: "accept4",
    260: "wait4",
    441: "epoll_pwait2",
    449: "futex_waitv",
}
_CALLS = {"x86_64": _X86, "aarch64": _ARM}.get(platform.machine(), {})
_WORDS = "read write readv writev pread64 pwrite64 recvfrom recvmsg sendto sendmsg connect accept accept4 fcntl flock fsync"
_OF_A_FILE = frozenset(_WORDS.split())


class Looked(NamedTuple):
    """How long a rank has been still, in samples, and what was seen of it."""

    ticks: int
    at: float
    still: int = 0
    pid: int = 0
    waits: str = ""


class Stillness:
    """The ranks of one part that do not move."""

    def __init__(self) -> None:
        self._ranks: dict[int, Looked] = {}

    def see(self, rank: int, ticks: int, now: float, stopped: bool, living: Iterable[Proc]) -> Looked:
        """A sample of a rank: its CPU so far, whether a process of it is stopped, and its processes."""
        before = self._ranks.get(rank)
        went_on = before is not None and before.waits == STOPPED and not stopped
        if before is None or went_on or _moved(before, ticks, now):
            found = Looked(ticks, now)
        else:
            found = before._replace(ticks=ticks, at=now, still=before.still + 1)
        if stopped or (found.still >= STILL and (found.still - STILL) % AGAIN == 0):
            found = self._look(found, living)
        self._ranks[rank] = found
        return found

    def _look(self, found: Looked, living: Iterable[Proc]) -> Looked:
        process = most_telling(living)
        return found._replace(pid=process.pid, waits=waits_for(process)) if process is not None else found


def _moved(before: Looked, ticks: int, now: float) -> bool:
    used = ticks - before.ticks
    return used > 0 and used >= IDLE * TICKS * (now - before.at)


def most_telling(living: Iterable[Proc]) -> Proc | None:
    """A stopped process, else one in an uninterruptible wait, else the newest that has no child: shells only wait for it."""
    processes = [proc for proc in living if proc.state not in "ZX"]
    parents = {proc.ppid for proc in processes}
    leaves = [proc for proc in processes if proc.pid not in parents] or processes
    order = {"T": 2, "t": 2, "D": 1}
    return max(leaves, key=lambda proc: (order.get(proc.state, 0), proc.start, proc.pid), default=None)


def waits_for(process: Proc) -> str:
    """``stopped``, or the system call, what its first argument is where that is a file, and the kernel's word for the place."""
    if process.state in "Tt":
        return STOPPED
    if process.state == "R":
        return ""
    wchan = _text(f"/proc/{process.pid}/wchan")
    words = _call(process.pid)
    if wchan not in ("", "0"):
        words = f"{words} ({wchan})" if words else wchan
    words = words or "sleep"
    return f"{words}, uninterruptible" if process.state == "D" else words


def _call(pid: int) -> str:
    fields = _text(f"/proc/{pid}/syscall").split()
    if not fields or not fields[0].isdigit():
        return ""
    name = _CALLS.get(int(fields[0]), f"system call {fields[0]}")
    if name in _OF_A_FILE and len(fields) > 1:
        return f"{name} of {_kind(pid, int(fields[1], 16))}"
    return name


def _kind(pid: int, number: int) -> str:
    """What an open file is. Its name is the user's own affair."""
    try:
        target = os.readlink(f"/proc/{pid}/fd/{number}")
    except OSError:
        return "a file"
    for kind in ("socket", "pipe"):
        if target.startswith(kind + ":"):
            return f"a {kind}"
    return "a terminal" if target.startswith(("/dev/pts/", "/dev/tty")) else "a file"


def _text(path: str) -> str:
    return read_file(path, 256).decode("ascii", "replace").strip()


def by_rank(living: Iterable[tuple[Proc, int]], ranks: Mapping[int, object]) -> dict[int, list[Proc]]:
    """The living processes of each rank."""
    found: dict[int, list[Proc]] = {rank: [] for rank in ranks}
    for proc, rank in living:
        if rank in found:
            found[rank].append(proc)
    return found
