"""The optimum number of running jobs of a service class, and when its jobs will be done: pure numbers.

Source: "Time-based service classes" and "Time-based SLA examples" of the LSF administration guide (10.1), lsb.serviceclasses(5).
LSF names what it works out and not how. Here a velocity goal is its number of jobs; a throughput goal is Little's law (jobs that
run = jobs an hour times hours that each takes); a deadline is the least number of slots in which the jobs that wait, one after
the other in each slot and each as long as the mean, are done when the window closes. Whoever pursues several goals at once runs
the largest number of jobs (LSF).

Units: seconds and jobs. A parallel job counts as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from config.model.guarantees import Goal

HOUR = 3600
SHORTEST = 1.0
"""Seconds that a job is taken to run at least."""


class Work(NamedTuple):
    """What a service class has to do at one moment."""

    waiting: int
    """Jobs that may start."""
    seconds: float
    """What one of them takes in the mean, above 0."""
    ends: Sequence[float]
    """Seconds until each of its started jobs is expected to be over, 0.0 for what is overdue; ascending."""


def optimum_of(goal: Goal, work: Work, left: float) -> int:
    """How many jobs of the class should run at once for a goal; ``left``: seconds until its window closes (of a deadline)."""
    if goal.kind == "velocity":
        return goal.number
    if goal.kind == "throughput":
        return max(1, ceil(goal.number * work.seconds / HOUR))
    return _for_deadline(work, left)


def _for_deadline(work: Work, left: float) -> int:
    """The least number of slots that suffice: first those of started jobs, the next to be free first, then further ones."""
    todo = work.waiting
    if not todo:
        return len(work.ends)
    for at, end in enumerate(work.ends):
        todo -= _one_after_the_other(left - end, work.seconds)
        if todo <= 0:
            return at + 1
    each = _one_after_the_other(left, work.seconds)
    return len(work.ends) + (min(todo, -(-todo // each)) if each else work.waiting)


def _one_after_the_other(seconds: float, each: float) -> int:
    """How many jobs a slot takes in so many seconds."""
    return max(0, int((seconds + 1e-6) // each))


def is_on_time(goal: Goal, work: Work, left: float, rate: float) -> bool:
    """Whether a goal that is pursued is being reached; ``rate``: jobs that end in an hour."""
    if goal.kind == "deadline":
        return done_after(work, max(1, len(work.ends))) <= left
    if not work.waiting or len(work.ends) >= optimum_of(goal, work, left):
        return True
    return goal.kind == "throughput" and rate >= goal.number


def done_after(work: Work, slots: int) -> float:
    """Seconds until all jobs are over, with so many at once (at least 1), and those that have started going on."""
    last = work.ends[-1] if work.ends else 0.0
    if not work.waiting:
        return last
    free = [*work.ends, *[0.0] * max(0, slots - len(work.ends))][: max(1, slots)] or [0.0]
    low, high = 0.0, free[0] + work.waiting * work.seconds
    while high - low > 1.0:
        middle = (low + high) / 2
        if sum(_one_after_the_other(middle - begin, work.seconds) for begin in free) >= work.waiting:
            high = middle
        else:
            low = middle
    return max(high, last)
