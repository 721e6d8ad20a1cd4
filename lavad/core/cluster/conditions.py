"""The index of dependency conditions: which jobs each names and who waits for it.

Rule: jobs with the same condition share one entry. A ``Watcher`` of the index judges a condition again only when a job that it
names has changed, so that a chain or fan of 100,000 jobs costs only what changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from lavad.core.job.depend import Depend


class Names:
    """Name to the keys of live jobs and arrays; built when a condition first names a job by name."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[int, None]] | None = None

    def of(self, everything: Callable[[], Iterable[tuple[str, int]]]) -> dict[str, dict[int, None]]:
        """The index; ``everything`` gives name and key of each live job and array."""
        if self.rows is None:
            self.rows = {}
            for name, key in everything():
                self.rows.setdefault(name, {})[key] = None
        return self.rows

    def moved(self, key: int, old: str | None, new: str | None) -> None:
        """A job was added (``old`` None), removed (``new`` None) or renamed."""
        if self.rows is None or old == new or key >> 32:
            return
        if old is not None:
            keys = self.rows[old]
            del keys[key]
            if not keys:
                del self.rows[old]
        if new is not None:
            self.rows.setdefault(new, {})[key] = None


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

    def dropped(self, condition: Condition) -> None:
        """No job waits for the condition any more."""

    def changed(self, condition: Condition, job: int) -> None:
        """A job that it names has changed."""

    def undone(self) -> None:
        """The last batch was undone: what was concluded from it no longer holds."""


class Conditions:
    """All conditions that jobs wait for."""

    def __init__(self) -> None:
        self.rows: dict[Depend, Condition] = {}
        self.named: dict[int, dict[Condition, None]] = {}
        """Job id to the conditions that name it."""
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
            for ids in depend.ids:
                for job in ids:
                    self.named.setdefault(job, {})[condition] = None
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
        if self.watcher is not None:
            self.watcher.dropped(condition)
        return self._unname(condition)

    def _unname(self, condition: Condition) -> list[int]:
        forgotten: list[int] = []
        for job in {job for ids in condition.depend.ids for job in ids}:
            namers = self.named[job]
            del namers[condition]
            if not namers:
                del self.named[job]
                forgotten.append(job)
        return forgotten

    def job_changed(self, job: int) -> None:
        """Something that conditions may ask about has changed in a job."""
        if self.watcher is not None:
            for condition in self.named.get(job, ()):
                self.watcher.changed(condition, job)

    def undone(self) -> None:
        """The last batch was undone."""
        if self.watcher is not None:
            self.watcher.undone()
