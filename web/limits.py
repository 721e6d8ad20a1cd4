"""How often one may ask: a bucket for each user and each address, refilled by time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from web.problems import Problem

MOST_KEPT = 10_000


class Bucket:
    """``burst`` at once and ``each`` a second, by key; ``clock`` gives seconds."""

    def __init__(self, burst: float, each: float, clock: Callable[[], float]) -> None:
        self._burst = burst
        self._each = each
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> None:
        """One more; raises Problem where there are too many."""
        now = self._clock()
        left, at = self._left.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._each)
        self._left[key] = (max(left - 1, 0.0) if left >= 1 else left, now)
        if len(self._left) > MOST_KEPT:
            self._left.popitem(last=False)
        if left < 1:
            wait = max(1, round((1 - left) / self._each))
            raise Problem(429, f"Too many requests; try again in {wait} s", wait)
