"""Policies on one pool of equal slots that remember nothing, for simulations: FCFS, and EASY backfill (Lifka 1995).

Rule: a start now never delays a promised start: EASY promises one to the head of the queue, based on the requested durations.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from lavad.replay.profile import Held

OVERDUE = 1.0
"""Seconds within which a job past its expected end is assumed to end."""


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """A queued job: the slots it needs, and for how many seconds at most (`math.inf`: unknown)."""

    key: int
    amount: int
    duration: float


class Decision(msgspec.Struct, frozen=True, gc=False):
    """Keys of the jobs that start now, in queue order; and the promised starts of those that wait."""

    starts: list[int]
    promises: dict[int, float]


Policy = Callable[[Iterable[Waiting], Sequence[Held], float, int], Decision]
"""(queue in order, slots in use sorted by expected end, now, free slots) -> Decision."""


def fcfs(queue: Iterable[Waiting], running: Sequence[Held], now: float, free: int) -> Decision:
    """First come, first served: strictly in order, without promises."""
    starts = []
    for job in queue:
        if job.amount > free:
            break
        free -= job.amount
        starts.append(job.key)
    return Decision(starts, {})


def easy(queue: Iterable[Waiting], running: Sequence[Held], now: float, free: int) -> Decision:
    """EASY: in order until one job does not fit; it is promised the earliest time at which enough slots are free.

    A later job starts if it fits now and either ends by that time or uses only slots that are spare then.
    """
    line = iter(queue)
    starts: list[int] = []
    begun: list[Held] = []
    for head in line:
        if head.amount > free:
            break
        free -= head.amount
        starts.append(head.key)
        begun.append(Held(now + head.duration, head.key, head.amount))
    else:
        return Decision(starts, {})
    ends = in_order(running, now)
    promised, spare = promise(head.amount, heapq.merge(ends, sorted(begun)) if begun else ends, free)
    for job in line:
        if not free:
            break
        if job.amount > free:
            continue
        if now + job.duration > promised:
            if job.amount > spare:
                continue
            spare -= job.amount
        free -= job.amount
        starts.append(job.key)
    return Decision(starts, {head.key: promised} if promised < math.inf else {})


def promise(amount: int, ends: Iterable[Held], free: int) -> tuple[float, int]:
    """(time at which ``amount`` is free, amount that is spare then); (`math.inf`, 0): never."""
    time = math.inf
    for until, _, held in ends:
        if until > time:
            break
        free += held
        if time == math.inf and free >= amount:
            time = until
    return (time, free - amount) if time < math.inf else (math.inf, 0)


def in_order(running: Sequence[Held], now: float) -> Sequence[Held]:
    """Slots in use by expected end; what should have ended by now is expected to end within OVERDUE."""
    if not running or running[0].until > now:
        return running
    return sorted(held if held.until > now else held._replace(until=now + OVERDUE) for held in running)
