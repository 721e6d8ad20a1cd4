"""Live jobs by key, in little memory: of a job that has only been submitted, what tells it from the others of its class.

Rule: a job that waits for its first start, with nothing said about it since, is its key, class, name and time of submission. Its
record is made whenever it is asked for; any other job's is kept as it is.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, MutableMapping, ValuesView
from typing import TypeVar, overload

import msgspec

from lavad.core.cluster.shared import Shared
from lavad.core.job.job import Job
from lavad.core.lang.states import JobState

T = TypeVar("T")


class _Plain(msgspec.Struct, frozen=True, gc=False):
    """A job that has only been submitted."""

    spec: int
    name: str
    submitted: float

    def job(self, key: int) -> Job:
        return Job(key, self.spec, self.name, self.submitted, JobState.PEND, self.submitted)


def _kept(key: int, job: Job) -> Job | _Plain:
    """What is kept of a job."""
    if job.state is not JobState.PEND or job.attempt or job.since != job.submitted:
        return job
    plain = _Plain(job.spec, job.name, job.submitted)
    return plain if plain.job(key) == job else job


class JobRows(MutableMapping[int, Job]):
    """Jobs by key, in the order in which they came."""

    __slots__ = ("_rows", "_shared")

    def __init__(self) -> None:
        self._rows: dict[int, Job | _Plain] = {}
        self._shared = Shared()

    def __getitem__(self, key: int) -> Job:
        row = self._rows[key]
        return row if isinstance(row, Job) else row.job(key)

    @overload
    def get(self, key: int, /) -> Job | None: ...
    @overload
    def get(self, key: int, default: T, /) -> Job | T: ...
    def get(self, key: int, default: T | None = None, /) -> Job | T | None:
        row = self._rows.get(key)
        if isinstance(row, _Plain):
            return row.job(key)
        return default if row is None else row

    def __setitem__(self, key: int, job: Job) -> None:
        kept = _kept(key, job)
        if isinstance(kept, _Plain):
            self._shared.share(kept, "name", "spec", "submitted")
        elif key not in self._rows:
            self._shared.share(kept, "name", "spec", "submitted", "since")
        self._rows[key] = kept

    def __delitem__(self, key: int) -> None:
        del self._rows[key]

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def items(self) -> ItemsView[int, Job]:
        return _Items(self)

    def values(self) -> ValuesView[Job]:
        return _Values(self)

    def jobs(self) -> Iterator[tuple[int, Job]]:
        """All with their keys."""
        return ((key, row if isinstance(row, Job) else row.job(key)) for key, row in self._rows.items())


class _Items(ItemsView[int, Job]):
    _mapping: JobRows

    def __iter__(self) -> Iterator[tuple[int, Job]]:
        return self._mapping.jobs()


class _Values(ValuesView[Job]):
    _mapping: JobRows

    def __iter__(self) -> Iterator[Job]:
        return (job for _, job in self._mapping.jobs())
