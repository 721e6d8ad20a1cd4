"""Measures of several runs side by side, as text and as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from lavad.replay.measures import Measures

_ROWS: tuple[tuple[str, Callable[[Measures], str]], ...] = (
    ("jobs", lambda m: f"{m.jobs}"),
    ("mean wait (s)", lambda m: f"{m.mean_wait:.1f}"),
    ("median wait", lambda m: f"{m.wait_percentiles['50']:.1f}"),
    ("wait 95 %", lambda m: f"{m.wait_percentiles['95']:.1f}"),
    ("longest wait", lambda m: f"{m.wait_percentiles['100']:.1f}"),
    ("mean bounded slowdown", lambda m: f"{m.mean_bounded_slowdown:.2f}"),
    ("bounded slowdown 95 %", lambda m: f"{m.bounded_slowdown_percentiles['95']:.2f}"),
    ("utilization", lambda m: f"{100 * m.utilization:.2f} %"),
    ("makespan (s)", lambda m: f"{m.makespan:.0f}"),
    ("fairness over users", lambda m: f"{m.fairness:.3f}"),
)


def table(measures: Mapping[str, Measures], users: bool) -> list[str]:
    """A column a run; ``users``: a line for each of them below."""
    lines = [f"{'':24}" + "".join(f"{name:>16}" for name in measures)]
    for label, shown in _ROWS:
        lines.append(f"{label:24}" + "".join(f"{shown(figures):>16}" for figures in measures.values()))
    return lines + (_user_lines(measures) if users else [])


def _user_lines(measures: Mapping[str, Measures]) -> list[str]:
    """Mean wait and mean bounded slowdown of each user."""
    lines = ["", "mean wait / mean bounded slowdown by user"]
    rows = [{row.user: row for row in figures.users} for figures in measures.values()]
    for first in next(iter(measures.values())).users:
        cells = []
        for users in rows:
            row = users.get(first.user)
            cells.append(f"{'-' if row is None else f'{row.mean_wait:.0f} / {row.mean_bounded_slowdown:.1f}':>16}")
        lines.append(f"{f'{first.user} ({first.jobs} jobs)':24}" + "".join(cells))
    return lines


def fields(figures: Measures, users: bool) -> dict[str, object]:
    """For JSON; without ``users`` only how many they are."""
    found: dict[str, object] = msgspec.to_builtins(figures)
    return found if users else found | {"users": len(figures.users)}
