"""Kernel calls that Python lacks: child subreaper, process names in ps, and the usage of an ended child before it is reaped.

Rule: works without site-packages; on an unknown architecture it falls back to what ``os`` has.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import time

_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_DUMPABLE = 4
_P_ALL = 0
_LOOK = os.WEXITED | os.WNOHANG | os.WNOWAIT
_CALL_NUMBER = {"x86_64": 247, "aarch64": 95, "riscv64": 95}.get(platform.machine(), 0)
_RUSAGE = struct.Struct("=qqqqq")
_SIGINFO = struct.Struct("=iiiiiii")
_FALLOC_FL_KEEP_SIZE = 1

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_siginfo = ctypes.create_string_buffer(128)
_rusage = ctypes.create_string_buffer(256)
_waitid_args = (
    ctypes.c_long(_CALL_NUMBER),
    ctypes.c_long(_P_ALL),
    ctypes.c_long(0),
    ctypes.c_void_p(ctypes.addressof(_siginfo)),
    ctypes.c_long(_LOOK),
    ctypes.c_void_p(ctypes.addressof(_rusage)),
)

# (pid, wait status, user seconds, system seconds, peak memory in kB)
Ended = tuple[int, int, float, float, int]
NONE_READY: Ended = (0, 0, 0.0, 0.0, 0)
NO_CHILD: Ended = (-1, 0, 0.0, 0.0, 0)


def become_subreaper() -> None:
    """Make this process the parent of all orphans below it (PR_SET_CHILD_SUBREAPER)."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0)


def forbid_tracing() -> None:
    """As of a process that has changed its user: nobody but root may look at its memory and files (PR_SET_DUMPABLE)."""
    _libc.prctl(_PR_SET_DUMPABLE, ctypes.c_ulong(0), 0, 0, 0)


def reserve(fd: int, offset: int, size: int) -> bool:
    """Set blocks aside behind the end of a file, for what is written there on a full disk; False where that fails."""
    done: int = _libc.fallocate(
        ctypes.c_int(fd), ctypes.c_int(_FALLOC_FL_KEEP_SIZE), ctypes.c_int64(offset), ctypes.c_int64(size)
    )
    return done == 0


def boottime() -> float:
    """CLOCK_BOOTTIME in seconds: counts while the machine sleeps, and never jumps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """The id of this boot of the machine, "" if unknown; together with pid and start time it identifies a process uniquely."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return ""


def look_at_ended_child() -> Ended:
    """An ended child with what it used, left as a zombie; NONE_READY: none has ended; NO_CHILD: there are no children."""
    if not _CALL_NUMBER:
        return _look_by_os()
    ctypes.memset(_siginfo, 0, 28)
    if _syscall(*_waitid_args) < 0:
        return NO_CHILD
    _, _, code, _, pid, _, status = _SIGINFO.unpack_from(_siginfo)
    if not pid:
        return NONE_READY
    us, uu, ss, su, rss = _RUSAGE.unpack_from(_rusage)
    return pid, _wait_status(code, status), us + uu / 1e6, ss + su / 1e6, rss


def _look_by_os() -> Ended:
    try:
        found = os.waitid(os.P_ALL, 0, _LOOK)
    except ChildProcessError:
        return NO_CHILD
    if found is None:
        return NONE_READY
    utime = stime = 0.0
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{found.si_pid}/stat", "rb") as f:
        fields = f.read().rpartition(b")")[2].split()
        tick = os.sysconf("SC_CLK_TCK")
        utime = (int(fields[11]) + int(fields[13])) / tick
        stime = (int(fields[12]) + int(fields[14])) / tick
    return found.si_pid, _wait_status(found.si_code, found.si_status), utime, stime, 0


def _wait_status(code: int, status: int) -> int:
    if code == os.CLD_EXITED:
        return (status & 0xFF) << 8
    return status | (0x80 if code == os.CLD_DUMPED else 0)


class _Title:
    """The memory of this process's argv, which ps shows; forked children have it at the same address."""

    start = 0
    size = 0


def find_title() -> None:
    """Find the argv area; call once, before any fork and any change of user."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/stat", "rb") as f:
        fields = f.read().rpartition(b")")[2].split()
        start, end = int(fields[45]), int(fields[46])
        if 0 < end - start < 1 << 20:
            _Title.start, _Title.size = start, end - start


def title_area() -> tuple[int, int]:
    """Its address and size in bytes; 0 bytes: there is none."""
    return _Title.start, _Title.size


def set_title(title: str) -> None:
    """Show ``title`` in ps, cut to the size of the argv area."""
    if _Title.size > 1:
        data = title.encode("utf-8", "replace")[: _Title.size - 1]
        ctypes.memmove(_Title.start, data.ljust(_Title.size, b"\0"), _Title.size)


def set_name(name: str) -> None:
    """The short name (15 bytes) that top and pgrep show."""
    _libc.prctl(_PR_SET_NAME, ctypes.c_char_p(name.encode()[:15]), 0, 0, 0)
