"""What a service class has to do at one moment, and how many of its jobs should run at once for the goals that it pursues then.

What a job is expected to take is its estimate or its run limit (``seconds_of``), else what jobs of the class have taken, and
while nothing is known as long as the one that has run longest has run by now. So does LSF, but for the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from config.model.guarantees import Goal, ServiceClass
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.pace import Pace
from lavad.core.job.spec import Spec
from lavad.core.rules.goals.optimum import SHORTEST, Work, optimum_of

Waiting = Iterable[tuple[int, int | None]]
"""Numbers of jobs, with the seconds that each of them is expected to take (None: unknown)."""
Running = Iterable[tuple[float, int | None]]
"""Of each started job when it was dispatched, and the seconds that it is expected to take (None: unknown)."""


def seconds_of(spec: Spec) -> int | None:
    """What a job is expected to take: its estimate, if its run limit is not less, else that (LSF); None: unknown."""
    return min((seconds for seconds in (spec.estimate, spec.limits.run) if seconds), default=None)


def work_of(waiting: Waiting, running: Running, pace: Pace | None, now: float) -> Work:
    """What is to do; ``pace``: of the class, ``now``: seconds since the epoch."""
    started = [(max(0.0, now - at), expected) for at, expected in running]
    known = pace.seconds if pace is not None else max((elapsed for elapsed, _ in started), default=0.0)
    guess = max(SHORTEST, known)
    jobs, seconds = 0, 0.0
    for count, expected in waiting:
        jobs += count
        seconds += count * (guess if expected is None else expected)
    ends = sorted(max(0.0, (guess if expected is None else expected) - elapsed) for elapsed, expected in started)
    return Work(jobs, max(SHORTEST, seconds / jobs) if jobs else guess, ends)


def elements_waiting(cluster: Cluster) -> Counter[int]:
    """Spec number to the elements of arrays that may start, beyond the one for which the array stands among pending jobs."""
    found: Counter[int] = Counter()
    for array in cluster.arrays.rows.values():
        if array.may_start:
            found[array.spec] += len(array.startable) - 1
    return found


class Clock(NamedTuple):
    """Of time windows, as RUN_WINDOW has them: whether one is open, and in how many seconds it changes (None: never)."""

    is_open: Callable[[str], bool]
    next_change: Callable[[str], int | None]


def pursued(service: ServiceClass, clock: Clock) -> list[Goal]:
    """The goals of a class whose windows are open."""
    return [goal for goal in service.goals if clock.is_open(goal.windows)]


def seconds_left(goal: Goal, clock: Clock) -> float:
    """Until the window of a goal that is pursued closes; inf: never."""
    seconds = clock.next_change(goal.windows)
    return float("inf") if seconds is None else seconds


def optimum_now(goals: Iterable[Goal], work: Work, clock: Clock) -> int:
    """How many jobs should run at once for goals that are pursued: the largest number of them (LSF)."""
    return max((optimum_of(goal, work, seconds_left(goal, clock)) for goal in goals), default=0)
