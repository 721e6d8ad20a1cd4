"""Who of a queue starts now, and when the others may count on starting: FCFS, EASY and conservative backfill.

Rule: what starts now never delays a promise: EASY promises the head of the queue, conservative everyone, a time that was
computed from the durations asked for. Nothing is remembered between two calls; promises are computed anew, in queue order.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from lavad.sched.needs.profile import Held, Profile

OVERDUE = 1.0
"""Seconds within which a job that has outrun its own expected end is taken to end."""


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """A queued job: what it needs, and for how long at most (`math.inf`: nobody knows)."""

    key: int
    amount: int
    duration: float


class Decision(msgspec.Struct, frozen=True, gc=False):
    """Keys of the jobs that start now, in queue order; and for jobs that wait and have a promise, the time of it."""

    starts: list[int]
    promises: dict[int, float]


Policy = Callable[[Iterable[Waiting], Sequence[Held], float, int], Decision]
"""(queue in order, what is in use sorted by expected end, now, what is free now) -> Decision."""


def fcfs(queue: Iterable[Waiting], running: Sequence[Held], now: float, free: int) -> Decision:
    """Strictly in order: nobody overtakes. No promises."""
    starts = []
    for job in queue:
        if job.amount > free:
            break
        free -= job.amount
        starts.append(job.key)
    return Decision(starts, {})


def easy(queue: Iterable[Waiting], running: Sequence[Held], now: float, free: int) -> Decision:
    """In order until one does not fit: that head is promised the earliest time at which enough is free.

    A later job starts if it fits now and either ends by that time or takes only what is spare at that time.
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
    """When ``amount`` will be free, and what is spare then beyond it. For ever, and nothing: if never."""
    time = math.inf
    for until, _, held in ends:
        if until > time:
            break
        free += held
        if time == math.inf and free >= amount:
            time = until
    return (time, free - amount) if time < math.inf else (math.inf, 0)


def conservative(queue: Iterable[Waiting], running: Sequence[Held], now: float, free: int) -> Decision:
    """Each job in order is promised the earliest time at which it delays none before it; those promised now start."""
    return _reserve_all(queue, running, now, free, least=0)


def conservative_starts(queue: Iterable[Waiting], running: Sequence[Held], now: float, free: int) -> Decision:
    """The starts of ``conservative``, and only the promises met on the way: ends once no job of the queue fits."""
    queue = list(queue)
    return _reserve_all(queue, running, now, free, least=min((job.amount for job in queue), default=0))


def _reserve_all(queue: Iterable[Waiting], running: Sequence[Held], now: float, free: int, least: int) -> Decision:
    profile = Profile(now, free, in_order(running, now))
    starts: list[int] = []
    promises: dict[int, float] = {}
    found: dict[int, tuple[float, float]] = {}
    for job in queue:
        if free < least:
            break
        # what is free only shrinks here: a job finds no earlier start than one as large that asked for no more time
        duration, after = found.get(job.amount, (math.inf, now))
        time = profile.reserve_earliest(job.amount, job.duration, after if job.duration >= duration else now)
        if time is None:
            continue
        if job.duration <= duration or time > after:
            found[job.amount] = (job.duration, time)
        # what takes no time reserves nothing, yet two of them cannot hold the same slots in one instant
        if time == now and job.amount <= free:
            free -= job.amount
            starts.append(job.key)
        else:
            promises[job.key] = time
    return Decision(starts, promises)


def in_order(running: Sequence[Held], now: float) -> Sequence[Held]:
    """What is in use, by expected end; what should have ended by now is expected to within OVERDUE."""
    if not running or running[0].until > now:
        return running
    return sorted(held if held.until > now else held._replace(until=now + OVERDUE) for held in running)
