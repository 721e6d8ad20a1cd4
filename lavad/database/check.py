"""`lava db check`: whether a store is sound, and whether its rows are what its events say.

Rule: it reads one moment of a store that may be written to, and changes nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.invariants import BrokenInvariant, check_invariants
from lavad.core.events import Event, IllegalMove, JobRevived, JobSubmitted
from lavad.core.events.apply import apply
from lavad.core.job.job import Array, Job
from lavad.core.lang.ids import index_of, job_of, show
from lavad.local_time import local_time
from lavad.progress import Tell, silent
from lavad.store import prune, schema
from lavad.store.codec import decode_job
from lavad.store.connect import Found, Query, connect, make_engine, one_snapshot
from lavad.store.errors import StoreCorrupt, StoreRefused, refusal
from lavad.store.load import load_rows
from lavad.store.read import Reader
from lavad.store.rows import killed_jobs
from lavad.store.upgrade import check_known, find_version

_AT_ONCE = 1_000
_SHOWN = 20
"""How many differences of one kind are named."""
_COUNTED = ("events", "live_jobs", "jobs", "arrays", "specs", "hosts")


class Checked(msgspec.Struct):
    """What was found: the schema's version, rows of some tables, what is wrong, and what was not looked at."""

    version: str
    counts: dict[str, int]
    problems: list[str]
    notes: list[str]


class _Moment(Reader):
    """Reads everything within one transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        super().__init__(connection.engine)
        self._connection = connection

    def _rows(self, query: Query) -> Found:
        return self._connection.execute(query).all()


def check(url: str, tell: Tell = silent) -> Checked:
    """Check a store; raises ``StoreRefused`` where there is none of this version, ``StoreCorrupt`` where it cannot be read."""
    with _at_one_moment(url) as connection:
        name = connection.engine.url.database
        version = find_version(connection)
        if version is None:
            raise StoreRefused(f"store {name}: there is no store")
        if version != schema.HEAD:
            check_known(version)
            raise StoreRefused(f"store {name} is at version {version}, this lava checks {schema.HEAD} (lava db upgrade)")
        checked = Checked(version=version, counts={}, problems=[], notes=[])
        if connection.dialect.name == "sqlite":
            tell("looking whether the file is sound", 0, 0)
            found = connection.exec_driver_sql(f"PRAGMA integrity_check({_SHOWN})").scalars()
            checked.problems += [f"SQLite: {line}" for line in found if line != "ok"]
        for table in _COUNTED:
            counted = sa.select(sa.func.count()).select_from(schema.metadata.tables[table])
            checked.counts[table] = int(connection.execute(counted).scalar() or 0)
        if not checked.problems:
            try:
                _check_rows(connection, checked, tell)
            except StoreCorrupt as error:
                checked.problems.append(str(error))
        return checked


@contextlib.contextmanager
def _at_one_moment(url: str) -> Iterator[sa.Connection]:
    engine = make_engine(url, read_only=True)
    file = str(engine.url.database)
    if engine.dialect.name == "sqlite" and not os.path.exists(file):
        raise StoreRefused(f"store {file}: there is no store")
    try:
        with connect(engine) as connection, connection.begin():
            one_snapshot(connection)
            yield connection
    except sa.exc.DBAPIError as error:
        raise refusal(error) from error
    finally:
        engine.dispose()


def _check_rows(connection: sa.Connection, checked: Checked, tell: Tell) -> None:
    tell("reading the live jobs", 0, 0)
    rows = load_rows(connection)
    try:
        check_invariants(rows)
    except BrokenInvariant as error:
        checked.problems.append(f"live records: {error}")
    since = prune.kept_since(lambda query: connection.execute(query).all())
    if since:
        day = local_time(since).strftime("%b %d %Y")
        checked.notes.append(f"events from before {day} were removed: the rows are not compared with the events")
        return
    _compare(connection, rows, checked.problems, tell)


class _Finished:
    """Digests of the last records of finished jobs, by the events."""

    def __init__(self) -> None:
        self._jobs: dict[int, int] = {}
        self._elements: dict[int, dict[int, int]] = {}
        """Job id to index to digest."""

    def put(self, job: Job) -> None:
        """A job or an element has finished."""
        mine = self._elements.setdefault(job_of(job.key), {}) if index_of(job.key) else self._jobs
        mine[job.key] = _digest(job)

    def forget(self, event: Event) -> None:
        """A finished job lives again, or its id was given to another."""
        if isinstance(event, JobSubmitted):
            self._jobs.pop(event.key, None)
            self._elements.pop(event.key, None)
        elif isinstance(event, JobRevived):
            self._jobs.pop(event.key, None)
            self._elements.get(job_of(event.key), {}).pop(event.key, None)

    def differing(self, rows: Iterable[bytes]) -> list[str]:
        """The jobs whose rows are others, or which have none, or of which the events say nothing."""
        found = []
        for data in rows:
            job = decode_job(data)
            mine = self._elements.get(job_of(job.key), {}) if index_of(job.key) else self._jobs
            if mine.pop(job.key, None) != _digest(job):
                found.append(show(job.key))
        left = [*self._jobs, *(key for mine in self._elements.values() for key in mine)]
        return found + [f"{show(key)} (no row)" for key in left]


def _compare(connection: sa.Connection, rows: Cluster, problems: list[str], tell: Tell) -> None:
    """Fold all events, and compare what they give with the rows."""
    fold, finished, reader = Cluster(), _Finished(), _Moment(connection)
    while found := reader.events_after(fold.version, _AT_ONCE):
        tell("events", fold.version, rows.version)
        for seq, event in found:
            if seq != fold.version + 1:
                problems.append(f"events: from number {fold.version + 1} on {seq - fold.version - 1} are missing")
                return
            try:
                _fold(fold, event, finished)
            except (KeyError, IllegalMove) as error:
                problems.append(f"event {seq} does not fit those before it: {error}")
                return
    tell("comparing the rows with the events", 0, 0)
    data = connection.execution_options(yield_per=_AT_ONCE).execute(sa.select(schema.jobs.c.data)).scalars()
    problems += _first(finished.differing(data), "finished jobs")
    problems += _first(_differing_tables(fold, rows), "live records")


def _fold(fold: Cluster, event: Event, finished: _Finished) -> None:
    apply(fold, event)
    finished.forget(event)
    for job in (*fold.finished.values(), *killed_jobs([event], {**fold.finished_arrays, **fold.arrays.rows})):
        finished.put(job)
    fold.forget_changes()


def _differing_tables(fold: Cluster, rows: Cluster) -> list[str]:
    found = []
    for name in ("jobs", "arrays", "hosts", "queues", "charges", "learnt", "paces", "tokens", "groups", "reservations"):
        theirs, ours = getattr(fold, name).rows, getattr(rows, name).rows
        differing = [key for key in {**theirs, **ours} if _differ(theirs.get(key), ours.get(key))]
        found += [f"{name} {show(key) if name in ('jobs', 'arrays') else key}" for key in differing]
    if fold.next_job != rows.next_job:
        found.append(f"the next job id ({rows.next_job}; by the events {fold.next_job})")
    if fold.conf != rows.conf:
        found.append("the configuration")
    return found


def _differ(theirs: object, row: object) -> bool:
    """Whether a live row is not what the events say. An older lavad's row has defaults in the fields that it does not know."""
    if theirs == row:
        return False
    if isinstance(theirs, Job) and isinstance(row, Job):
        return _of_before(theirs, stopper=not row.stopper, lease=bool(row.run and not row.run.lease)) != row
    if isinstance(theirs, Array) and isinstance(row, Array) and not row.stopper:
        return replace(theirs, stopper="") != row
    return True


def _of_before(job: Job, *, stopper: bool, lease: bool) -> Job:
    """A job without fields that came into the records when there were stores: those that are named."""
    if lease and job.run is not None:
        job = replace(job, run=replace(job.run, lease=0.0))
    return replace(job, stopper="") if stopper else job


def _digest(job: Job) -> int:
    """Of a finished job, by the values of its record: the bytes of a default that was written and of one that was not differ."""
    return hash(_of_before(job, stopper=True, lease=True))


def _first(differing: list[str], what: str) -> list[str]:
    if not differing:
        return []
    more = f" and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
    return [f"{what} are not what the events say: {', '.join(differing[:_SHOWN])}{more}"]
