"""Times, sizes and long lines as LSF prints them. Amounts are in KB unless a name says otherwise.

Rule: times are those of the host that lavad runs on; day and month names are those of the C locale.
"""

from __future__ import annotations

import math
import time
from functools import lru_cache

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def joined(*cells: str) -> str:
    """Columns side by side; a space stands between two that would run together, as what is in them is wider than they are."""
    row = ""
    for cell in cells:
        row += f" {cell}" if row[-1:].strip() and cell[:1].strip() else cell
    return row


def short_time(at: float) -> str:
    """``Nov 20 11:33``, the column of a list."""
    return _short_time(int(at) // 60)


@lru_cache(maxsize=100_000)
def _short_time(minute: int) -> str:
    t = time.localtime(minute * 60)
    return f"{_MONTHS[t.tm_mon]} {t.tm_mday:2d} {t.tm_hour:02d}:{t.tm_min:02d}"


def full_time(at: float) -> str:
    """``Fri Nov 20 11:33:50``, the beginning of a line of ``-l``."""
    t = time.localtime(at)
    return f"{_DAYS[t.tm_wday]} {_MONTHS[t.tm_mon]} {t.tm_mday:2d} {t.tm_hour:02d}:{t.tm_min:02d}:{t.tm_sec:02d}"


def time_with_year(at: float) -> str:
    """``Fri Nov 20 11:33:50 2026``."""
    return f"{full_time(at)} {time.localtime(at).tm_year}"


def wide_time(at: float) -> str:
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


_PREFIXES = "KMGTPEZ"


def bytes_text(kb: float) -> str:
    """``12 Mbytes``, ``1.2 Gbytes``: as ``bjobs -l`` and ``-o`` show memory."""
    if 0 < kb < 1024:
        return f"{int(kb)} Kbytes"
    if kb < 1024**2:
        return f"{int(kb / 1024)} Mbytes"
    value, at = _scaled(kb)
    return f"{value:.1f} {_PREFIXES[at]}bytes"


def _scaled(kb: float) -> tuple[float, int]:
    at = 0
    while kb >= 1024 and at < len(_PREFIXES) - 1:
        kb /= 1024
        at += 1
    return kb, at


def unit_text(kb: float, unit: str) -> str:
    """A size in the unit of ``-o field::UNIT``: two decimals, the third rounded up; ``S`` chooses the unit itself."""
    if unit == "S":
        value, at = _scaled(kb)
        return f"{value:.1f}{_PREFIXES[at]}" if at else f"{int(value)}K"
    at = _PREFIXES.index(unit[0])
    value = math.ceil(round(kb / 1024**at * 100, 6)) / 100
    return f"{value:.2f}".rstrip("0").rstrip(".") + unit[0]


def limit_text(kb: int) -> str:
    """``20000 K``, ``48.8 G``: a limit, scaled once it no longer fits five digits."""
    if kb < 100_000:
        return f"{kb} K"
    value, at = _scaled(kb)
    return f"{value:.1f} {_PREFIXES[at]}"


def mb_text(mb: float) -> str:
    """``900M``, ``23G``, ``1.4T``: free memory and disk of a host, from MB, in at most five characters."""
    if mb < 1024:
        return f"{mb:.0f}M"
    gb = mb / 1024
    if gb < 1024:
        return f"{gb:.1f}G" if gb < 10 else f"{gb:.0f}G"
    return f"{gb / 1024:.1f}T"


def max_text(mb: int) -> str:
    """``24105M``, ``503.6G``: what a host has, as lshosts prints it; ``-`` for nothing known."""
    if mb <= 0:
        return "-"
    if mb < 100_000:
        return f"{mb}M"
    gb = mb / 1024
    return f"{gb:.1f}G" if gb < 10_000 else f"{gb / 1024:.1f}T"


WIDTH = 79
INDENT = " " * 21
_REST = WIDTH - len(INDENT)
RULE = "-" * 78 + "\n"


def wrap(text: str, unformatted: bool = False) -> str:
    """The lines of a paragraph; a text that fills its last line is followed by an indented empty one (LSF's way)."""
    if unformatted or len(text) < WIDTH:
        return text + "\n"
    lines = [text[:WIDTH]]
    at = WIDTH
    while len(lines[-1]) == WIDTH:
        at += text.startswith(" ", at)
        lines.append(INDENT + text[at : at + _REST])
        at += _REST
    return "\n".join(lines) + "\n"
