"""How often Python looks for reference cycles, in processes that keep a whole cluster or many events in memory.

Rule: a record has no cycles, and there may be a million. With Python's own thresholds, made for small programs, a third of the
time in which jobs are submitted or loaded is spent on looks at them that find nothing.
"""

from __future__ import annotations

import gc

THRESHOLDS = (50_000, 20, 50)
"""New containers until the youngest are looked at, and how many such looks until the older ones are."""


def look_rarely() -> None:
    """Called once, at the start of a process."""
    gc.set_threshold(*THRESHOLDS)
