"""The index of dependency conditions: which jobs each names and who waits for it.

Rule: jobs with the same condition share one entry. Whoever judges conditions watches the index, and so judges one again only when
a job that it names has changed: a chain or a fan of 100,000 jobs costs only what changes.
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
        """A job came, went or has another name."""
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
    """One condition and those who wait for it. Equal only to itself."""

    __slots__ = ("depend", "waiters")

    def __init__(self, depend: Depend) -> None:
        self.depend = depend
        self.waiters: dict[int, None] = {}
        """Keys of jobs, arrays and touched elements, oldest first."""


class Watcher(Protocol):
    """Learns what may change how conditions stand; see ``decide.depend``."""

    def added(self, condition: Condition, key: int) -> None:
        """A job waits for the condition."""

    def left(self, condition: Condition, key: int) -> None:
        """A job waits for it no more."""

    def dropped(self, condition: Condition) -> None:
        """Nobody waits for it any more."""

    def changed(self, condition: Condition, job: int) -> None:
        """A job that it names has changed."""

    def undone(self) -> None:
        """The last batch was undone: whatever was made of it no longer holds."""


class Conditions:
    """All conditions that somebody waits for."""

    def __init__(self) -> None:
        self.rows: dict[Depend, Condition] = {}
        self.named: dict[int, dict[Condition, None]] = {}
        """Job id to the conditions that name it."""
        self.timed: dict[Condition, None] = {}
        """Conditions that the clock alone may change."""
        self.watcher: Watcher | None = None

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
        """It waits no more; the ids of jobs that no condition names any more."""
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
        """A job that conditions may name has changed in what they ask about."""
        if self.watcher is not None:
            for condition in self.named.get(job, ()):
                self.watcher.changed(condition, job)

    def undone(self) -> None:
        """The last batch was undone."""
        if self.watcher is not None:
            self.watcher.undone()
