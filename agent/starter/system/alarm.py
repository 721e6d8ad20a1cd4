"""A timer on CLOCK_BOOTTIME (timerfd_create(2)), which counts while the machine sleeps; the timeouts of poll() do not."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

from agent.starter.system.watch import Watch

_CLOCK_BOOTTIME = 7
_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_ABSOLUTE = 1
_EARLIEST = 1e-9
"""0 would disarm the timer."""

_libc = ctypes.CDLL(None, use_errno=True)


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class Alarm:
    """Wakes up the loop of a Watch at a set time. OSError where the kernel has no file for it."""

    def __init__(self, watch: Watch, rang: Callable[[], object] = lambda: None) -> None:
        self._watch = watch
        self._rang = rang
        self._fd: int = _libc.timerfd_create(_CLOCK_BOOTTIME, _NONBLOCK_CLOEXEC)
        if self._fd < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        watch.add(self._fd, self._read)

    def set(self, at: float) -> None:
        """Ring at this time (seconds of CLOCK_BOOTTIME), at once where that has passed; nothing else is set any more."""
        seconds, fraction = divmod(max(at, _EARLIEST), 1.0)
        value = _Itimerspec(_Timespec(0, 0), _Timespec(int(seconds), max(1, int(fraction * 1e9))))
        _libc.timerfd_settime(self._fd, _ABSOLUTE, ctypes.byref(value), None)

    def close(self) -> None:
        """It rings no more."""
        if self._fd >= 0:
            self._watch.remove(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _read(self, _: int) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return
        self._rang()
