"""The SQL text of the writer, one statement for each table and kind of write, for one dialect.

SQLite runs a statement for each row; PostgreSQL takes many rows in one, as arrays (``arrays.py``), as each statement that it runs
costs it and its client more than the row itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat

import msgspec
import sqlalchemy as sa

from lavad.store import schema
from lavad.store.arrays import Kind, Packed, Row, kind_of

_FEW = 3
"""So many rows are written one by one: an array costs PostgreSQL as much as some parameters."""
_AT_ONCE = 1000
"""Rows of a statement."""
_BYTES = 32 << 20
"""Beyond this, rows of a statement are sent in two."""


class Write(msgspec.Struct, frozen=True):
    """A statement that writes rows, which are tuples in the order of its columns."""

    text: str
    """Of one row."""
    many: str = ""
    """Of many, as arrays of the columns; "": there is none."""
    kinds: tuple[Kind, ...] = ()
    """Of the columns."""
    key: tuple[int, ...] = ()
    """Columns by which a later row takes the place of an earlier one; PostgreSQL refuses both in one statement."""

    def calls(self, rows: Sequence[Row]) -> Iterator[tuple[str, Sequence[object]]]:
        """Texts and their parameters, for PostgreSQL. Raises OverflowError, UnicodeEncodeError as ``Kind.pack``."""
        if not self.many or len(rows) <= _FEW:
            yield from zip(repeat(self.text), rows, strict=False)
            return
        if self.key:
            rows = list({tuple([row[at] for at in self.key]): row for row in rows}.values())
        for at in range(0, len(rows), _AT_ONCE):
            yield from zip(repeat(self.many), self._packed(rows[at : at + _AT_ONCE]), strict=False)

    def _packed(self, rows: Sequence[Row]) -> Iterator[list[Packed]]:
        packed = [kind.pack(column) for kind, column in zip(self.kinds, zip(*rows, strict=True), strict=True)]
        if len(rows) > 1 and sum(map(len, packed)) > _BYTES:
            half = len(rows) // 2
            yield from self._packed(rows[:half])
            yield from self._packed(rows[half:])
        else:
            yield packed


Columns = Sequence[sa.Column[object]]


def insert(columns: Columns, dialect: sa.Dialect, conflict: str = "", key: tuple[int, ...] = ()) -> Write:
    """INSERT of new rows with these columns; the others are NULL."""
    into = f"INSERT INTO {columns[0].table} ({', '.join(_names(columns, dialect))})"
    mark = _mark(dialect)
    one = f"{into} VALUES ({', '.join(mark for _ in columns)}){conflict}"
    if dialect.name == "sqlite":
        return Write(one)
    kinds = tuple(map(kind_of, columns))
    arrays = ", ".join(f"{mark}::{kind.name}[]" for kind in kinds)
    return Write(one, f"{into} SELECT * FROM unnest({arrays}){conflict}", kinds, key)


def insert_once(table: sa.Table, dialect: sa.Dialect) -> Write:
    """INSERT that leaves a row of the same primary key as it is."""
    return insert(list(table.columns), dialect, " ON CONFLICT DO NOTHING")


def upsert(table: sa.Table, dialect: sa.Dialect, columns: Columns = ()) -> Write:
    """INSERT, or UPDATE of the row that has the primary key; columns that are not among ``columns``, if given, become NULL."""
    columns = columns or list(table.columns)
    keys = list(table.primary_key.columns)
    others = _names([column for column in table.columns if column not in keys], dialect)
    values = ", ".join(f"{name} = excluded.{name}" for name in others)
    conflict = f" ON CONFLICT ({', '.join(_names(keys, dialect))}) DO UPDATE SET {values}"
    return insert(columns, dialect, conflict, tuple(at for at, column in enumerate(columns) if column in keys))


def _delete(key: sa.Column[object], dialect: sa.Dialect, *, span: bool = False) -> Write:
    """DELETE of the rows that have a key, or (``span``) one from a first to a last."""
    mark, (name,) = _mark(dialect), _names([key], dialect)
    return Write(f"DELETE FROM {key.table} WHERE {name} " + (f"BETWEEN {mark} AND {mark}" if span else f"= {mark}"))


def _mark(dialect: sa.Dialect) -> str:
    return "?" if dialect.name == "sqlite" else "%s"


def _names(columns: Columns, dialect: sa.Dialect) -> list[str]:
    return [dialect.identifier_preparer.quote(column.name) for column in columns]


class Statements:
    """All of them."""

    def __init__(self, dialect: sa.Dialect) -> None:
        self.event = insert(list(schema.events.columns), dialect)
        self.submitted = insert(schema.LIVE, dialect)
        self.job = upsert(schema.jobs, dialect, schema.LIVE)
        self.finished = upsert(schema.jobs, dialect)
        self.array = upsert(schema.arrays, dialect)
        self.spec = insert(list(schema.specs.columns), dialect)
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
        self.tokens = upsert(schema.tokens, dialect)
        self.tokens_gone = _delete(schema.tokens.c.user, dialect)
        self.jobs_gone = _delete(schema.jobs.c.id, dialect, span=True)
        self.attached_gone = _delete(schema.attachments.c.id, dialect, span=True)
        self.array_gone = _delete(schema.arrays.c.job, dialect)
        self.text_gone = _delete(schema.texts.c.job, dialect)
        self.cycle = upsert(schema.cycles, dialect)
        self.answer = insert_once(schema.answers, dialect)
        self.meta = upsert(schema.meta, dialect)
        # KEY SHARE conflicts only with a take-over (FOR UPDATE), not with a renewal, which changes no key
        share = "" if dialect.name == "sqlite" else " FOR KEY SHARE"
        self.epoch = f"SELECT epoch FROM lease WHERE id = 1{share}"
