"""The free amount of one resource as a function of time, for reservations.

Rule: a profile is a step function; its last step lasts for ever. Times are numbers of any one unit, `math.inf` among them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple


class Held(NamedTuple):
    """An amount in use until its expected end ``until``, by which it sorts."""

    until: float
    key: int
    amount: int


class Profile:
    """Free amounts over time.

    A reservation takes time linear in the steps up to its end, and adds two steps at most.
    """

    __slots__ = ("_free", "_times")

    def __init__(self, now: float, free: int, held: Iterable[Held] = ()) -> None:
        """``free``: amount free now. ``held`` becomes free at its ``until``, which must be later than ``now``."""
        self._times: list[float] = [now]
        self._free: list[int] = [free]
        for until, _, amount in sorted(held):
            if until == math.inf:
                break
            free += amount
            if until <= self._times[-1]:
                self._free[-1] = free
            else:
                self._times.append(until)
                self._free.append(free)

    def reserve_earliest(self, amount: int, duration: float, after: float = -math.inf) -> float | None:
        """Reserve ``amount`` for ``duration`` at the earliest time, not before ``after``, at which it is free throughout.

        Returns that time; None: never.
        """
        at = self._find(amount, duration, max(0, bisect_right(self._times, after) - 1), after)
        if at is None:
            return None
        start = max(after, self._times[at])
        if duration > 0:
            self._add(start, start + duration, -amount)
        return start

    def _find(self, amount: int, duration: float, at: int, after: float) -> int | None:
        """The index of the step in which the earliest start lies; None: never."""
        times, free = self._times, self._free
        count = len(times)
        while at < count:
            if free[at] < amount:
                at += 1
                continue
            first = at
            end = (times[at] if times[at] > after else after) + duration
            at += 1
            while at < count and free[at] >= amount and times[at] < end:
                at += 1
            if at == count or times[at] >= end:
                return first
            # this step is too low
            at += 1
        return None

    def _add(self, start: float, end: float, amount: int) -> None:
        first = self._cut(max(start, self._times[0]))
        last = self._cut(end)
        free = self._free
        for at in range(first, last):
            free[at] += amount
        self._join(last)
        self._join(first)

    def _cut(self, time: float) -> int:
        """The index of the step that begins at a time; a step is split where none does."""
        if time == math.inf:
            return len(self._times)
        at = bisect_left(self._times, time)
        if at == len(self._times) or self._times[at] != time:
            self._times.insert(at, time)
            self._free.insert(at, self._free[max(0, at - 1)])
        return at

    def _join(self, at: int) -> None:
        """Remove a step that equals the one before it."""
        if 0 < at < len(self._times) and self._free[at] == self._free[at - 1]:
            del self._times[at]
            del self._free[at]
