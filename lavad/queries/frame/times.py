"""Times as LSF prints them, in the master's local time. Day and month names are the C locale's."""

from __future__ import annotations

import time
from functools import lru_cache

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def short(at: float) -> str:
    """``Nov 20 11:33``, the column of a list."""
    return _short(int(at) // 60)


@lru_cache(maxsize=100_000)
def _short(minute: int) -> str:
    t = time.localtime(minute * 60)
    return f"{_MONTHS[t.tm_mon]} {t.tm_mday:2d} {t.tm_hour:02d}:{t.tm_min:02d}"


def full(at: float) -> str:
    """``Fri Nov 20 11:33:50``, the beginning of a line of ``-l``."""
    t = time.localtime(at)
    return f"{_DAYS[t.tm_wday]} {_MONTHS[t.tm_mon]} {t.tm_mday:2d} {t.tm_hour:02d}:{t.tm_min:02d}:{t.tm_sec:02d}"


def year(at: float) -> str:
    """``Fri Nov 20 11:33:50 2026``."""
    return f"{full(at)} {time.localtime(at).tm_year}"


def wide(at: float) -> str:
    """``11/20-11:39:35``, the columns of ``bjobs -W``; ``-`` for none."""
    if not at:
        return "-"
    t = time.localtime(at)
    return f"{t.tm_mon:02d}/{t.tm_mday:02d}-{t.tm_hour:02d}:{t.tm_min:02d}:{t.tm_sec:02d}"


def hms(seconds: float) -> str:
    """``01:02:03``."""
    whole = max(int(seconds), 0)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def week_second(at: float) -> tuple[int, int]:
    """(weekday with Sunday 0, seconds since midnight), as ``core.lang.windows`` takes it."""
    t = time.localtime(at)
    return (t.tm_wday + 1) % 7, t.tm_hour * 3600 + t.tm_min * 60 + t.tm_sec
