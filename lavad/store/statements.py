"""The SQL text of the writer, one statement for each table and kind of write, for one dialect.

Both databases take several rows in a statement, as each statement that is run costs as much as a row: PostgreSQL any number, as
arrays (``arrays.py``), SQLite TOGETHER of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import sqlalchemy as sa

from lavad.store import schema
from lavad.store.arrays import Kind, Row, kind_of

TOGETHER = 16
"""Rows of a statement of SQLite. Python's other threads run on while it is carried out, and have to be waited for after it."""
Call = tuple[str, Sequence[bytes | None]]
"""A statement with its parameters, in binary form."""

_FEW = 3
"""So many rows are written one by one: an array costs PostgreSQL as much as some parameters."""
_AT_ONCE = 128
"""Rows of a statement: PostgreSQL is at work on one while the next is made."""
_BYTES = 32 << 20
"""Beyond this, rows of a statement are sent in two."""


class Write(msgspec.Struct, frozen=True):
    """A statement that writes rows, which are tuples in the order of its columns."""

    text: str
    """Of one row."""
    kinds: tuple[Kind, ...] = ()
    """Of the columns."""
    many: str = ""
    """Of many, in PostgreSQL as arrays of the columns, in SQLite of TOGETHER; "": there is none."""
    key: tuple[int, ...] = ()
    """Columns by which a later row takes the place of an earlier one; PostgreSQL refuses both in one statement."""

    def calls(self, rows: Sequence[Row]) -> Iterator[Call]:
        """Texts and their parameters, for PostgreSQL. Raises OverflowError, UnicodeEncodeError as ``Kind.pack``."""
        if not self.many or len(rows) <= _FEW:
            for row in rows:
                yield self.text, [kind.one(value) for kind, value in zip(self.kinds, row, strict=True)]
            return
        if self.key:
            rows = list({tuple([row[at] for at in self.key]): row for row in rows}.values())
        for at in range(0, len(rows), _AT_ONCE):
            for values in self._packed(rows[at : at + _AT_ONCE]):
                yield self.many, values

    def _packed(self, rows: Sequence[Row]) -> Iterator[list[bytes]]:
        packed = [kind.pack(column) for kind, column in zip(self.kinds, zip(*rows, strict=True), strict=True)]
        if len(rows) > 1 and sum(map(len, packed)) > _BYTES:
            half = len(rows) // 2
            yield from self._packed(rows[:half])
            yield from self._packed(rows[half:])
        else:
            yield packed


Columns = Sequence[sa.Column[object]]


def insert(table: sa.Table, dialect: sa.Dialect, conflict: str = "", key: tuple[int, ...] = ()) -> Write:
    """INSERT of new rows."""
    columns = list(table.columns)
    into = f"INSERT INTO {table} ({', '.join(_names(columns, dialect))})"
    marks = _marks(dialect, len(columns))
    row = f"({', '.join(marks)})"
    one = f"{into} VALUES {row}{conflict}"
    if dialect.name == "sqlite":
        return Write(one, many=f"{into} VALUES {', '.join([row] * TOGETHER)}{conflict}")
    kinds = tuple(map(kind_of, columns))
    # side by side they are read as they are; of FROM unnest(all of them) PostgreSQL makes tables first
    arrays = ", ".join(f"unnest({mark}::{kind.name}[])" for mark, kind in zip(marks, kinds, strict=True))
    return Write(one, kinds, f"{into} SELECT {arrays}{conflict}", key)


def insert_once(table: sa.Table, dialect: sa.Dialect) -> Write:
    """INSERT that leaves a row of the same primary key as it is."""
    return insert(table, dialect, " ON CONFLICT DO NOTHING")


def upsert(table: sa.Table, dialect: sa.Dialect) -> Write:
    """INSERT, or UPDATE of the row that has the primary key."""
    columns = list(table.columns)
    keys = list(table.primary_key.columns)
    others = _names([column for column in table.columns if column not in keys], dialect)
    values = ", ".join(f"{name} = excluded.{name}" for name in others)
    conflict = f" ON CONFLICT ({', '.join(_names(keys, dialect))}) DO UPDATE SET {values}"
    return insert(table, dialect, conflict, tuple(at for at, column in enumerate(columns) if column in keys))


def _delete(key: sa.Column[object], dialect: sa.Dialect, *, span: bool = False) -> Write:
    """DELETE of the rows that have a key, or (``span``) one from a first to a last."""
    marks, (name,) = _marks(dialect, 1 + span), _names([key], dialect)
    text = f"DELETE FROM {key.table} WHERE {name} "
    one, kind = text + ("BETWEEN {} AND {}" if span else "= {}").format(*marks), kind_of(key)
    many = "" if span or dialect.name == "sqlite" else f"{text}= ANY($1::{kind.name}[])"
    return Write(one, (kind,) * len(marks), many)


def _marks(dialect: sa.Dialect, count: int) -> list[str]:
    """Of parameters, as the driver of SQLite has them, and PostgreSQL itself."""
    return ["?" if dialect.name == "sqlite" else f"${number + 1}" for number in range(count)]


def _names(columns: Columns, dialect: sa.Dialect) -> list[str]:
    return [dialect.identifier_preparer.quote(column.name) for column in columns]


class Statements:
    """All of them."""

    def __init__(self, dialect: sa.Dialect) -> None:
        self.event = insert(schema.events, dialect)
        self.submitted = insert(schema.live_jobs, dialect)
        self.job = upsert(schema.live_jobs, dialect)
        self.job_gone = _delete(schema.live_jobs.c.id, dialect)
        self.revived = _delete(schema.jobs.c.id, dialect)
        self.finished = upsert(schema.jobs, dialect)
        self.array = upsert(schema.arrays, dialect)
        self.spec = upsert(schema.specs, dialect)
        self.text = upsert(schema.texts, dialect)
        self.attached = upsert(schema.attachments, dialect)
        self.env = insert_once(schema.blobs, dialect)
        self.host = upsert(schema.hosts, dialect)
        self.host_gone = _delete(schema.hosts.c.name, dialect)
        self.queue = upsert(schema.queues, dialect)
        self.group = upsert(schema.groups, dialect)
        self.reservation = upsert(schema.reservations, dialect)
        self.charge = upsert(schema.charges, dialect)
        self.learnt = upsert(schema.learnt, dialect)
        self.pace = upsert(schema.paces, dialect)
        self.tokens = upsert(schema.tokens, dialect)
        self.tokens_gone = _delete(schema.tokens.c.user, dialect)
        self.jobs_gone = _delete(schema.jobs.c.id, dialect, span=True)
        self.attached_gone = _delete(schema.attachments.c.id, dialect, span=True)
        self.array_gone = _delete(schema.arrays.c.job, dialect)
        self.text_gone = _delete(schema.texts.c.job, dialect)
        self.cycle = upsert(schema.cycles, dialect)
        self.answer = insert(schema.answers, dialect)
        self.meta = upsert(schema.meta, dialect)
        # KEY SHARE conflicts only with a take-over (FOR UPDATE), not with a renewal, which changes no key
        share = "" if dialect.name == "sqlite" else " FOR KEY SHARE"
        self.epoch = f"SELECT epoch FROM lease WHERE id = 1{share}"
        held = f"SELECT (epoch = $1::bigint)::int FROM lease WHERE id = 1{share}"
        self.guard = Write(f"SELECT 1 / coalesce(({held}), 0)", (kind_of(schema.lease.c.epoch),))
        """Of PostgreSQL: it fails unless the lease is at an epoch, and nobody can raise that before the transaction ends."""
