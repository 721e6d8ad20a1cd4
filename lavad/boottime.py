"""The clock that leases and silences of hosts are measured by. What is stored or shown has the time of day."""

from __future__ import annotations

import time


def boottime() -> float:
    """CLOCK_BOOTTIME in seconds: it counts while the machine sleeps, and nobody can set it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
