"""Backfill on one pool of equal slots, for simulations: FCFS, EASY (Lifka 1995), conservative (Mu'alem & Feitelson 2001).

Rule: a start now never delays a promised start. EASY promises one to the head of the queue, conservative to every job, based on
the requested durations. Nothing is kept between two calls: promises are made again, in queue order.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from lavad.replay.profile import Held, Profile

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


def conservative(queue: Iterable[Waiting], running: Sequence[Held], now: float, free: int) -> Decision:
    """Each job in order is promised the earliest start that delays none before it; those that are promised now start."""
    return _reserve_all(queue, running, now, free, least=0)


def conservative_starts(queue: Iterable[Waiting], running: Sequence[Held], now: float, free: int) -> Decision:
    """The starts of ``conservative``, without the promises behind the last job that could start: faster for simulations."""
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
        # free slots only shrink here: a job finds no earlier start than one before it that was as large and no longer
        duration, after = found.get(job.amount, (math.inf, now))
        time = profile.reserve_earliest(job.amount, job.duration, after if job.duration >= duration else now)
        if time is None:
            continue
        if job.duration <= duration or time > after:
            found[job.amount] = (job.duration, time)
        # a job of zero duration reserves nothing, yet two of them cannot use the same slots at one instant
        if time == now and job.amount <= free:
            free -= job.amount
            starts.append(job.key)
        else:
            promises[job.key] = time
    return Decision(starts, promises)


def in_order(running: Sequence[Held], now: float) -> Sequence[Held]:
    """Slots in use by expected end; what should have ended by now is expected to end within OVERDUE."""
    if not running or running[0].until > now:
        return running
    return sorted(held if held.until > now else held._replace(until=now + OVERDUE) for held in running)
