"""How much of one resource is free at every time from now on: what reservations are made on.

Rule: a profile is a step function; its last step lasts for ever. Times are numbers of any one unit, `math.inf` among them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple


class Held(NamedTuple):
    """An amount in use until it is expected back. Sorts by that time."""

    until: float
    key: int
    amount: int


class Overbooked(ValueError):
    """More was to be reserved than is free."""


class Profile:
    """Free amounts over time.

    Finding costs a walk over the steps up to the answer, reserving a walk over the steps it covers; each reservation adds
    two steps at most.
    """

    __slots__ = ("_free", "_times")

    def __init__(self, now: float, free: int, held: Iterable[Held] = ()) -> None:
        """``free`` at once, and what is held when it comes back. What should be back by now has to be given a later time."""
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

    def steps(self) -> list[tuple[float, int]]:
        """(from when, how much is free), in order of time."""
        return list(zip(self._times, self._free, strict=True))

    def free_at(self, time: float) -> int:
        """What is free at a time; before the beginning of the profile it is what is free then."""
        return self._free[max(0, bisect_right(self._times, time) - 1)]

    def least_free(self, start: float, end: float) -> int:
        """What is free all the time from ``start`` until before ``end``; at ``start`` if there is nothing between."""
        first = max(0, bisect_right(self._times, start) - 1)
        return min(self._free[first : max(first + 1, bisect_left(self._times, end))])

    def find_start(self, amount: int, duration: float, after: float = -math.inf) -> float | None:
        """The earliest time, not before ``after``, from which ``amount`` is free for ``duration``. None: never."""
        at = self._find(amount, duration, max(0, bisect_right(self._times, after) - 1), after)
        return None if at is None else max(after, self._times[at])

    def reserve_earliest(self, amount: int, duration: float, after: float = -math.inf) -> float | None:
        """Reserve ``amount`` for ``duration`` at the earliest time found as by ``find_start``, which is returned."""
        at = self._find(amount, duration, max(0, bisect_right(self._times, after) - 1), after)
        if at is None:
            return None
        start = max(after, self._times[at])
        if duration > 0:
            self._add(start, start + duration, -amount)
        return start

    def _find(self, amount: int, duration: float, at: int, after: float) -> int | None:
        """The number of the step in which the earliest start lies."""
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

    def reserve(self, start: float, end: float, amount: int) -> None:
        """Take ``amount`` from ``start`` until before ``end``. Raises Overbooked, and changes nothing, if it is not free."""
        if start < end:
            if self.least_free(start, end) < amount:
                raise Overbooked(f"{amount} is more than {self.least_free(start, end)} from {start} to {end}")
            self._add(start, end, -amount)

    def release(self, start: float, end: float, amount: int) -> None:
        """Give back what was reserved, or the part of it from ``start`` on."""
        if start < end:
            self._add(start, end, amount)

    def _add(self, start: float, end: float, amount: int) -> None:
        first = self._cut(max(start, self._times[0]))
        last = self._cut(end)
        free = self._free
        for at in range(first, last):
            free[at] += amount
        self._join(last)
        self._join(first)

    def _cut(self, time: float) -> int:
        """The number of the step that begins at a time, made if there was none."""
        if time == math.inf:
            return len(self._times)
        at = bisect_left(self._times, time)
        if at == len(self._times) or self._times[at] != time:
            self._times.insert(at, time)
            self._free.insert(at, self._free[max(0, at - 1)])
        return at

    def _join(self, at: int) -> None:
        """A step that is like the one before it is none."""
        if 0 < at < len(self._times) and self._free[at] == self._free[at - 1]:
            del self._times[at]
            del self._free[at]
