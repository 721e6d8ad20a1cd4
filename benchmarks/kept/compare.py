"""Figures of now beside kept ones: what was lost. Pure.

Rule: absolute figures move with the machine and its load, so what is compared is the ratio to the floor, to the peer or to SQLite
of the same round. Sizes in memory and on disk are compared as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.line import Line

LIMIT = 0.3
"""Share of a figure that may be lost between two runs."""
RATES = frozenset({"jobs/s", "parts/s"})
SIZES = frozenset({"bytes", "MB"})


@dataclass(frozen=True)
class Compared:
    """One number of a figure that can be compared."""

    metric: str
    what: str
    value: float
    more: bool
    """Whether more is better."""


@dataclass(frozen=True)
class Loss:
    """What is worse than it was."""

    kept: Compared
    now: Compared

    @property
    def share(self) -> float:
        """How much worse: of a rate what is missing, of a time or size what it has grown by."""
        quotient = self.now.value / self.kept.value
        return 1 - quotient if self.kept.more else quotient - 1

    def __str__(self) -> str:
        now, kept = (f"{one.value:.3g}" for one in (self.now, self.kept))
        return f"{self.kept.metric}: {self.share * 100:.0f} % worse: {self.kept.what} {now} now, {kept} kept"


def numbers(one: Line) -> Iterable[Compared]:
    """What of a figure can be compared; nothing of one without a floor."""
    metric, unit = one["metric"], one["unit"]
    if "contender" in one:
        if "ratio" in one:
            yield Compared(metric, f"lava's lead on {one['contender']}", one["ratio"], more=True)
    elif "ratio" in one:
        yield Compared(metric, "times its floor", one["ratio"], more=unit in RATES)
    elif unit in SIZES:
        yield Compared(metric, unit, one["value"], more=False)
    if "to_sqlite" in one:
        yield Compared(metric, "times SQLite's", one["to_sqlite"], more=False)


def losses(kept: Sequence[Line], now: Sequence[Line], limit: float = LIMIT) -> list[Loss]:
    """Those of ``limit`` or more, of what both have."""
    before = {(one.metric, one.what): one for line in kept for one in numbers(line)}
    found = []
    for one in (one for line in now for one in numbers(line)):
        known = before.get((one.metric, one.what))
        if known is not None and known.value > 0:
            loss = Loss(known, one)
            if round(loss.share, 9) >= limit:
                found.append(loss)
    return found


def in_common(kept: Sequence[Line], now: Sequence[Line]) -> int:
    """How many numbers both have."""
    before, after = ({(one.metric, one.what) for line in lines for one in numbers(line)} for lines in (kept, now))
    return len(before & after)


def better(first: Sequence[Line], again: Sequence[Line]) -> list[Line]:
    """The figures of ``first``, each replaced by that of ``again`` where its first comparable number is better."""
    second = {line["metric"]: line for line in again}
    return [_better(line, second.get(line["metric"], line)) for line in first]


def _better(one: Line, other: Line) -> Line:
    for mine, others in zip(numbers(one), numbers(other), strict=False):
        if mine.value != others.value:
            return other if (others.value > mine.value) == mine.more else one
    return one
