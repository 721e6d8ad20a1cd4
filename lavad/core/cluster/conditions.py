"""The index of dependency conditions: which jobs each names and who waits for it.

Rule: jobs with the same condition share one entry. A ``Watcher`` of the index judges a condition again only when a job that it
names has changed, so that a chain or fan of 100,000 jobs costs only what changes.
"""

from __future__ import annotations

from typing import Protocol

from lavad.core.cluster.named_jobs import JobSet, NamedJobs
from lavad.core.job.depend import Depend


class Condition:
    """One condition and the jobs that wait for it; compared by identity."""

    __slots__ = ("depend", "waiters")

    def __init__(self, depend: Depend) -> None:
        self.depend = depend
        self.waiters: dict[int, None] = {}
        """Keys of jobs, arrays and touched elements, oldest first."""


class Watcher(Protocol):
    """Is notified of everything that may change the state of conditions; see ``decide.depend``."""

    def added(self, condition: Condition, key: int) -> None:
        """A job waits for the condition."""

    def left(self, condition: Condition, key: int) -> None:
        """A job no longer waits for the condition."""

    def dropped(self, condition: Condition, sets: list[JobSet]) -> None:
        """No job waits for the condition any more, and no other condition names these jobs together."""

    def changed(self, job: int) -> None:
        """A job that conditions name has changed."""

    def undone(self) -> None:
        """The last batch was undone: what was concluded from it no longer holds."""


class Conditions:
    """All conditions that jobs wait for."""

    def __init__(self) -> None:
        self.rows: dict[Depend, Condition] = {}
        self.named = NamedJobs()
        self.timed: dict[Condition, None] = {}
        """Conditions that the clock alone may change."""
        self.orphans: dict[int, None] = {}
        """Jobs whose condition can never be met, and arrays with such elements."""
        self.watcher: Watcher | None = None

    def moved(self, key: int, was: Depend | None, now: Depend | None, never: bool) -> list[int]:
        """What a job, array or element waits for, before and after; the answer is that of ``discard``."""
        if never:
            self.orphans[key] = None
        else:
            self.orphans.pop(key, None)
        if now is not None and now is not was:
            self.add(now, key)
        return self.discard(was, key) if was is not None and was != now else []

    def add(self, depend: Depend, key: int) -> None:
        """A job, array or element waits for a condition."""
        condition = self.rows.get(depend)
        if condition is None:
            condition = self.rows[depend] = Condition(depend)
            for jobs in set(depend.ids):
                if jobs:
                    self.named.add(jobs, condition)
            if "time" in depend.text:
                self.timed[condition] = None
        condition.waiters[key] = None
        if self.watcher is not None:
            self.watcher.added(condition, key)

    def discard(self, depend: Depend, key: int) -> list[int]:
        """A job, array or element no longer waits; returns the ids of jobs that no condition names any more."""
        condition = self.rows.get(depend)
        if condition is None or key not in condition.waiters:
            return []
        del condition.waiters[key]
        if self.watcher is not None:
            self.watcher.left(condition, key)
        if condition.waiters:
            return []
        del self.rows[depend]
        self.timed.pop(condition, None)
        gone, forgotten = [], list[int]()
        for jobs in set(depend.ids):
            if jobs:
                one, unnamed = self.named.discard(jobs, condition)
                forgotten += unnamed
                if one is not None:
                    gone.append(one)
        if self.watcher is not None:
            self.watcher.dropped(condition, gone)
        return forgotten

    def job_changed(self, job: int) -> None:
        """Something that conditions may ask about has changed in a job."""
        if self.watcher is not None and job in self.named:
            self.watcher.changed(job)

    def undone(self) -> None:
        """The last batch was undone."""
        if self.watcher is not None:
            self.watcher.undone()
