"""Simulates the jobs of a trace on one machine under a policy, on a virtual clock.

Rule: at one instant, ends come first, then submissions in queue order, then one decision of the policy. Shortcuts here never
change its outcome.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

from lavad.replay.backfill import Decision, Policy, Waiting, easy, fcfs
from lavad.replay.conservative import Conservative
from lavad.replay.profile import Held
from lavad.replay.swf import TraceJob

_FORGETFUL: dict[str, Policy] = {"fcfs": fcfs, "easy": easy}
"""Those that remember nothing."""
POLICIES = (*_FORGETFUL, "conservative")


class Run(msgspec.Struct, frozen=True, gc=False):
    """A job and when it started; it ends as the trace says, however long it had asked for."""

    job: TraceJob
    start: float

    @property
    def end(self) -> float:
        """When it ended."""
        return self.start + self.job.run

    @property
    def wait(self) -> float:
        """Seconds in the queue."""
        return self.start - self.job.submit


def simulate(jobs: Sequence[TraceJob], slots: int, policy: str) -> list[Run]:
    """All jobs, in the order in which they started. Jobs must be in queue order and none larger than the machine."""
    simulation = Simulation(jobs, slots, policy)
    while simulation.step() is not None:
        pass
    return simulation.done


class Simulation:
    """The state between two instants. A key is a job's place in ``jobs``."""

    def __init__(self, jobs: Sequence[TraceJob], slots: int, policy: str) -> None:
        self.jobs = jobs
        self.policy = policy
        self.free = slots
        self.submitted = 0
        self.queue: dict[int, Waiting] = {}
        self.running: list[Held] = []
        self.ends: list[tuple[float, int, float]] = []
        self.done: list[Run] = []
        self.conservative = Conservative() if policy == "conservative" else None

    def step(self) -> tuple[float, Decision] | None:
        """Simulate the next instant: (time, decision about the jobs that were considered). None: nothing is left to do."""
        now = self.ends[0][0] if self.ends else math.inf
        if self.submitted < len(self.jobs):
            now = min(now, self.jobs[self.submitted].submit)
        if now == math.inf:
            return None
        ended = self._end(now)
        if self.conservative is not None and self.running and self.running[0].until <= now:
            self.conservative.changed(now)  # a job runs on beyond its expected end
        first = self.submitted
        self._submit(now)
        decision = self._decide(now, ended, first)
        for key in decision.starts:
            self._start(key, now)
        return now, decision

    def _end(self, now: float) -> bool:
        ended = False
        while self.ends and self.ends[0][0] == now:
            _, key, expected = heapq.heappop(self.ends)
            if expected != now and self.conservative is not None:
                self.conservative.changed(now)
            at = bisect_left(self.running, Held(expected, key, 0))
            self.free += self.running.pop(at).amount
            ended = True
        return ended

    def _submit(self, now: float) -> None:
        while self.submitted < len(self.jobs) and self.jobs[self.submitted].submit == now:
            job = self.jobs[self.submitted]
            waiting = self.queue[self.submitted] = Waiting(self.submitted, job.slots, job.requested)
            if self.conservative is not None:
                self.conservative.add(waiting)
            self.submitted += 1

    def _decide(self, now: float, ended: bool, first: int) -> Decision:
        """``first``: the key of the first job that was submitted in this instant."""
        if self.conservative is not None:
            return Decision(self.conservative.starts(now, self.free, self.running), {})
        queue: Iterable[Waiting] = self.queue.values()
        overdue = bool(self.running) and self.running[0].until <= now
        if not ended and not overdue and len(self.queue) > self.submitted - first:
            # No slots were freed since the last decision, so jobs that could not start then cannot start now. Only new
            # jobs are considered, and those before them that they must not delay.
            new = [self.queue[key] for key in range(first, self.submitted)]
            if self.policy == "fcfs" or not any(job.amount <= self.free for job in new):
                return Decision([], {})
            if self.policy == "easy":
                queue = chain((next(iter(queue)),), new)
        return _FORGETFUL[self.policy](queue, self.running, now, self.free)

    def _start(self, key: int, now: float) -> None:
        waiting = self.queue.pop(key)
        self.free -= waiting.amount
        insort(self.running, Held(now + waiting.duration, key, waiting.amount))
        heapq.heappush(self.ends, (now + self.jobs[key].run, key, now + waiting.duration))
        self.done.append(Run(self.jobs[key], now))
