"""The rounds of all contenders as lines, and as one table. Pure.

Rule: ``ratio`` says how many times better lava is, whatever the unit: above 1 lava is ahead. It is the median over the rounds of
the quotient of lava's value and the peer's right after it. Without two values above zero there is none.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.line import Line, line, rounded, short
from benchmarks.peers.rows import Row

OURS = "lava"


@dataclass
class Taken:
    """What one contender took for one row, by round."""

    values: list[float] = field(default_factory=list)
    floors: list[dict[str, float]] = field(default_factory=list)
    note: str = ""
    version: str = ""


def ratio(row: Row, ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """How many times better ``ours`` are, round by round."""
    pairs = [(mine, other) for mine, other in zip(ours, theirs, strict=False) if mine > 0 and other > 0]
    return statistics.median(mine / other if row.more else other / mine for mine, other in pairs) if pairs else None


def lines(row: Row, taken: dict[str, Taken]) -> list[Line]:
    """One for each contender of the row, lava's first."""
    found = []
    for name, one in taken.items():
        made = line(f"beside_{row.name}_{name}", row.unit, one.values, (), f"{row.what}: {one.note}")
        made |= {"row": row.name, "contender": name, "how": one.note, "version": one.version}
        made["floors"] = {floor: rounded(statistics.median(each[floor] for each in one.floors)) for floor in one.floors[0]}
        lead = ratio(row, taken[OURS].values, one.values) if name != OURS and OURS in taken else None
        if lead is not None:
            made["ratio"] = rounded(lead)
        found.append(made)
    return found


def table(found: Sequence[Line]) -> str:
    """The lines of all rows as a table of text: a row each, a column for each contender, lava's lead in brackets."""
    names = list(dict.fromkeys(one["contender"] for one in found))
    rows: dict[str, dict[str, Line]] = {}
    for one in found:
        rows.setdefault(one["row"], {})[one["contender"]] = one
    cells = [["", "unit", *names]]
    for row, by_name in rows.items():
        unit = next(iter(by_name.values()))["unit"]
        cells.append([row, unit, *(_cell(by_name.get(name)) for name in names)])
    widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([*text, "(x 2.0): lava does twice as well in the same rounds; below 1 the other is ahead. Medians."])


def _cell(one: Line | None) -> str:
    if one is None:
        return "-"
    return short(one["value"]) + (f" (x {short(one['ratio'])})" if "ratio" in one else "")
