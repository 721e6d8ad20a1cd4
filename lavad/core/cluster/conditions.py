"""The index of dependency conditions: which jobs each names, who waits for it, and which are to be looked at again.

Rule: jobs with the same condition share one entry, which is looked at only when a job that it names has changed; so a chain
or a fan of 100,000 jobs costs only what changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lavad.core.job.depend import Depend


class Names:
    """Name to the keys of live jobs and arrays; made only when the first condition asks by name."""

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

    __slots__ = ("asked", "depend", "failed", "left", "told", "untold", "waiters")

    def __init__(self, depend: Depend) -> None:
        self.depend = depend
        self.waiters: dict[int, None] = {}
        """Keys of jobs, arrays and touched elements, oldest first."""
        self.told = -1
        """How the condition stood when all waiters but ``untold`` were told; -1: they are all to be told."""
        self.untold: dict[int, None] = {}
        self.left: dict[int, list[int]] = {}
        """Number of a question about many jobs to those that do not fit yet: so each is asked once, not at every look."""
        self.asked: dict[int, frozenset[int]] = {}
        """Number of such a question to all that it is about."""
        self.failed: dict[int, set[int]] = {}
        """Number of such a question to jobs that can never fit."""


class Conditions:
    """All conditions that somebody waits for."""

    def __init__(self) -> None:
        self.rows: dict[Depend, Condition] = {}
        self.named: dict[int, dict[Condition, None]] = {}
        """Job id to the conditions that name it."""
        self.timed: dict[Condition, None] = {}
        """Conditions that the clock alone may change."""
        self.stirred: dict[Condition, set[int] | None] = {}
        """To be looked at, with the jobs that changed (None: as a whole)."""

    def add(self, depend: Depend, key: int) -> None:
        """Somebody waits for a condition; it is looked at as a whole."""
        condition = self.rows.get(depend)
        if condition is None:
            condition = self.rows[depend] = Condition(depend)
            for ids in depend.ids:
                for job in ids:
                    self.named.setdefault(job, {})[condition] = None
            if "time" in depend.text:
                self.timed[condition] = None
        condition.waiters[key] = condition.untold[key] = None
        self.stirred.setdefault(condition, set() if condition.left else None)

    def discard(self, depend: Depend, key: int) -> list[int]:
        """Somebody waits no more; the ids of jobs that no condition names any more."""
        condition = self.rows.get(depend)
        if condition is None or key not in condition.waiters:
            return []
        del condition.waiters[key]
        condition.untold.pop(key, None)
        if condition.waiters:
            return []
        del self.rows[depend]
        self.timed.pop(condition, None)
        self.stirred.pop(condition, None)
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

    def stir(self, job: int) -> None:
        """A job that is named has changed."""
        for condition in self.named.get(job, ()):
            known = self.stirred.setdefault(condition, set())
            if known is not None:
                known.add(job)

    def stir_all(self) -> None:
        """Look at every condition again from the beginning."""
        for condition in self.rows.values():
            condition.left.clear()
            condition.failed.clear()
            condition.told = -1
            self.stirred[condition] = None
