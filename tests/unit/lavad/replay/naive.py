"""A second simulator, written from the rules alone, slow and plain: usage is always summed again over intervals.

Rule: imports nothing of what it checks but the record of a job.
"""

from __future__ import annotations

import numpy as np

from lavad.replay.swf import TraceJob

Interval = tuple[float, float, int]


def usage(intervals: list[Interval], time: float) -> int:
    return sum(size for start, end, size in intervals if start <= time < end)


def naive(jobs: list[TraceJob], slots: int, policy: str) -> dict[int, float]:
    """Start times by line."""
    starts: dict[int, float] = {}
    now = -1.0
    while len(starts) < len(jobs):
        ends = [starts[job.line] + job.run for job in jobs if job.line in starts]
        now = min(time for time in [*ends, *(job.submit for job in jobs)] if time > now)
        again = True
        while again:
            begun = one_round(jobs, slots, policy, starts, now)
            starts |= dict.fromkeys((job.line for job in begun), now)
            again = any(job.run == 0 for job in begun)
    return starts


def one_round(jobs: list[TraceJob], slots: int, policy: str, starts: dict[int, float], now: float) -> list[TraceJob]:
    line = sorted((job.submit, job.line, job) for job in jobs if job.submit <= now and job.line not in starts)
    running = [(job, starts[job.line]) for job in jobs if job.line in starts and starts[job.line] + job.run > now]
    free = slots - sum(job.slots for job, _ in running)
    taken: list[Interval] = []
    for job, start in running:
        expected = start + job.requested
        taken.append((now, expected if expected > now else now + 1, job.slots))
    queue = [job for _, _, job in line]
    return {"fcfs": in_line, "easy": behind_head, "conservative": all_promised}[policy](queue, taken, free, slots, now)


def in_line(queue: list[TraceJob], taken: list[Interval], free: int, slots: int, now: float) -> list[TraceJob]:
    begun = []
    while queue and queue[0].slots <= free:
        free -= queue[0].slots
        begun.append(queue.pop(0))
    return begun


def behind_head(queue: list[TraceJob], taken: list[Interval], free: int, slots: int, now: float) -> list[TraceJob]:
    begun = in_line(queue, taken, free, slots, now)
    free -= sum(job.slots for job in begun)
    taken = taken + [(now, now + job.requested, job.slots) for job in begun]
    # those that take no time are gone again at this very instant, which is the earliest one
    instants = sorted({now, *(end for _, end, _ in taken)})
    for head in queue[:1]:
        promised = next(time for time in instants if usage(taken, time) + head.slots <= slots)
        for job in queue[1:]:
            mine = (now, now + job.requested, job.slots)
            if job.slots <= free and usage([*taken, mine], promised) + head.slots <= slots:
                taken.append(mine)
                free -= job.slots
                begun.append(job)
    return begun


def all_promised(queue: list[TraceJob], taken: list[Interval], free: int, slots: int, now: float) -> list[TraceJob]:
    begun = []
    for job in queue:
        start = earliest(job, taken, slots, now)
        taken.append((start, start + job.requested, job.slots))
        if start == now and job.slots <= free:
            free -= job.slots
            begun.append(job)
    return begun


def earliest(job: TraceJob, taken: list[Interval], slots: int, now: float) -> float:
    instants = sorted({now, *(time for start, end, _ in taken for time in (start, end) if time > now)})
    for start in instants:
        during = [time for time in instants if start < time < start + job.requested]
        if all(usage(taken, time) + job.slots <= slots for time in [start, *during]):
            return start
    raise AssertionError("a job larger than the machine")


def promised_once(jobs: list[TraceJob], slots: int) -> dict[int, float]:
    """Conservative backfill where all ask for exactly what they need: the promise of the submit is never bettered."""
    begins, ends, sizes = (np.zeros(len(jobs)) for _ in range(3))
    result = {}
    for at, job in enumerate(sorted(jobs, key=lambda job: (job.submit, job.line))):
        alive = np.flatnonzero(ends[:at] > job.submit)
        edges = np.concatenate((begins[alive], ends[alive]))
        instants = np.unique(np.append(edges[edges > job.submit], job.submit))
        inside = (begins[alive] <= instants[:, None]) & (instants[:, None] < ends[alive])
        fits = inside @ sizes[alive] + job.slots <= slots
        for start in instants[fits]:
            if fits[(instants >= start) & (instants < start + job.run)].all():
                break
        begins[at], ends[at], sizes[at] = start, start + job.run, job.slots
        result[job.line] = float(start)
    return result
