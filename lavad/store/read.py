"""Reading the store from another process: texts, finished jobs and history.

Rule: it never writes and never waits for a lock.
What it reads is what was committed when the call was made; live jobs are asked of the master or a replica, not here.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from lavad.core.events import Configured, Event
from lavad.core.job.depend import Ended, EndedAlike, Jobs
from lavad.core.job.job import Array, Job
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.states import JobState
from lavad.core.plan.cycle_record import RecordedCycle
from lavad.core.site.conf import Conf, Params
from lavad.store import codec, prune, schema
from lavad.store.accounting import pages, shares, sums, wasteful
from lavad.store.asked import Asked, Find, Mark, Share, Sums, Wasteful
from lavad.store.connect import Found, Query, among, make_engine
from lavad.store.ended import ended_of, id_named, named_alike
from lavad.store.errors import StoreRefused, TooManyJobs, lost, refusal
from lavad.store.listing import finished_page
from lavad.store.upgrade import find_version

T = TypeVar("T", bound=Sequence[object])
_CHUNK = 500
_PAGE = 2000
"""Events that are read at once of a history that can be long."""
_jobs = schema.jobs.c
_events = schema.events.c


_number = itemgetter(0)
_marks = msgspec.msgpack.Decoder(Mark)


class Reader:
    """Read-only use of a store. Calls may come from any thread."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine

    @classmethod
    def open(cls, url: str) -> Reader:
        """Raises ``StoreRefused`` where there is no store of this version."""
        engine = make_engine(url, read_only=True)
        name = engine.url.database
        if engine.dialect.name == "sqlite" and not os.path.exists(name or ""):
            raise StoreRefused(f"store {name}: there is no store")
        try:
            with engine.connect() as connection:
                version = find_version(connection)
        except sa.exc.DBAPIError as error:
            raise refusal(error) from error
        if version != schema.HEAD:
            raise StoreRefused(f"store {name} is at version {version}, this lavad reads {schema.HEAD}")
        return cls(engine)

    def close(self) -> None:
        self.engine.dispose()

    def text_of(self, job: int) -> JobText | None:
        """The text of a job, live or finished."""
        return self.texts([job]).get(job)

    def texts(self, jobs: Iterable[int]) -> dict[int, JobText]:
        """The texts of those jobs that have one."""
        table = schema.texts.c
        return {
            job: codec.decode_text(job, data) for job, data in self._by_key(table.job, sa.select(table.job, table.data), jobs)
        }

    def text_sizes(self, jobs: Iterable[int]) -> dict[int, int]:
        """Bytes of the texts of those jobs that have one; none is read."""
        table = schema.texts.c
        return dict(tuple(row) for row in self._by_key(table.job, sa.select(table.job, sa.func.length(table.data)), jobs))

    def attached(self, key: int, number: int) -> str:
        """The data attached to a message of a job; "" for none."""
        table = schema.attachments.c
        found = self._one(sa.select(table.data).where(table.id == codec.row_id(key), table.number == number))
        return bytes(found).decode() if found is not None else ""

    def env(self, name: str) -> dict[str, str] | None:
        """The environment of this hash."""
        data = self._one(sa.select(schema.blobs.c.data).where(schema.blobs.c.hash == name))
        return None if data is None else codec.decode_env(name, data)

    def specs(self, numbers: Iterable[int]) -> dict[int, Spec]:
        """Specs by number."""
        table = schema.specs.c
        return {
            number: codec.decode_spec(number, data)
            for number, data in self._by_key(table.id, sa.select(table.id, table.data), numbers)
        }

    def finished_jobs(self, find: Find) -> list[Job]:
        """Last records of finished jobs and elements."""
        query = sa.select(_jobs.finished_at, _jobs.id, _jobs.data).where(*_conditions(find))
        order = (_jobs.finished_at.desc(), _jobs.id.desc()) if find.newest_first else (_jobs.id,)
        query = query.order_by(*order).limit(find.limit)
        if find.keys is None:
            return [codec.decode_job(row.data) for row in self._rows(query)]
        rows: list[Any] = []
        for some in _chunks(sorted(set(find.keys))):
            rows += self._rows(query.where(among(_jobs.id, [codec.row_id(key) for key in some])))
            # a query for each range: many in one make a database read the whole table
            for job in self._arrays([key for key in some if not key >> 32]):
                rows += self._rows(query.where(_range(job)))
        unique = {row.id: row for row in rows}.values()
        newest = find.newest_first
        ordered = sorted(unique, key=lambda row: (row.finished_at, row.id) if newest else row.id, reverse=newest)
        return [codec.decode_job(row.data) for row in islice(ordered, find.limit)]

    def finished_page(self, find: Find, after: int | None, down: bool, limit: int) -> list[Job | Array]:
        """What has finished by number (see ``listing``); of ``find`` user, queue, project and one key, an array's."""
        array = find.keys[0] if find.keys else 0
        return finished_page(self._rows, _conditions(find), array, after, down, limit)

    def finished_keys(self, since: float, user: str | None) -> list[int]:
        """Keys of jobs and elements that finished at this time or later; no record is read."""
        where = _conditions(Find(since=since, user=user))
        return [codec.row_id(row.id) for row in self._rows(sa.select(_jobs.id).where(*where))]

    def finished_marks(self, since: float, limit: int | None = None) -> list[Mark]:
        """As ``finished_keys``, with the columns needed for counts; at most ``limit``."""
        query = sa.select(_jobs.data).where(*_conditions(Find(since=since))).limit(limit)
        return [_marks.decode(row.data) for row in self._rows(query)]

    def finished_job(self, key: int) -> Job | None:
        """The last record of one finished job or element; of an array there is none."""
        data = self._one(sa.select(_jobs.data).where(_jobs.id == codec.row_id(key), *_conditions(Find())))
        return None if data is None else codec.decode_job(data)

    def worst_element(self, job: int) -> Job | None:
        """Of the finished elements of an array: the first that failed, else the first."""
        query = sa.select(_jobs.data).where(*_conditions(Find()), _range(job))
        data = self._one(query.order_by(_jobs.state == int(JobState.DONE), _jobs.id).limit(1))
        return None if data is None else codec.decode_job(data)

    def finished_array(self, job: int) -> Array | None:
        """The last record of an array whose elements have all finished."""
        return self.finished_arrays([job]).get(job)

    def finished_arrays(self, jobs: Iterable[int]) -> dict[int, Array]:
        """As ``finished_array``, of many by job id; those that are none are left out."""
        table = schema.arrays.c
        query = sa.select(table.job, table.data).where(table.finished_at.is_not(None))
        return {job: codec.decode_array(data) for job, data in self._by_key(table.job, query, jobs)}

    def ended_of(self, jobs: Iterable[int]) -> dict[int, Ended | None]:
        """Job id to the summary of its finished elements, for conditions; None: no such job."""
        return ended_of(self._rows, jobs)

    def id_named(self, name: str, user: str | None, since: float) -> tuple[int, ...]:
        """The newest finished job or array of this name, if there is one."""
        return id_named(self._rows, name, user, since)

    def named_alike(self, name: str, user: str | None, since: float, most: int) -> tuple[Jobs, EndedAlike]:
        """Finished jobs and arrays whose names begin so, and how those of them ended that are no arrays (``store.ended``)."""
        return named_alike(self._rows, name, user, since, most)

    def sums(self, asked: Asked) -> Sums:
        """Accounting of finished jobs."""
        return sums(self._rows, asked)

    def shares(self, asked: Asked) -> list[Share]:
        """Finished jobs by user, project and queue."""
        return shares(self._rows, asked)

    def wasteful(self, asked: Asked, most: int, gpus: bool) -> list[Wasteful]:
        """Finished jobs that wasted the most slots, or GPUs."""
        return wasteful(self._rows, asked, most, gpus)

    def pages(self, asked: Asked) -> Iterator[list[Job]]:
        """Finished jobs by id, a page at a time."""
        return pages(self._rows, asked)

    def events_of_many(self, jobs: Iterable[int]) -> dict[int, list[tuple[int, Event]]]:
        """As ``events_of``, for many jobs in few queries."""
        found: dict[int, list[tuple[int, Event]]] = {}
        for some in _chunks(jobs):
            query = sa.select(_events.job, _events.seq, _events.kind, _events.data).where(among(_events.job, some))
            for job, seq, kind, data in self._rows(query.order_by(_events.job, _events.seq)):
                if kind == "JobSubmitted":
                    found[job] = []  # it belongs to an older job with the same id
                found.setdefault(job, []).extend(codec.decode_events([(seq, data)]))
        return found

    def events_of(self, job: int) -> list[tuple[int, Event]]:
        """History of a job or array with its elements; an older job that had the same id is left out."""
        submitted = sa.select(sa.func.max(_events.seq)).where(_events.job == job, _events.kind == "JobSubmitted")
        return self._history(_events.job == job, _events.seq >= sa.func.coalesce(submitted.scalar_subquery(), 0))

    def events_between(self, start: float, end: float) -> Iterator[list[tuple[int, Event]]]:
        """Events with start <= at < end, in order, page by page."""
        bounds = sa.select(sa.func.min(_events.seq), sa.func.max(_events.seq)).where(_events.at >= start, _events.at < end)
        first, last = self._rows(bounds)[0]
        if first is None:
            return
        seq = self._one(sa.select(sa.func.max(_events.seq)).where(_events.seq < first)) or 0  # a row has the number of its last
        # by number: by time a database would sort all that is left for each page
        while seq < last and (page := self.events_after(seq, _PAGE)):
            seq = page[-1][0]
            yield [row for row in page if start <= row[1].at < end]

    def site_events(self, kinds: Iterable[str], start: float, end: float) -> list[tuple[int, Event]]:
        """Events of these kinds that are about no job, in order."""
        own = (_events.job.is_(None), _events.kind.in_(list(kinds)))
        return self._history(*own, _events.at >= start, _events.at < end)

    def events_after(self, seq: int, limit: int) -> list[tuple[int, Event]]:
        """The next ``limit`` events after number ``seq``, and what else their last row has: for replicas and replay."""
        query = sa.select(_events.seq, _events.data).where(_events.seq > seq).order_by(_events.seq).limit(limit)
        rows = self._rows(query)
        found = codec.decode_events(rows[: bisect_left(rows, seq + limit, key=_number) + 1])
        return found[bisect_right(found, seq, key=_number) :]  # of the first row some may be before

    def cycles_after(self, version: int, limit: int) -> list[RecordedCycle]:
        """The next ``limit`` recorded plans that were made after this version."""
        query = sa.select(schema.cycles).where(schema.cycles.c.version > version)
        return [RecordedCycle(*row) for row in self._rows(query.order_by(schema.cycles.c.version).limit(limit))]

    def params(self) -> Params:
        """The parameters of the configuration in force."""
        return self.conf().params

    def conf(self) -> Conf:
        """The configuration in force."""
        seq = self._one(sa.select(schema.meta.c.value).where(schema.meta.c.name == "configured"))
        rows = self._history(_events.seq == int(seq)) if seq is not None else []
        event = rows[0][1] if rows else None
        return event.conf if isinstance(event, Configured) else Conf()

    def kept_since(self) -> float:
        """The time up to which history may be gone; 0.0: all is there."""
        return prune.kept_since(self._rows)

    def began_before(self, at: float) -> bool:
        """Whether there is an event from before this time."""
        return self._one(sa.select(_events.seq).where(_events.at < at).limit(1)) is not None

    def due(self, jobs: Collection[int], before: float) -> set[int]:
        """Which of these jobs and arrays finished before this time."""
        return prune.due(self._rows, jobs, before) if before else set()

    def nth_newest(self, count: int) -> float:
        """When the job finished that as many have finished after; 0.0: there are not so many."""
        return prune.nth_newest(self._rows, count)

    def specs_named(self, before: float) -> Iterator[set[int]]:
        """The specs that jobs and events from before this time name, in pages."""
        return prune.specs_named(self._rows, before)

    def event_time(self, seq: int) -> float:
        """When the event of this number happened; 0.0: there is none."""
        found = self.events_after(seq - 1, 1)
        return found[0][1].at if found and found[0][0] == seq else 0.0

    def version(self) -> int:
        """Number of the newest event."""
        return int(self._one(sa.select(sa.func.max(_events.seq))) or 0)

    def _history(self, *where: sa.ColumnElement[bool]) -> list[tuple[int, Event]]:
        query = sa.select(_events.seq, _events.data).where(*where).order_by(_events.seq)
        return codec.decode_events(self._rows(query))

    def _by_key(self, key: sa.Column[int], query: Query, wanted: Iterable[int]) -> Found:
        rows: list[Any] = []
        for some in _chunks(wanted):
            rows += self._rows(query.where(among(key, some)))
        return rows

    def _arrays(self, jobs: list[int]) -> list[int]:
        """Which of some jobs are arrays."""
        table = schema.arrays.c
        return [row.job for row in self._rows(sa.select(table.job).where(among(table.job, jobs)))] if jobs else []

    def _one(self, query: Query) -> Any:
        rows = self._rows(query)
        return rows[0][0] if rows else None

    def _rows(self, query: Query) -> Found:
        for last in (False, True):
            try:
                with self.engine.connect() as connection:
                    return connection.execute(query).all()
            except sa.exc.DBAPIError as error:
                # a pooled connection may have died since its last use; a read can be repeated
                if last or not lost(error):
                    raise refusal(error) from error
        raise AssertionError


class BoundedReader(Reader):
    """For a query that others wait for: raises TooManyJobs where more than ``most`` finished jobs are asked for in one go."""

    def __init__(self, engine: sa.Engine, most: int) -> None:
        super().__init__(engine)
        self._most = most

    def finished_jobs(self, find: Find) -> list[Job]:
        """As of Reader."""
        return self._few(super().finished_jobs(replace(find, limit=self._limit(find.limit))))

    def finished_marks(self, since: float, limit: int | None = None) -> list[Mark]:
        """As of Reader."""
        return self._few(super().finished_marks(since, self._limit(limit)))

    def _limit(self, limit: int | None) -> int:
        """As many as tell whether there are too many."""
        return self._most + 1 if limit is None else min(limit, self._most + 1)

    def _few(self, found: T) -> T:
        if len(found) > self._most:
            raise TooManyJobs
        return found


def _chunks(numbers: Iterable[int]) -> Iterator[list[int]]:
    """As many as one query names."""
    found = list(numbers)
    return (found[at : at + _CHUNK] for at in range(0, len(found), _CHUNK))


def _range(job: int) -> sa.ColumnElement[bool]:
    return _jobs.id.between(job << 32, job << 32 | 0xFFFFFFFF)


def _conditions(find: Find) -> list[sa.ColumnElement[bool]]:
    where: list[sa.ColumnElement[bool]] = [_jobs.finished_at.is_not(None)]
    where += [
        column == value
        for column, value in ((_jobs.user, find.user), (_jobs.queue, find.queue), (_jobs.project, find.project))
        if value is not None
    ]
    if find.since is not None:
        where.append(_jobs.finished_at >= find.since)
    if find.done_since is not None and find.done_since != find.since:
        where.append(sa.or_(_jobs.state != int(JobState.DONE), _jobs.finished_at >= find.done_since))
    if find.until is not None:
        where.append(_jobs.finished_at < find.until)
    if find.name is not None:
        pattern = find.name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("*", "%")
        plain = _jobs.name.like(pattern, escape="\\")
        where.append(sa.or_(plain, _jobs.name.like(pattern + "[%]", escape="\\")))
    return where
