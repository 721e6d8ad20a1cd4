"""Measures of simulated runs: waits, slowdowns, utilization and fairness between users; as records, text and JSON.

Rule: all figures are of the jobs that were simulated; an empty run has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from lavad.replay.simulate import Run

SHORTEST = 10.0
"""Seconds: the run time below which a slowdown no longer grows."""
PERCENTS = (50, 90, 95, 99, 100)


class UserMeasures(msgspec.Struct, frozen=True):
    """One user's part of a run."""

    user: int | str
    jobs: int
    mean_wait: float
    mean_bounded_slowdown: float
    slot_seconds: float


class Measures(msgspec.Struct, frozen=True):
    """One run. Times in seconds, utilization as a part of 1, percentiles as {"50": …}; ``fairness`` is Jain's index of
    the users' mean bounded slowdowns (1: all fared alike; 1/users: one bore it all)."""

    jobs: int
    mean_wait: float
    mean_bounded_slowdown: float
    utilization: float
    makespan: float
    wait_percentiles: dict[str, float]
    bounded_slowdown_percentiles: dict[str, float]
    fairness: float
    users: list[UserMeasures]


def bounded_slowdown(wait: float, run: float) -> float:
    """(wait + run) / run, with run at least SHORTEST; seconds (Feitelson)."""
    return max(1.0, (wait + run) / max(SHORTEST, run))


def slowdown_of(run: Run) -> float:
    """The bounded slowdown of a job."""
    return bounded_slowdown(run.wait, run.job.run)


def measure(runs: Sequence[Run], slots: int) -> Measures:
    """The figures of a run on a machine of so many slots. ValueError if nothing ran."""
    if not runs:
        raise ValueError("nothing ran")
    makespan = max(run.end for run in runs) - min(run.job.submit for run in runs)
    used = sum(run.job.slots * run.job.run for run in runs)
    users = _by_user(runs)
    return Measures(
        jobs=len(runs),
        mean_wait=_mean(runs, lambda run: run.wait),
        mean_bounded_slowdown=_mean(runs, slowdown_of),
        utilization=used / (slots * makespan) if makespan else 0.0,
        makespan=makespan,
        wait_percentiles=percentiles([run.wait for run in runs]),
        bounded_slowdown_percentiles=percentiles([slowdown_of(run) for run in runs]),
        fairness=jain([user.mean_bounded_slowdown for user in users]),
        users=users,
    )


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """By nearest rank: the smallest value that so many percent of all do not exceed."""
    ranked = sorted(values)
    return {str(percent): ranked[max(0, -(-percent * len(ranked) // 100) - 1)] for percent in PERCENTS}


def jain(values: Sequence[float]) -> float:
    """Jain's fairness index of positive values."""
    return math.fsum(values) ** 2 / (len(values) * math.fsum(value * value for value in values))


def _mean(runs: Sequence[Run], value: Callable[[Run], float]) -> float:
    return math.fsum(value(run) for run in runs) / len(runs)


def _by_user(runs: Sequence[Run]) -> list[UserMeasures]:
    parts: dict[int | str, list[Run]] = {}
    for run in runs:
        parts.setdefault(run.job.user, []).append(run)
    return [
        UserMeasures(
            user,
            len(part),
            _mean(part, lambda run: run.wait),
            _mean(part, slowdown_of),
            sum(run.job.slots * run.job.run for run in part),
        )
        for user, part in sorted(parts.items(), key=lambda item: _place(item[0]))
    ]


def _place(user: int | str) -> tuple[int, str]:
    return (user, "") if isinstance(user, int) else (-1, user)


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
