"""How far a site of ``scale.py`` is at one moment, what came between two, and the table of all of it."""

from __future__ import annotations

import re
import statistics
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.line import short

_SAMPLE = re.compile(r"(\w+?)(?:_total)?(?:\{(.*)\})? (\S+)$")
_BOUND = re.compile(r'le="([^"]+)"')
ENDED, CYCLES, COMMITS = "lava_jobs_ended", "lava_cycle_seconds", "lava_commit_seconds"
OTHERS = ("hosts", "callers")
"""Processes of the benchmark itself: the pretended hosts, and this one."""


@dataclass(frozen=True)
class Spread:
    """Durations: how many, their sum in seconds, and how many up to each bound."""

    count: float = 0.0
    total: float = 0.0
    buckets: Mapping[float, float] = field(default_factory=dict)

    def since(self, before: Spread) -> Spread:
        """Those that came after."""
        buckets = {bound: count - before.buckets.get(bound, 0.0) for bound, count in self.buckets.items()}
        return Spread(self.count - before.count, self.total - before.total, buckets)

    def mean(self) -> float:
        """Milliseconds; 0 if there are none."""
        return 1000 * self.total / self.count if self.count else 0.0

    def most(self, part: float = 1.0) -> float:
        """The bound, in milliseconds, that so large a part of them is not above; 0 if there are none."""
        within = [bound for bound, count in sorted(self.buckets.items()) if count >= part * self.count]
        return 1000 * within[0] if self.count else 0.0


@dataclass(frozen=True)
class Page:
    """What lavad's page of metrics says."""

    ended: float
    cycles: Spread
    commits: Spread


def read_page(url: str) -> Page:
    """It is made again for each request."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        return parse_page(answer.read().decode())


def parse_page(text: str) -> Page:
    """Of the text of a page."""
    ended, found = 0.0, {CYCLES: Spread(), COMMITS: Spread()}
    for match in filter(None, map(_SAMPLE.match, text.splitlines())):
        name, labels, value = match[1], match[2] or "", float(match[3])
        if name == ENDED:
            ended += value
        kind, _, what = name.rpartition("_")
        if kind in found:
            one = found[kind]
            if what == "bucket" and (bound := _BOUND.search(labels)) is not None:
                found[kind] = Spread(one.count, one.total, {**one.buckets, float(bound[1]): value})
            elif what == "count":
                found[kind] = Spread(value, one.total, one.buckets)
            elif what == "sum":
                found[kind] = Spread(one.count, value, one.buckets)
    return Page(ended, found[CYCLES], found[COMMITS])


@dataclass(frozen=True)
class Mark:
    """How far it is at one moment: CPU seconds and resident bytes by process, bytes of the store and of what waits beside it."""

    clock: float
    page: Page
    cpu: Mapping[str, float]
    rss: Mapping[str, int]
    store: int
    wal: int
    machine: tuple[float, float]
    """Seconds that all cores together have worked, and were there."""
    asked: tuple[int, int]
    """Submits and queries that had their answers."""


@dataclass(frozen=True)
class Part:
    """What came between two marks. ``submits`` and ``queries``: milliseconds that callers waited."""

    first: Mark
    last: Mark
    submits: Sequence[float]
    queries: Sequence[float]

    @property
    def seconds(self) -> float:
        """Of wall time."""
        return self.last.clock - self.first.clock

    @property
    def ended(self) -> float:
        """Jobs."""
        return self.last.page.ended - self.first.page.ended

    def cores(self, name: str) -> float:
        """How much of a core a process had."""
        return (self.last.cpu.get(name, 0.0) - self.first.cpu.get(name, 0.0)) / self.seconds

    def cpu(self, name: str) -> float:
        """Milliseconds of CPU of a process for a job."""
        return 1000 * self.cores(name) * self.seconds / max(1.0, self.ended)

    def busy(self) -> float:
        """How much of the machine was at work, from 0 to 1."""
        (worked, there), (before, earlier) = self.last.machine, self.first.machine
        return (worked - before) / max(0.01, there - earlier)

    def cycles(self) -> Spread:
        """Of the scheduler, those that changed something."""
        return self.last.page.cycles.since(self.first.page.cycles)

    def commits(self) -> Spread:
        """Of the store."""
        return self.last.page.commits.since(self.first.page.commits)


def percentile(values: Sequence[float], part: float) -> float:
    """The value that so large a part of them is not above; 0 if there are none."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else 0.0


def median(values: Sequence[float]) -> float:
    """0 if there are none."""
    return statistics.median(values) if values else 0.0


def machine() -> tuple[float, float]:
    """Seconds that all cores together have worked, and were there, since the machine started."""
    times = [int(one) / 100 for one in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(times) - times[3] - times[4], sum(times)


def table(parts: Sequence[Part], whole: Part) -> str:
    """A column for each part, the last for all of it."""
    columns = [*parts, whole]
    names = [name for name in whole.last.cpu if any(part.cores(name) >= 0.005 for part in columns)]
    rows: list[tuple[str, Callable[[Part], float]]] = [
        ("jobs ended a second", lambda part: part.ended / part.seconds),
        *((f"cores: {name}", lambda part, name=name: part.cores(name)) for name in names),
        ("machine busy, %", lambda part: 100 * part.busy()),
        *((f"CPU of a job, ms: {name}", lambda part, name=name: part.cpu(name)) for name in names if name not in OTHERS),
        *((f"memory, MB: {name}", lambda part, name=name: part.last.rss.get(name, 0) / 1e6) for name in whole.last.rss),
        ("store, MB", lambda part: part.last.store / 1e6),
        ("its log (WAL), MB", lambda part: part.last.wal / 1e6),
        ("commits a second", lambda part: part.commits().count / part.seconds),
        ("commit, mean, ms", lambda part: part.commits().mean()),
        ("commit, 99 of 100 within, ms", lambda part: part.commits().most(0.99)),
        ("commit, all within, ms", lambda part: part.commits().most()),
        ("cycles a second", lambda part: part.cycles().count / part.seconds),
        ("cycle, mean, ms", lambda part: part.cycles().mean()),
        ("cycle, all within, ms", lambda part: part.cycles().most()),
        ("submits a second", lambda part: len(part.submits) / part.seconds),
        ("submit, p50, ms", lambda part: median(part.submits)),
        ("submit, p99, ms", lambda part: percentile(part.submits, 0.99)),
        ("query, p50, ms", lambda part: median(part.queries)),
        ("query, p99, ms", lambda part: percentile(part.queries, 0.99)),
    ]
    heads = [f"{short(part.last.clock - whole.first.clock)} s" for part in parts] + ["all"]
    cells = [[what, *(short(value(part)) for part in columns)] for what, value in rows]
    width = max(len(row[0]) for row in cells)
    widths = [max(len(row[at]) for row in [["", *heads], *cells]) for at in range(1, len(heads) + 1)]
    return "\n".join(
        "  ".join([row[0].ljust(width), *(cell.rjust(wide) for cell, wide in zip(row[1:], widths, strict=True))])
        for row in [["until", *heads], *cells]
    )
