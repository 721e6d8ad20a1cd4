"""When a GPU is idle, and when a job wastes its GPUs, in the words of its report and of bjobs -l."""

from __future__ import annotations

from collections.abc import Iterable

IDLE = 5
"""Percent of use below which a GPU is idle."""
LEAST = 60.0
"""Seconds of known use below which nothing is said of a GPU."""
WASTED = 0.8
"""The share of its time from which on an idle GPU is wasted."""


def sentence(gpus: Iterable[tuple[float, float]]) -> str:
    """``4 GPUs asked, 2 idle 97 % of the time``; "" where none is wasted. ``gpus``: of each, seconds of known use and idle."""
    shares = [idle / known if known >= LEAST else 0.0 for known, idle in gpus]
    wasted = [share for share in shares if share >= WASTED]
    if not wasted:
        return ""
    asked = f"{len(shares)} GPU{'s' if len(shares) > 1 else ''} asked"
    return f"{asked}, {len(wasted)} idle {100 * sum(wasted) / len(wasted):.0f} % of the time"
