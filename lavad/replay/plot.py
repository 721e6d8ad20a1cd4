"""A picture of simulated runs as SVG text: slots in use and jobs waiting over time, and how long jobs waited.

Rule: a curve has at most one point a pixel column; the file does not grow with the trace.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from xml.sax.saxutils import escape

from lavad.replay.simulate import Run

WIDTH, HEIGHT, LEFT, TOP, GAP = 900, 150, 80, 50, 60
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")

Points = list[tuple[float, float]]


def draw(title: str, runs: Mapping[str, Sequence[Run]], slots: int) -> str:
    """The picture; ``runs`` by name of their policy, none of them empty."""
    begin = min(run.job.submit for part in runs.values() for run in part)
    end = max(run.end for part in runs.values() for run in part)
    days = max(1e-9, (end - begin) / 86400)
    busy = {name: over_time(_held(part), begin, end) for name, part in runs.items()}
    queue = {name: over_time(_queued(part), begin, end) for name, part in runs.items()}
    waits = {name: distribution([run.wait for run in part]) for name, part in runs.items()}
    panels = [
        _panel(0, "slots in use", busy, slots, f"{days:.4g} days"),
        _panel(1, "jobs waiting", queue, _top(queue), f"{days:.4g} days"),
        _panel(2, "wait in hours (log scale), jobs in the order of their waits", waits, _top(waits), "100 % of jobs", log=True),
    ]
    height = TOP + 3 * (HEIGHT + GAP)
    names = "".join(
        f'<text x="{LEFT + 130 * at}" y="38" fill="{COLOURS[at % len(COLOURS)]}">{escape(name)}</text>'
        for at, name in enumerate(runs)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 30}" height="{height}" '
        'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>{names}\n' + "\n".join(panels) + "\n</svg>\n"
    )


def over_time(changes: list[tuple[float, int]], begin: float, end: float) -> Points:
    """Mean levels in each column of the picture, from (time, change); both axes in data, x as a part of 1."""
    width = (end - begin) / WIDTH or 1.0
    area = [0.0] * (WIDTH + 1)
    changes.sort()
    levels = accumulate(change for _, change in changes)
    for (start, _), level, (stop, _) in zip(changes, levels, [*changes[1:], (end, 0)], strict=True):
        _spread(area, (start - begin) / width, (stop - begin) / width, level)
    return [(column / WIDTH, area[column]) for column in range(WIDTH)]


def _spread(area: list[float], start: float, stop: float, level: int) -> None:
    """Add a level to the columns between two places, each by the part of it that is covered."""
    if level == 0 or start >= stop:
        return
    first, last = int(start), min(int(stop), WIDTH)
    if first == last:
        area[first] += level * (stop - start)
        return
    area[first] += level * (first + 1 - start)
    for column in range(first + 1, last):
        area[column] += level
    area[last] += level * (stop - last)


def distribution(waits: Sequence[float]) -> Points:
    """The waits in hours, shortest first, against the part of jobs that waited no longer."""
    ranked = sorted(waits)
    count = min(WIDTH, len(ranked))
    return [((at + 1) / count, ranked[(at + 1) * len(ranked) // count - 1] / 3600) for at in range(count)]


def _held(runs: Sequence[Run]) -> list[tuple[float, int]]:
    return [(run.start, run.job.slots) for run in runs] + [(run.end, -run.job.slots) for run in runs]


def _queued(runs: Sequence[Run]) -> list[tuple[float, int]]:
    return [(run.job.submit, 1) for run in runs] + [(run.start, -1) for run in runs]


def _top(curves: Mapping[str, Points]) -> float:
    return max(y for points in curves.values() for _, y in points) or 1.0


def _panel(at: int, title: str, curves: Mapping[str, Points], top: float, right: str, log: bool = False) -> str:
    base = TOP + at * (HEIGHT + GAP) + HEIGHT + 20
    lines = [
        f'<text x="{LEFT}" y="{base - HEIGHT - 6}">{escape(title)}</text>',
        f'<path d="M{LEFT} {base - HEIGHT}V{base}H{LEFT + WIDTH}" fill="none" stroke="black"/>',
        f'<text x="{LEFT - 6}" y="{base - HEIGHT + 10}" text-anchor="end">{top:.4g}</text>',
        f'<text x="{LEFT - 6}" y="{base}" text-anchor="end">0</text>',
        f'<text x="{LEFT + WIDTH}" y="{base + 16}" text-anchor="end">{escape(right)}</text>',
    ]
    for number, points in enumerate(curves.values()):
        path = " ".join(f"{LEFT + x * WIDTH:.1f},{base - HEIGHT * _level(y, top, log):.1f}" for x, y in points)
        colour = COLOURS[number % len(COLOURS)]
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-opacity="0.8"/>')
    return "\n".join(lines)


def _level(y: float, top: float, log: bool) -> float:
    """How high up, as a part of 1; on the logarithmic axis 36 s is where it begins to rise."""
    return math.log1p(y * 100) / math.log1p(top * 100) if log else y / top
