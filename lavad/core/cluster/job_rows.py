"""Live jobs by key, in little memory: of a job that has only been submitted, what tells it from the others of its class.

Rule: a job that waits for its first start, with nothing said about it since, is its key, class, name and time of submission. Its
record is made whenever it is asked for; any other job's is kept as it is. Where most of the jobs of neighbouring ids are such
jobs, they stand in columns.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, MutableMapping, Sequence, ValuesView
from heapq import merge
from itertools import chain, compress
from typing import TypeVar, overload

import msgspec

from lavad.core.cluster.shared import Shared
from lavad.core.job.job import Job
from lavad.core.lang.states import JobState

T = TypeVar("T")
WIDTH = 8
"""Bits of a job's id that say which row of its columns it is."""
SIZE = 1 << WIDTH
"""Rows of columns."""
_LAST = SIZE - 1
DENSE, SPARSE = SIZE // 4, SIZE // 16
"""Jobs from which on columns are made for them, and below which they are given up: empty rows take memory too."""
_ZEROS = bytes(8 * SIZE)


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


class Submitted(msgspec.Struct, frozen=True):
    """Some jobs that have only been submitted, by id, at least one: each column has a value for each."""

    keys: Sequence[int]
    specs: Sequence[int]
    names: Sequence[str]
    times: Sequence[float]

    def __iter__(self) -> Iterator[Job]:
        for key, spec, name, submitted in zip(self.keys, self.specs, self.names, self.times, strict=True):
            yield Job(key, spec, name, submitted, JobState.PEND, submitted)


class Columns:
    """Jobs that have only been submitted, by the last bits of their ids. A row whose spec is 0 is empty."""

    __slots__ = ("count", "first", "names", "specs", "times")

    def __init__(self, first: int) -> None:
        self.first = first
        """The id of the first row."""
        self.specs, self.times = array("Q", _ZEROS), array("d", _ZEROS)
        self.names = [""] * SIZE
        self.count = 0

    def put(self, at: int, row: _Plain) -> None:
        self.count += not self.specs[at]
        self.specs[at], self.names[at], self.times[at] = row.spec, row.name, row.submitted

    def remove(self, at: int) -> None:
        self.specs[at], self.names[at] = 0, ""
        self.count -= 1

    def copied(self) -> Columns:
        """The same jobs, whatever becomes of these."""
        other = Columns(self.first)
        other.specs, other.names, other.times, other.count = self.specs[:], self.names[:], self.times[:], self.count
        return other

    def jobs(self, specs: Container[int] | None = None) -> Iterable[Job]:
        """By id. ``specs``: only those that have one of these."""
        return self.submitted(specs) or ()

    def submitted(self, specs: Container[int] | None = None) -> Submitted | None:
        """As ``jobs``; None: there is none."""
        keys = range(self.first, self.first + SIZE)
        has = [spec and (specs is None or spec in specs) for spec in self.specs]
        if all(has):
            return Submitted(keys, self.specs, self.names, self.times)
        if not any(has):
            return None
        return Submitted(
            [*compress(keys, has)], [*compress(self.specs, has)], [*compress(self.names, has)], [*compress(self.times, has)]
        )


def merged(some: Iterable[Columns], others: Sequence[Job], specs: Container[int] | None = None) -> Iterator[Iterable[Job]]:
    """The jobs of columns, only those with one of the ``specs``, and others, all by id, elements by index, some at a time."""
    done = 0
    for columns in some:
        begin = bisect_left(others, _place(columns.first), done, key=_place_of)
        end = bisect_left(others, _place(columns.first + SIZE), begin, key=_place_of)
        yield others[done:begin]
        inside = columns.jobs(specs)
        yield merge(inside, others[begin:end], key=_place_of) if end > begin else inside
        done = end
    yield others[done:]


def _place(key: int) -> int:
    """Orders keys by id, then by index."""
    return (key & 0xFFFFFFFF) << 32 | key >> 32


def _place_of(job: Job) -> int:
    return _place(job.key)


class JobRows(MutableMapping[int, Job]):
    """Jobs by key, in the order of their ids, elements in that of their indices."""

    __slots__ = ("_columns", "_filling", "_rows", "_shared")

    def __init__(self) -> None:
        self._rows: dict[int, Job | _Plain] = {}
        self._columns: dict[int, Columns] = {}
        """Id without its last bits to those of the jobs whose ids begin so that are not in ``_rows``."""
        self._filling = 0
        """The highest such beginning of an id: its columns are made once there is a job behind them."""
        self._shared = Shared()

    def __getitem__(self, key: int) -> Job:
        job = self.get(key)
        if job is None:
            raise KeyError(key)
        return job

    @overload
    def get(self, key: int, /) -> Job | None: ...
    @overload
    def get(self, key: int, default: T, /) -> Job | T: ...
    def get(self, key: int, default: T | None = None, /) -> Job | T | None:
        row = self._rows.get(key)
        if isinstance(row, Job):
            return row
        if row is not None:
            return row.job(key)
        columns = self._columns.get(key >> WIDTH)
        if columns is None or not (spec := columns.specs[key & _LAST]):
            return default
        submitted = columns.times[key & _LAST]
        return Job(key, spec, columns.names[key & _LAST], submitted, JobState.PEND, submitted)

    def submitted(self, key: int) -> float | None:
        """When a separate job was submitted that has only been submitted; None: it is none."""
        row = self._rows.get(key)
        if row is not None:
            return row.submitted if isinstance(row, _Plain) and not key >> 32 else None
        columns = self._columns.get(key >> WIDTH)
        return columns.times[key & _LAST] if columns is not None and columns.specs[key & _LAST] else None

    def __setitem__(self, key: int, job: Job) -> None:
        kept = _kept(key, job)
        if key >> 32:
            if key not in self._rows:
                # no other element has the name of one
                self._shared.share(kept, "spec", "submitted")
            self._rows[key] = kept
            return
        if isinstance(kept, _Plain):
            self._shared.share(kept, "name", "spec", "submitted")
            self._put_plain(key, kept)
            return
        columns = self._columns.get(key >> WIDTH)
        if key not in self:
            self._shared.share(kept, "name", "spec", "submitted", "since")
        if columns is not None and columns.specs[key & _LAST]:
            self._take_out(key, columns)
        self._rows[key] = kept

    def add_elements(self, jobs: Sequence[Job]) -> None:
        """Add elements of one array that were made of one record, and share what they have in common."""
        self._rows.update([(job.key, job) for job in jobs])

    def add_plain(self, key: int, job: Job, spec: int, submitted: float) -> bool:
        """Add a job that has only been submitted; these objects are kept of it. False, and adds nothing, if it is no such job."""
        kept = _Plain(spec, job.name, submitted)
        if key >> 32 or kept.job(key) != job:
            return False
        self._shared.share(kept, "name")
        self._put_plain(key, kept)
        return True

    def add_submitted(self, key: int, name: str, spec: int, submitted: float) -> None:
        """Add a separate job that has only been submitted."""
        kept = _Plain(spec, name, submitted)
        self._shared.share(kept, "name", "spec", "submitted")
        self._put_plain(key, kept)

    def _put_plain(self, key: int, kept: _Plain) -> None:
        columns = self._columns.get(key >> WIDTH)
        if columns is not None:
            self._rows.pop(key, None)
            columns.put(key & _LAST, kept)
            return
        if key >> WIDTH > self._filling:
            self._fill(self._filling)
            self._filling = key >> WIDTH
        self._rows[key] = kept

    def _fill(self, number: int) -> None:
        """Put jobs of neighbouring ids into columns, if there are many."""
        first = number << WIDTH
        some = [key for key in range(first, first + SIZE) if isinstance(self._rows.get(key), _Plain)]
        if len(some) < DENSE:
            return
        columns = self._columns[number] = Columns(first)
        for key in some:
            row = self._rows.pop(key)
            if isinstance(row, _Plain):
                columns.put(key & _LAST, row)

    def _take_out(self, key: int, columns: Columns) -> None:
        columns.remove(key & _LAST)
        if columns.count < SPARSE:
            del self._columns[key >> WIDTH]
            self._rows.update((job.key, _Plain(job.spec, job.name, job.submitted)) for job in columns.jobs())

    def __delitem__(self, key: int) -> None:
        if key in self._rows:
            del self._rows[key]
        elif key in self:
            self._take_out(key, self._columns[key >> WIDTH])
        else:
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        if key in self._rows:
            return True
        if not isinstance(key, int) or (columns := self._columns.get(key >> WIDTH)) is None:
            return False
        return columns.specs[key & _LAST] > 0

    def __len__(self) -> int:
        return len(self._rows) + sum(columns.count for columns in self._columns.values())

    def __iter__(self) -> Iterator[int]:
        plain = (one.first + at for one in self._columns.values() for at, spec in enumerate(one.specs) if spec)
        return iter(sorted([*self._rows, *plain], key=_place))

    def values(self) -> ValuesView[Job]:
        return _Values(self)

    def jobs(self) -> Iterator[Job]:
        """All of them."""
        return chain.from_iterable(merged((self._columns[number] for number in sorted(self._columns)), self.apart()))

    def in_columns(self) -> list[Columns]:
        """Those that stand in columns, as they are now."""
        return [self._columns[number].copied() for number in sorted(self._columns)]

    def apart(self) -> list[Job]:
        """The others."""
        rows = ((key, self._rows[key]) for key in sorted(self._rows, key=_place))
        return [row if isinstance(row, Job) else row.job(key) for key, row in rows]


def place_of_submitted(rows: Mapping[int, Job], key: int) -> tuple[float, int] | None:
    """The place in dispatch order of a separate job that has only been submitted, without its record; None: it is none."""
    submitted = rows.submitted(key) if isinstance(rows, JobRows) else None
    return None if submitted is None else (submitted, _place(key))


class _Values(ValuesView[Job]):
    _mapping: JobRows

    def __iter__(self) -> Iterator[Job]:
        return self._mapping.jobs()
