"""Load indices: how lsload and bhosts print a value, and the table of thresholds of bjobs -l, bqueues -l and bhosts -l."""

from __future__ import annotations

from collections.abc import Mapping

from config.model.values import LOAD_INDICES, Thresholds
from lavad.core.site.conf import Conf
from lavad.queries.frame import formats

_HEADER = "           r15s   r1m  r15m   ut      pg    io   ls    it    tmp    swp    mem\n"
_CELLS = ((6, 3), (6, 3), (6, 3), (6, 3), (8, 5), (6, 3), (5, 2), (6, 3), (7, 3), (7, 3), (6, 3))
"""Width of each cell, and where its dash stands; a value ends one or two columns behind the dash."""


MB = frozenset({"tmp", "swp", "mem"})
"""Indices in MB."""


def site_indices(conf: Conf) -> list[str]:
    """Load indices that the site added: numeric resources with an interval, one value a host."""
    return [
        resource.name
        for resource in conf.resources
        if resource.kind == "numeric" and resource.interval and not resource.locations
    ]


def load_text(index: str, value: float) -> str:
    """A load index as lsload and bhosts print it: sizes from MB, ``ut`` in percent."""
    if index in MB:
        return formats.mb_text(value)
    if index == "ut":
        return f"{value * 100:.0f}%"
    if index in ("io", "ls", "it"):
        return f"{value:.0f}" if value < 100_000 else f"{value:.0e}"
    return f"{value:.1f}"


def threshold_table(conf: Conf, thresholds: Thresholds) -> str:
    """loadSched and loadStop for all indices."""
    rows = ((" loadSched", dict(thresholds.sched)), (" loadStop ", dict(thresholds.stop)))
    lines = [_HEADER]
    lines += [f"{title}{formats.joined(*map(_cell, LOAD_INDICES, _CELLS, [values] * 11))}\n" for title, values in rows]
    extra = site_indices(conf)
    if extra:
        widths = [max(len(name), 7) + 1 for name in extra]
        names = "".join(f"{name:>{width - 1}} " for name, width in zip(extra, widths, strict=True))
        lines.append(f"\n{'':10}{names}\n")
        for title, values in rows:
            cells = "".join(_site_cell(values.get(name), width) for name, width in zip(extra, widths, strict=True))
            lines.append(f"{title}{cells}\n")
    return "".join(lines)


def _site_cell(value: float | None, width: int) -> str:
    return f"{'-' if value is None else f'{value:.1f}':>{width - 2}}  "


def _cell(name: str, cell: tuple[int, int], values: Mapping[str, float]) -> str:
    width, dash = cell
    value = values.get(name)
    if value is None:
        return f"{'-':>{dash + 1}}".ljust(width)
    return f"{_value(name, value):>{dash + 2}}".ljust(width)


def _value(name: str, value: float) -> str:
    if name in MB:
        return f"{value:.0f}M" if value < 1024 else f"{value / 1024:.0f}G"
    if name == "ut":
        return f"{value:.1f}"
    return f"{value:.0f}" if name in ("ls", "it", "io") else f"{value:.1f}"
