"""The hot statements as text for one dialect, made from the tables.

Rule: rows go to the driver as plain tuples in the order of a table's columns (through Core's own parameters a row costs
twice the CPU).
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from lavad.store import schema


def _insert(table: sa.Table, dialect: sa.Dialect) -> sqlite.Insert | postgresql.Insert:
    return sqlite.insert(table) if dialect.name == "sqlite" else postgresql.insert(table)


def _text(statement: sa.Insert, table: sa.Table, dialect: sa.Dialect) -> str:
    compiled = statement.compile(dialect=dialect)
    if compiled.positiontup != [column.name for column in table.columns]:
        raise AssertionError(f"columns of {table.name} out of order: {compiled.positiontup}")
    return str(compiled)


def insert(table: sa.Table, dialect: sa.Dialect) -> str:
    """INSERT of new rows."""
    return _text(_insert(table, dialect), table, dialect)


def insert_once(table: sa.Table, dialect: sa.Dialect) -> str:
    """INSERT that leaves a row of the same primary key as it is."""
    return _text(_insert(table, dialect).on_conflict_do_nothing(), table, dialect)


def upsert(table: sa.Table, dialect: sa.Dialect) -> str:
    """INSERT, or UPDATE of the row that has the primary key."""
    statement = _insert(table, dialect)
    keys = list(table.primary_key.columns)
    values = {column.name: statement.excluded[column.name] for column in table.columns if column not in keys}
    return _text(statement.on_conflict_do_update(index_elements=keys, set_=values), table, dialect)


class Statements:
    """One text per table and kind of write."""

    def __init__(self, dialect: sa.Dialect) -> None:
        self.event = insert(schema.events, dialect)
        self.job = upsert(schema.jobs, dialect)
        self.array = upsert(schema.arrays, dialect)
        self.spec = insert(schema.specs, dialect)
        self.text = upsert(schema.texts, dialect)
        self.env = insert_once(schema.blobs, dialect)
        self.host = upsert(schema.hosts, dialect)
        gone = sa.delete(schema.hosts).where(schema.hosts.c.name == sa.bindparam("name"))
        self.host_gone = str(gone.compile(dialect=dialect))
        self.queue = upsert(schema.queues, dialect)
        self.group = upsert(schema.groups, dialect)
        self.reservation = upsert(schema.reservations, dialect)
        self.charge = upsert(schema.charges, dialect)
        self.cycle = upsert(schema.cycles, dialect)
        self.answer = insert(schema.answers, dialect)
        self.meta = upsert(schema.meta, dialect)
        # KEY SHARE meets only a take-over (FOR UPDATE), not a renewal, which changes no key
        share = "" if dialect.name == "sqlite" else " FOR KEY SHARE"
        self.epoch = f"SELECT epoch FROM lease WHERE id = 1{share}"
