"""Plots as SVG text: dots on a logarithmic axis, bars from zero, lines through points. Pure; nothing is needed to draw them.

Colours are those that people who see few of them can tell apart; each dot, bar and line also has its name or number in words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

from benchmarks.line import short

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
WIDTH, LEFT, RIGHT, TOP = 760, 190, 40, 64
ROW = 26
PLOT = 300
"""Height of a plot of lines."""
_GREY, _DARK = "#d9d9d9", "#222222"


Rows = Mapping[str, Mapping[str, float]]


def dots(title: str, unit: str, rows: Rows, names: Sequence[str], mark: float | None = None) -> str:
    """A row for each key, a dot for each of the series' ``names``, of which each has its colour; ``mark``: a line at this value.

    What is not above zero is left out, and so is a row without any.
    """
    rows = {name: kept for name, row in rows.items() if (kept := {one: value for one, value in row.items() if value > 0})}
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}
    values = [value for row in rows.values() for value in row.values()] + ([mark] if mark else [])
    low, high = decades(values)
    at = _log(low, high, LEFT, WIDTH - RIGHT)
    height = TOP + ROW * len(rows) + 44
    body = [*_upright(low, high, at, height - 40), _text(WIDTH - RIGHT, height - 8, unit, "end")]
    if mark is not None:
        body.append(_line(at(mark), TOP - 6, at(mark), height - 40, _DARK, dashed=True))
    for number, (name, row) in enumerate(rows.items()):
        y = TOP + ROW * number + ROW / 2
        body += [_text(LEFT - 12, y + 4, name, "end"), _line(LEFT, y, WIDTH - RIGHT, y, _GREY)]
        for one, value in row.items():
            body.append(_dot(at(value), y, 6, colours[one], f"{name}, {one}: {short(value)} {unit}"))
    shown = {one for row in rows.values() for one in row}
    return _page(title, height, [*_legend({name: colour for name, colour in colours.items() if name in shown}), *body])


def bars(title: str, unit: str, values: Mapping[str, float]) -> str:
    """A bar for each name, its number at its end."""
    most = max(values.values(), default=0.0) or 1.0
    height = TOP + ROW * len(values) + 20
    body = []
    for number, (name, value) in enumerate(values.items()):
        y, wide = TOP + ROW * number, (WIDTH - LEFT - RIGHT - 80) * value / most
        body += [
            _text(LEFT - 12, y + 17, name, "end"),
            f'<rect x="{LEFT}" y="{y + 4}" width="{wide:.1f}" height="{ROW - 8}" fill="{COLOURS[0]}"/>',
            _text(LEFT + wide + 8, y + 17, f"{short(value)} {unit}"),
        ]
    return _page(title, height, body)


def lines(title: str, across: str, unit: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """A line for each series through its points, both axes logarithmic; ``across`` is what the lower one counts."""
    points = [point for one in series.values() for point in one]
    left, right = decades([x for x, _ in points])
    low, high = decades([y for _, y in points])
    height = TOP + PLOT + 56
    at, up = _log(left, right, 80, WIDTH - 170), _log(low, high, TOP + PLOT, TOP)
    body = [*_upright(left, right, at, TOP + PLOT), _text((80 + WIDTH - 170) / 2, height - 12, across, "middle")]
    for exponent in range(low, high + 1):
        y = up(10.0**exponent)
        body += [_line(80, y, WIDTH - 170, y, _GREY), _text(72, y + 4, short(10.0**exponent), "end")]
    body.append(_text(72, TOP - 12, unit, "end"))
    labels = apart([up(one[-1][1]) for one in series.values()])
    for number, (name, one) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{at(x):.1f},{up(y):.1f}" for x, y in one)
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for x, y in one:
            body.append(_dot(at(x), up(y), 4, colour, f"{name}, {short(x)} {across}: {short(y)} {unit}"))
        body.append(_text(at(one[-1][0]) + 10, labels[number] + 4, name, colour=colour))
    return _page(title, height, body)


def apart(places: Sequence[float], room: float = 16.0) -> list[float]:
    """The places, each moved down as far as needed for all to be so far apart, in their order."""
    found, free = list(places), -math.inf
    for at in sorted(range(len(places)), key=lambda number: places[number]):
        found[at] = max(places[at], free)
        free = found[at] + room
    return found


def decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around values above zero, at least one apart."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _log(low: int, high: int, start: float, end: float) -> Callable[[float], float]:
    """From a value to its place between ``start`` (10**low) and ``end`` (10**high)."""
    return lambda value: start + (math.log10(value) - low) / (high - low) * (end - start)


def _upright(low: int, high: int, at: Callable[[float], float], bottom: float) -> list[str]:
    """The lines of the powers of ten, with their numbers below."""
    found = []
    for exponent in range(low, high + 1):
        x = at(10.0**exponent)
        found += [_line(x, TOP - 6, x, bottom, _GREY), _text(x, bottom + 16, short(10.0**exponent), "middle")]
    return found


def _legend(colours: Mapping[str, str]) -> list[str]:
    found, x = [], LEFT
    for name, colour in colours.items():
        found += [f'<circle cx="{x}" cy="42" r="6" fill="{colour}"/>', _text(x + 12, 46, name)]
        x += 34 + 8 * len(name)
    return found


def _dot(x: float, y: float, size: int, colour: str, said: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}"><title>{escape(said)}</title></circle>'


def _text(x: float, y: float, words: str, anchor: str = "start", colour: str = _DARK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'


def _line(x: float, y: float, to_x: float, to_y: float, colour: str, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="4 4"' if dashed else ""
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"{dash}/>'


def _page(title: str, height: float, body: Sequence[str]) -> str:
    space = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}"'
    head = f'<svg {space} role="img" font-family="sans-serif" font-size="13">'
    named = f"<title>{escape(title)}</title>"
    ground = f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>'
    heading = f'<text x="16" y="24" font-size="16" font-weight="bold" fill="{_DARK}">{escape(title)}</text>'
    return "\n".join([head, named, ground, heading, *body, "</svg>", ""])
