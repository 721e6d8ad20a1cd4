"""Ends orphans, jobs whose condition (``-w``) can never be met, in clusters with ORPHAN_JOB_TERM_GRACE_PERIOD.

Rule (LSF): an orphan is ended that many seconds after it became one, and those who become orphans by that at once, so that a
tree of jobs waits once. Since when a job is one is known in memory only: a new master begins to count again. What is submitted
with ``-ti`` does not come here: it ends as soon as its condition is judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.depend import Depend, Jobs
from lavad.core.lang.ids import job_of
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.core.lang.states import JobState, TermReason

INHERITED = 60.0
"""Seconds in which those who depended on an orphan that was ended are found to be orphans."""
_REASON = TermReason.TERM_ORPHAN_SYSTEM
Spans = list[tuple[float, Ranges]]
"""Since when which elements are orphans; of a job without elements EMPTY."""


class Orphans:
    """The orphans of a cluster, as of the last ``due``."""

    def __init__(self) -> None:
        self._since: dict[int, Spans] = {}
        self._ended: dict[int, float] = {}
        """Ids of jobs and arrays that were ended lately, and when."""

    def due(self, cluster: Cluster, now: float, grace: int, most: int = 5_000) -> list[ev.Event]:
        """The ends of those that have been orphans for ``grace`` seconds, about ``most``; the others stay for the next call."""
        self._ended = {job: at for job, at in self._ended.items() if now < at + INHERITED}
        found: dict[int, Spans] = {}
        events: list[ev.Event] = []
        ended = frozenset(self._ended)
        inherited: dict[Depend, bool] = {}
        for depend, key, elements in _orphans(cluster):
            if ended and depend not in inherited:
                inherited[depend] = any(_meet(jobs, ended) for jobs in depend.ids)
            since = now - grace if inherited.get(depend) else now
            found[key] = spans = _kept(self._since.get(key, []), elements, since)
            over = [span for since, span in spans if since + grace <= now]
            if over and len(events) < most:
                events.append(_end(key, elements, over, now))
                self._ended[job_of(key)] = now
        self._since = found
        return events


def _meet(jobs: Jobs, ended: frozenset[int]) -> bool:
    """Whether any of the jobs has ended."""
    return any(job in ended for job in jobs) if len(jobs) < len(ended) else any(job in jobs for job in ended)


def _end(key: int, elements: Ranges | None, over: list[Ranges], now: float) -> ev.Event:
    if elements is None:
        return ev.JobFinished(at=now, key=key, state=JobState.EXIT, reason=_REASON)
    return ev.ElementsKilled(at=now, key=key, elements=reduce(Ranges.union, over), reason=_REASON)


def _kept(spans: Spans, elements: Ranges | None, since: float) -> Spans:
    """What of ``spans`` are still orphans, and those that have become so."""
    if elements is None:
        return spans or [(since, EMPTY)]
    kept = [(begun, still) for begun, span in spans if (still := span.intersect(elements))]
    new = elements
    for _, span in kept:
        new = new.minus(span)
    return [*kept, (since, new)] if new else kept


def _orphans(cluster: Cluster) -> Iterator[tuple[Depend, int, Ranges | None]]:
    """(condition, who waits for it, which elements; None: a job)."""
    for key in cluster.conditions.orphans:
        job = cluster.jobs.rows.get(key)
        array = cluster.arrays.rows[key] if job is None else None
        row = job or array
        if row is not None and row.depend is not None:
            yield row.depend, key, None if array is None else array.never
