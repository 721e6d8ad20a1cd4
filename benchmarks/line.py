"""One figure as one JSON line, and the rounds that it is the median of.

Rule: a floor is taken in the same round as what it is compared with, right before it; ``ratio`` is the median of the
rounds' ratios, since absolute figures move with what else the machine does.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Line = dict[str, Any]
ROUNDS = 3


def line(metric: str, unit: str, values: Sequence[float], floors: Sequence[float] = (), note: str = "") -> Line:
    """``values`` (and ``floors``) of the rounds, in the unit."""
    found: Line = {
        "metric": metric,
        "value": rounded(statistics.median(values)),
        "unit": unit,
        "n": len(values),
        "min": rounded(min(values)),
        "max": rounded(max(values)),
        "note": note,
    }
    if floors:
        found["floor"] = rounded(statistics.median(floors))
        found["ratio"] = rounded(statistics.median(value / floor for value, floor in zip(values, floors, strict=True)))
    return found


def rounded(value: float) -> float:
    """Four digits that count."""
    return float(f"{value:.4g}")


def short(value: float) -> str:
    """Three digits that count, thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def show(lines: Iterator[Line]) -> None:
    """Print the lines as they come."""
    for one in lines:
        print(json.dumps(one), flush=True)


def seconds(call: Callable[[], object]) -> float:
    """Wall time of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def best_of(call: Callable[[], object], count: int) -> float:
    """Median wall time of ``count`` calls, in seconds."""
    return statistics.median(seconds(call) for _ in range(count))
