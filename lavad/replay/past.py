"""The inputs of a recorded history: external events, run times of jobs, and the runs that users saw.

Rule: decisions of the system (starts, suspensions, requeues, dependencies) are not inputs; a simulation makes them again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.events import IllegalMove
from lavad.core.job.job import Job
from lavad.core.job.spec import Spec
from lavad.core.plan.volatile import Soft
from lavad.replay.history import HistoryError, Item, Numbered
from lavad.replay.simulate import Run
from lavad.replay.swf import TraceJob
from lavad.replay.virtual import Life
from lavad.replica import protocol as feed

DEFAULT = 3600.0
"""Run time in seconds assumed for a job about which nothing is known."""


class Past(msgspec.Struct):
    """A history that was read."""

    asked: list[ev.Event]
    """In order of time, specs before the first job that has them."""
    specs: dict[int, Spec]
    lives: dict[int, Life]
    """How jobs that ended had run."""
    runs: dict[int, Run]
    """Jobs that ended after they had run: what their users saw."""
    cluster: Cluster
    """As it is at the end."""
    now: float


class _Reader:
    def __init__(self) -> None:
        self.past = Past(asked=[], specs={}, lives={}, runs={}, cluster=Cluster(), now=0.0)
        self.soft = Soft()

    def take(self, event: ev.Event) -> None:
        past = self.past
        past.now = max(past.now, event.at)
        if isinstance(event, ev.SpecAdded):
            past.specs[event.spec] = event.value
        elif isinstance(event, ev.JobFinished):
            self._finished(past.cluster.jobs.rows.get(event.key), event)
        elif event.external and (not isinstance(event, ev.ElementsKilled) or event.by):
            past.asked.append(event)

    def _finished(self, job: Job | None, event: ev.JobFinished) -> None:
        past = self.past
        run = job.run if job is not None else None
        if job is None or run is None:
            if event.by:
                past.asked.append(event)  # somebody killed what still waited
            return
        ends = [end for part in run.parts if (end := part.end or event.end) is not None]
        started = run.started or next((end.started for end in ends if end.started), 0.0) or run.dispatched
        seconds = max(0.0, event.at - started - run.paused)
        past.lives[event.key] = Life(seconds, sum(end.utime + end.stime for end in ends), event.status)
        spec = past.cluster.specs.rows[job.spec]
        slots = sum(part.slots for part in run.parts)
        trace = TraceJob(
            event.key & 0xFFFFFFFF, event.key >> 32, job.submitted, seconds, slots, spec.limits.run or seconds, spec.user
        )
        past.runs[event.key] = Run(trace, event.at - seconds)


def read_past(items: Iterable[Item]) -> Past:
    """Raises ``HistoryError`` where an event does not fit those before it."""
    reader = _Reader()
    for item in items:
        if not isinstance(item, Numbered):
            continue
        reader.take(item.event)
        try:
            feed.fold(reader.past.cluster, reader.soft, [item.event])
        except (KeyError, IllegalMove) as error:
            raise HistoryError(f"event {item.seq} does not fit what was before: {error!r}") from error
    return reader.past


class Guess:
    """Assumed run times of unfinished jobs: the mean of similar jobs, else the run limit."""

    def __init__(self, past: Past, now: float) -> None:
        self._past = past
        self._now = now
        self.used: set[int] = set()
        """Jobs whose run time was assumed."""
        sums: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for key, life in past.lives.items():
            for kind in self._kinds(past.runs[key].job.user, key):
                sums[kind][0] += life.seconds
                sums[kind][1] += 1
        self._means = {kind: total / count for kind, (total, count) in sums.items()}

    def _kinds(self, user: int | str, key: int) -> list[tuple[str, str]]:
        return [(str(user), str(self._past.runs[key].job.slots)), (str(user), "")]

    def life(self, job: Job) -> Life:
        """What is known, or assumed, of a job."""
        known = self._past.lives.get(job.key)
        if known is not None:
            return known
        self.used.add(job.key)
        spec = self._past.specs.get(job.spec)
        if spec is None:
            return Life(DEFAULT)
        found = self._means.get((spec.user, str(spec.slots)), self._means.get((spec.user, ""), spec.limits.run or DEFAULT))
        seconds = min(found, spec.limits.run) if spec.limits.run else found
        recorded = self._past.cluster.jobs.rows.get(job.key)
        if recorded is not None and recorded.run is not None:
            ran = self._now - (recorded.run.started or recorded.run.dispatched) - recorded.run.paused
            seconds = max(seconds, 1.1 * ran)
        return Life(seconds)
