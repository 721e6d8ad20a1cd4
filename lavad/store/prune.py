"""Removes from the store what has been over for long: finished jobs with all that belongs to them, events of the site, and the
specs and environments that nothing names any more.

Rule: each function is the work of one short transaction, and takes a bounded number of rows. A job's own row goes last, so that
whatever comes between leaves a job that is found again, and never a job without its text or its spec. What a live job needs is
never due: its events and text have its id, and jobs that conditions of live jobs name are in ``kept``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from typing import cast

import msgspec
import sqlalchemy as sa

from lavad.core.events import JobModified, JobSubmitted, JobSwitched, StoreRestored, kind_of
from lavad.store import codec, schema
from lavad.store.connect import Ask, Query, among

JOBS = 100
ROWS = 1_000
"""Rows of one kind that a call removes at most."""
PAGE = 2_000
FREE_SHARE, FREE_LEAST = 10, 4_096
"""Pages of a SQLite file that stay free: a tenth, and at least 16 MB, so that the file does not shrink and grow all the time."""
_jobs, _events, _texts = schema.jobs.c, schema.events.c, schema.texts.c
_arrays, _specs = schema.arrays.c, schema.specs.c
_RESTORED = kind_of(StoreRestored)
_NAMING = [kind_of(kind) for kind in (JobSubmitted, JobModified, JobSwitched)]

Place = tuple[float, int]
"""When a job finished, and its row: where the next call goes on."""
START: Place = (0.0, -1)


class Step(msgspec.Struct, frozen=True):
    """What a call did. ``after``: where the next goes on; None: nothing is left."""

    rows: int
    after: Place | None


class _Naming(msgspec.Struct, gc=False):
    """Of a record or an event: the spec that it names."""

    spec: int = 0


_naming = msgspec.msgpack.Decoder(_Naming)


def drop_jobs(connection: sa.Connection, before: float, kept: Collection[int], after: Place) -> Step:
    """Jobs that finished before this time, oldest first; the elements of arrays go with their arrays."""
    query = sa.select(_jobs.finished_at, _jobs.id).where(*_between(_jobs.finished_at, _jobs.id, after, before))
    found = connection.execute(query.order_by(_jobs.finished_at, _jobs.id).limit(JOBS)).all()
    if not found:
        return Step(0, None)
    rows = [row.id for row in found if not row.id & 0xFFFFFFFF and row.id >> 32 not in kept]
    jobs = [row >> 32 for row in rows]
    gone = _drop_events(connection, jobs)
    if gone >= ROWS:
        return Step(gone, after)
    _drop_texts(connection, jobs)
    _drop_attached(connection, rows)
    gone += connection.execute(schema.jobs.delete().where(among(_jobs.id, rows))).rowcount if rows else 0
    return Step(gone, (found[-1].finished_at, found[-1].id))


def drop_arrays(connection: sa.Connection, before: float, kept: Collection[int], after: Place) -> Step:
    """As ``drop_jobs``, for arrays of which every element has finished; a part of one array at a time."""
    query = sa.select(_arrays.finished_at, _arrays.job).where(*_between(_arrays.finished_at, _arrays.job, after, before))
    found = connection.execute(query.order_by(_arrays.finished_at, _arrays.job).limit(1)).all()
    if not found:
        return Step(0, None)
    at, job = found[0]
    if job in kept:
        return Step(0, (at, job))
    gone = _drop_events(connection, [job])
    if gone >= ROWS:
        return Step(gone, after)
    mine = sa.select(_jobs.id).where(_jobs.id.between(job << 32, job << 32 | 0xFFFFFFFF)).limit(ROWS)
    rows = [row.id for row in connection.execute(mine)]
    if rows:
        _drop_texts(connection, [codec.row_id(row) for row in rows])
        _drop_attached(connection, rows)
        return Step(gone + connection.execute(schema.jobs.delete().where(among(_jobs.id, rows))).rowcount, after)
    _drop_texts(connection, [job])
    _drop_attached(connection, [job << 32])
    connection.execute(schema.arrays.delete().where(_arrays.job == job))
    return Step(gone + 1, (at, job))


def _drop_events(connection: sa.Connection, jobs: Sequence[int]) -> int:
    if not jobs:
        return 0
    some = sa.select(_events.seq).where(among(_events.job, jobs)).limit(ROWS)
    return connection.execute(schema.events.delete().where(_events.seq.in_(some))).rowcount


def _drop_attached(connection: sa.Connection, rows: Sequence[int]) -> None:
    if rows:
        connection.execute(schema.attachments.delete().where(among(schema.attachments.c.id, rows)))


def _drop_texts(connection: sa.Connection, keys: Sequence[int]) -> None:
    """Texts, and the environments that no other text names."""
    if not keys:
        return
    named = [row.env for row in connection.execute(sa.select(_texts.env).where(among(_texts.job, keys), _texts.env.is_not(None)))]
    connection.execute(schema.texts.delete().where(among(_texts.job, keys)))
    if named:
        hashes = schema.blobs.c.hash
        used = sa.select(_texts.job).where(_texts.env == hashes)
        connection.execute(schema.blobs.delete().where(hashes.in_(sorted(set(named))), ~used.exists()))


def drop_site_events(connection: sa.Connection, before: float) -> int:
    """Events of hosts, queues, specs and masters; returns their number, 0: none is left.

    The configuration in force stays, and restorations of the store, which lsb.events is continued by.
    """
    old = sa.select(_events.seq).where(_events.at < before)
    newest = connection.execute(old.order_by(_events.at.desc(), _events.seq.desc()).limit(1)).scalar()
    if newest is None:
        return 0
    names = schema.meta.c
    configured = connection.execute(sa.select(names.value).where(names.name == "configured")).scalar()
    last = connection.execute(sa.select(sa.func.max(_events.seq))).scalar()
    stay = [int(seq) for seq in (configured, last) if seq is not None]
    gone = (
        _events.job.is_(None),
        _events.seq <= newest,
        _events.seq.not_in(stay),
        _events.at < before,
        _events.kind != _RESTORED,
    )
    some = sa.select(_events.seq).where(*gone).order_by(_events.seq).limit(ROWS)
    return connection.execute(schema.events.delete().where(_events.seq.in_(some))).rowcount


def drop_gone(connection: sa.Connection) -> int:
    """Job groups and advance reservations that are no more: nobody reads their rows. Returns their number, 0: none is left."""
    gone = 0
    for table in (schema.groups, schema.reservations):
        some = sa.select(table.c.name).where(table.c.gone.is_(True)).limit(ROWS)
        gone += connection.execute(table.delete().where(table.c.name.in_(some))).rowcount
    return gone


def drop_answers(connection: sa.Connection, before: float) -> int:
    """Answers given before this time; returns their number, 0: none is left."""
    answers = schema.answers.c
    some = sa.select(answers.uuid).where(answers.at < before).limit(ROWS)
    return connection.execute(schema.answers.delete().where(answers.uuid.in_(some))).rowcount


def retire_specs(connection: sa.Connection, live: Collection[int], now: float, after: int, upto: int) -> int | None:
    """Note since when specs of numbers above ``after`` and below ``upto`` are not among the ``live`` ones, which never come back.

    Returns where the next call goes on; None: nothing is left.
    """
    current = sa.select(_specs.id).where(_specs.retired.is_(None), _specs.id > after, _specs.id < upto)
    found = [row.id for row in connection.execute(current.order_by(_specs.id).limit(PAGE))]
    over = [number for number in found if number not in live]
    if over:
        connection.execute(schema.specs.update().where(among(_specs.id, over)).values(retired=now))
    return found[-1] if found else None


def drop_specs(connection: sa.Connection, before: float, named: Collection[int], after: int) -> tuple[int, int | None]:
    """Specs that were retired before this time and are not ``named``; the newest stays, as its number counts on.

    Returns (how many, where the next call goes on; None: nothing is left).
    """
    query = sa.select(_specs.id).where(_specs.retired < before, _specs.id > after).order_by(_specs.id).limit(ROWS)
    found = [row.id for row in connection.execute(query)]
    newest = connection.execute(sa.select(sa.func.max(_specs.id))).scalar()
    due = [number for number in found if number not in named and number != newest]
    if due:
        connection.execute(schema.specs.delete().where(among(_specs.id, due)))
    return len(due), found[-1] if found else None


def specs_named(ask: Ask, before: float) -> Iterator[set[int]]:
    """The specs that old jobs and events name which are still there: of long jobs, and of arrays that are not over. In pages."""
    at: Place | None = START
    while at is not None:
        query = sa.select(_jobs.finished_at, _jobs.id, _jobs.data).where(*_between(_jobs.finished_at, _jobs.id, at, before))
        rows = ask(query.order_by(_jobs.finished_at, _jobs.id).limit(PAGE))
        at = (rows[-1].finished_at, rows[-1].id) if rows else None
        yield {_naming.decode(row.data).spec for row in rows}
    arrays: Query = sa.select(_arrays.data).where(_arrays.finished_at < before)
    yield {_naming.decode(row.data).spec for row in ask(arrays)}
    at = START
    while at is not None:
        of_jobs = sa.select(_events.at, _events.seq, _events.kind, _events.data).where(_events.job.is_not(None))
        rows = ask(of_jobs.where(*_between(_events.at, _events.seq, at, before)).order_by(_events.at, _events.seq).limit(PAGE))
        at = (rows[-1].at, rows[-1].seq) if rows else None
        yield {_naming.decode(row.data).spec for row in rows if row.kind in _NAMING}


def _between(at: sa.Column[float], key: sa.Column[int], after: Place, before: float) -> list[sa.ColumnElement[bool]]:
    """Rows after a place and before a time; the first conditions are what an index serves."""
    later = sa.or_(at > after[0], key > after[1])
    return [at.is_not(None), at >= after[0], at < before, later]


def shrink(connection: sa.Connection) -> int:
    """Give some free pages of a SQLite file back to the file system; how many, 0: enough for now."""
    if connection.dialect.name != "sqlite":
        return 0
    free, pages = (int(connection.exec_driver_sql(f"PRAGMA {name}").scalar() or 0) for name in ("freelist_count", "page_count"))
    if free <= max(FREE_LEAST, pages // FREE_SHARE):
        return 0
    driver = cast(sqlite3.Connection, connection.connection.driver_connection)
    for _ in range(min(ROWS, free)):  # one at a time: Python 3.11 ends a statement without columns after its first step
        driver.execute("PRAGMA incremental_vacuum(1)").fetchall()
    return free - int(connection.exec_driver_sql("PRAGMA freelist_count").scalar() or 0)


def note(connection: sa.Connection, before: float) -> None:
    """Remember that what was over before this time may be gone, before any of it goes."""
    meta = schema.meta.c
    connection.execute(schema.meta.delete().where(meta.name == SINCE))
    connection.execute(schema.meta.insert().values(name=SINCE, value=repr(before)))


SINCE = "history_since"


def kept_since(ask: Ask) -> float:
    """The time up to which history may be gone; 0.0: all is there."""
    found = ask(sa.select(schema.meta.c.value).where(schema.meta.c.name == SINCE))
    return float(found[0][0]) if found else 0.0


def nth_newest(ask: Ask, count: int) -> float:
    """When the job finished that as many have finished after; 0.0: there are not so many."""
    query = sa.select(_jobs.finished_at).where(_jobs.finished_at.is_not(None)).order_by(_jobs.finished_at.desc())
    found = ask(query.offset(count).limit(1))
    return float(found[0][0]) if found else 0.0


def due(ask: Ask, jobs: Collection[int], before: float) -> set[int]:
    """Which of these jobs and arrays finished before this time."""
    wanted = sorted(jobs)
    found: set[int] = set()
    for at in range(0, len(wanted), ROWS):
        some = wanted[at : at + ROWS]
        rows = ask(sa.select(_jobs.id).where(among(_jobs.id, [job << 32 for job in some]), _jobs.finished_at < before))
        found |= {row.id >> 32 for row in rows}
        found |= {row.job for row in ask(sa.select(_arrays.job).where(among(_arrays.job, some), _arrays.finished_at < before))}
    return found
