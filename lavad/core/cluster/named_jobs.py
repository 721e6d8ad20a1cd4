"""The jobs that dependency conditions name, and the names by which they are found.

Rule: jobs that many conditions name together are kept as one set. A set of many jobs is found by the blocks of ids that it lies
in, not by its jobs: each of thousands of conditions may name thousands of jobs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from lavad.core.job.depend import FEW, Jobs, are_many, jobs_of
from lavad.core.lang.ranges import Ranges

if TYPE_CHECKING:
    from lavad.core.cluster.conditions import Condition

BLOCK = 8
"""Bits of an id within its block."""
KEPT = 16
"""Names whose jobs are remembered."""


class JobSet:
    """Jobs that conditions name together; compared by identity. ``many``: the jobs, if they are more than FEW."""

    __slots__ = ("conditions", "many")

    def __init__(self, jobs: Jobs) -> None:
        self.many = _ranges(jobs) if are_many(jobs) else None
        self.conditions: dict[Condition, None] = {}


class NamedJobs:
    """All ids that conditions name; ``in`` and iteration are about single jobs."""

    def __init__(self) -> None:
        self.sets: dict[Jobs, JobSet] = {}
        self._by_job: dict[int, dict[JobSet, None]] = {}
        """Of sets of few jobs."""
        self._by_block: dict[int, dict[JobSet, None]] = {}
        """Of the others."""
        self._count = Counter[int]()
        """How many of the others a job is in."""

    def __bool__(self) -> bool:
        return bool(self.sets)

    def __contains__(self, job: int) -> bool:
        return job in self._by_job or job in self._count

    def __iter__(self) -> Iterator[int]:
        yield from self._by_job
        yield from (job for job in self._count if job not in self._by_job)

    def sets_of(self, job: int) -> Iterator[JobSet]:
        """The sets that a job is in."""
        yield from self._by_job.get(job, ())
        if job in self._count:
            yield from (one for one in self._by_block[job >> BLOCK] if one.many is not None and job in one.many)

    def sets_among(self, jobs: Iterable[int]) -> dict[JobSet, Iterable[int]]:
        """The sets that any of some jobs is in, with those that are."""
        few: dict[JobSet, list[int]] = {}
        blocks: dict[int, list[int]] = {}
        for job in jobs:
            for one in self._by_job.get(job, ()):
                few.setdefault(one, []).append(job)
            if job in self._count:
                blocks.setdefault(job >> BLOCK, []).append(job)
        found: dict[JobSet, Iterable[int]] = {**few}
        together = Ranges.from_indices(job for some in blocks.values() for job in some)
        for one in {one: None for block in blocks for one in self._by_block[block]}:
            if one.many is not None and (those := one.many.intersect(together)):
                found[one] = those
        return found

    def add(self, jobs: Jobs, condition: Condition) -> None:
        """A condition names these jobs."""
        found = self.sets.get(jobs)
        if found is None:
            found = self.sets[jobs] = JobSet(jobs)
            if found.many is None:
                for job in jobs:
                    self._by_job.setdefault(job, {})[found] = None
            else:
                self._count.update(jobs)
                for block in _blocks(found.many):
                    self._by_block.setdefault(block, {})[found] = None
        found.conditions[condition] = None

    def discard(self, jobs: Jobs, condition: Condition) -> tuple[JobSet | None, list[int]]:
        """A condition is gone: (the set if no other has it, those of its jobs that no condition names any more)."""
        found = self.sets[jobs]
        del found.conditions[condition]
        if found.conditions:
            return None, []
        del self.sets[jobs]
        if found.many is None:
            for job in jobs:
                _drop(self._by_job, job, found)
        else:
            for block in _blocks(found.many):
                _drop(self._by_block, block, found)
            count = self._count
            for job in jobs:
                if (left := count[job] - 1) > 0:
                    count[job] = left
                else:
                    del count[job]
        return found, [job for job in jobs if job not in self]


def _drop(index: dict[int, dict[JobSet, None]], key: int, one: JobSet) -> None:
    there = index[key]
    del there[one]
    if not there:
        del index[key]


def _blocks(jobs: Ranges) -> set[int]:
    return {block for part in jobs.parts for block in _blocks_of(*part)}


def _blocks_of(first: int, last: int, step: int) -> Iterable[int]:
    if step >> BLOCK:
        return (job >> BLOCK for job in range(first, last + 1, step))
    return range(first >> BLOCK, (last >> BLOCK) + 1)


class _Found:
    """The jobs of a name, and those that have come since they were last asked for."""

    __slots__ = ("jobs", "new")

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self.new: dict[int, None] = {}


class Names:
    """Name to the keys of live jobs and arrays; built when a condition first names a job by name."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[int, None]] | None = None
        self._found: dict[tuple[str, bool, str | None], _Found] = {}

    def of(self, everything: Callable[[], Iterable[tuple[str, int]]]) -> dict[str, dict[int, None]]:
        """The index; ``everything`` gives name and key of each live job and array."""
        if self.rows is None:
            self.rows = {}
            for name, key in everything():
                self.rows.setdefault(name, {})[key] = None
        return self.rows

    def find(self, name: str, prefix: bool, user: str | None, user_of: Callable[[int], str]) -> Jobs:
        """Live jobs and arrays of a name, or (``prefix``) of all that begin so; of a user, or of all (None).

        Remembered, as each of a mass of jobs may wait for the same, and may be one of those that the next waits for. The index
        must be there.
        """
        asked = (name, prefix, user)
        found = self._found.pop(asked, None)
        if found is None:
            rows = self.rows or {}
            names = [one for one in rows if one.startswith(name)] if prefix else [name]
            found = _Found(jobs_of(key for one in names for key in rows.get(one, ()) if user is None or user_of(key) == user))
        elif found.new:
            new = Ranges.from_indices(key for key in found.new if user is None or user_of(key) == user)
            found.jobs = _as_kept(_ranges(found.jobs).union(new))
            found.new = {}
        self._found[asked] = found
        if len(self._found) > KEPT:
            del self._found[next(iter(self._found))]
        return found.jobs

    def moved(self, key: int, old: str | None, new: str | None) -> None:
        """A job was added (``old`` None), removed (``new`` None) or renamed."""
        if self.rows is None or old == new or key >> 32:
            return
        for (name, prefix, _), found in self._found.items():
            if old is not None and (old.startswith(name) if prefix else old == name):
                if key in found.new:
                    del found.new[key]
                else:
                    found.jobs = _as_kept(_ranges(found.jobs).minus(Ranges.span(key, key)))
            if new is not None and (new.startswith(name) if prefix else new == name):
                found.new[key] = None
        if old is not None:
            keys = self.rows[old]
            del keys[key]
            if not keys:
                del self.rows[old]
        if new is not None:
            self.rows.setdefault(new, {})[key] = None


def _ranges(jobs: Jobs) -> Ranges:
    return jobs if isinstance(jobs, Ranges) else Ranges.from_indices(jobs)


def _as_kept(jobs: Ranges) -> Jobs:
    return jobs if len(jobs) > FEW else tuple(jobs)
