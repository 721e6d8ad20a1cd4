"""Sizes as LSF prints them. Amounts are in KB unless a name says otherwise."""

from __future__ import annotations

import math

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
