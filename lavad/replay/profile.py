"""The free amount of one resource as a function of time, for reservations.

Rule: a profile is a step function; its last step lasts for ever. Times are numbers of any one unit, `math.inf` among them.

The steps are kept in blocks, each with the most and the least that is free in it. To find a place skips blocks that are too low
throughout, or high enough throughout, and a reservation over whole blocks changes them as one: both take time that grows with the
square root of the steps.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

BLOCK = 256
"""Steps of a block at most."""


class Held(NamedTuple):
    """An amount in use until its expected end ``until``, by which it sorts."""

    until: float
    key: int
    amount: int


class _Block:
    """Steps that follow each other: when each begins, and what is free in it, less ``offset``."""

    __slots__ = ("free", "least", "most", "offset", "times")

    def __init__(self, times: list[float], free: list[int], offset: int = 0) -> None:
        self.times = times
        self.free = free
        self.offset = offset
        self.most = self.least = 0
        self.renew()

    def renew(self) -> None:
        """After a change of ``free``."""
        self.most, self.least = max(self.free), min(self.free)


class Profile:
    """Free amounts over time."""

    __slots__ = ("_begins", "_blocks")

    def __init__(self, now: float, free: int, held: Iterable[Held] = ()) -> None:
        """``free``: amount free now. ``held`` becomes free at its ``until``, which must be later than ``now``."""
        times: list[float] = [now]
        amounts: list[int] = [free]
        for until, _, amount in sorted(held):
            if until == math.inf:
                break
            free += amount
            if until <= times[-1]:
                amounts[-1] = free
            else:
                times.append(until)
                amounts.append(free)
        cuts = range(0, len(times), BLOCK // 2)
        self._blocks = [_Block(times[at : at + BLOCK // 2], amounts[at : at + BLOCK // 2]) for at in cuts]
        self._begins = [block.times[0] for block in self._blocks]

    def forget(self, before: float) -> None:
        """Nothing will be asked about the time before this any more."""
        first = max(0, bisect_right(self._begins, before) - 1)
        del self._blocks[:first], self._begins[:first]
        block = self._blocks[0]
        gone = bisect_right(block.times, before) - 1
        if gone > BLOCK // 4:
            del block.times[:gone], block.free[:gone]
            block.renew()
            self._begins[0] = block.times[0]

    def reserve_earliest(self, amount: int, duration: float, after: float = -math.inf) -> float | None:
        """Reserve ``amount`` for ``duration`` at the earliest time, not before ``after``, at which it is free throughout.

        Returns that time; None: never.
        """
        start = self._find(amount, duration, after)
        if start is not None and duration > 0:
            self._add(start, start + duration, -amount)
        return start

    def longest(self, amount: int) -> float:
        """The longest span throughout which ``amount`` is free."""
        longest = 0.0
        start: float | None = None
        for block in self._blocks:
            need = amount - block.offset
            if start is None and block.most < need:
                continue
            for time, free in zip(block.times, block.free, strict=True):
                if free >= need:
                    start = time if start is None else start
                elif start is not None:
                    longest = max(longest, time - start)
                    start = None
        return longest if start is None else math.inf

    def first_below(self, amount: int, after: float, before: float) -> tuple[float, int] | None:
        """(the first time of a span at which less than ``amount`` is free, what is free then); None: there is none."""
        at = max(0, bisect_right(self._begins, after) - 1)
        for block in islice(self._blocks, at, None):
            if max(block.times[0], after) >= before:
                return None
            need = amount - block.offset
            first = max(0, bisect_right(block.times, after) - 1)
            for time, free in zip(block.times[first:], block.free[first:], strict=True):
                if time >= before:
                    return None
                if free < need:
                    return max(time, after), free + block.offset
        return None

    def end(self, time: float) -> None:
        """Nothing is free from this time on."""
        self._cut(time)
        at = bisect_right(self._begins, time) - 1
        del self._blocks[at + 1 :], self._begins[at + 1 :]
        block = self._blocks[at]
        place = bisect_left(block.times, time)
        del block.times[place + 1 :], block.free[place + 1 :]
        block.free[place] = -block.offset
        block.renew()

    def _find(self, amount: int, duration: float, after: float) -> float | None:
        """The earliest start; None: never."""
        at = max(0, bisect_right(self._begins, after) - 1)
        skipped = max(0, bisect_right(self._blocks[at].times, after) - 1)
        start: float | None = None
        end = math.inf
        for block in islice(self._blocks, at, None):
            need = amount - block.offset
            if start is None:
                if block.most < need:  # also where it is that of a moment before: reservations leave no more
                    skipped = 0
                    continue
            elif block.times[0] >= end:
                return start
            elif block.least >= need:
                continue
            times, amounts = (block.times[skipped:], block.free[skipped:]) if skipped else (block.times, block.free)
            for time, free in zip(times, amounts, strict=True):
                if start is None:
                    if free >= need:
                        start = time if time > after else after
                        end = start + duration
                elif time >= end:
                    return start
                elif free < need:
                    start = None
            skipped = 0
        return start

    def _add(self, start: float, end: float, amount: int) -> None:
        self._cut(start)
        self._cut(end)
        at = bisect_right(self._begins, start) - 1
        while at < len(self._blocks) and self._begins[at] < end:
            block = self._blocks[at]
            first, last = bisect_left(block.times, start), bisect_left(block.times, end)
            if first == 0 and last == len(block.times):
                block.offset += amount
            else:
                free = block.free
                free[first:last] = [one + amount for one in free[first:last]]
                for edge in (last, first):
                    if 0 < edge < len(free) and free[edge] == free[edge - 1]:
                        del block.times[edge], free[edge]  # it is as the step before it
                if len(self._blocks) > 1:  # one alone is never skipped for what is free in it
                    block.renew()
            at += 1

    def _cut(self, time: float) -> None:
        """A step begins at a time from now on."""
        if time == math.inf:
            return
        at = bisect_right(self._begins, time) - 1
        block = self._blocks[at]
        place = bisect_left(block.times, time)
        if place < len(block.times) and block.times[place] == time:
            return
        block.times.insert(place, time)
        block.free.insert(place, block.free[place - 1])
        if len(block.times) > BLOCK:
            half = BLOCK // 2
            rest = _Block(block.times[half:], block.free[half:], block.offset)
            del block.times[half:], block.free[half:]
            block.renew()
            self._blocks.insert(at + 1, rest)
            self._begins.insert(at + 1, rest.times[0])
