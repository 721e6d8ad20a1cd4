"""A transaction of the writer in SQLite: a look at the lease, then the rows of a batch. PostgreSQL has a ``Pipeline``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import sqlalchemy as sa

from lavad.store.connect import wrapped
from lavad.store.rows import Rows, Written
from lavad.store.statements import TOGETHER, Call, Statements

if TYPE_CHECKING:
    import sqlite3


class Direct:
    """A transaction of SQLite by the driver itself: with what SQLAlchemy does around one a commit takes 20 us more CPU."""

    def __init__(self, connection: sa.Connection) -> None:
        """Begin it. Raises DBAPIError."""
        self._connection = connection
        self._driver = driver_of(connection)
        # what is needed to undo a statement of several rows would be a file in most commits; what a migration sorts may be of any
        # size, and it has a connection of its own
        self._carry_out(lambda: self._driver.execute("PRAGMA temp_store=MEMORY"))
        self._carry_out(lambda: self._driver.execute("BEGIN IMMEDIATE"))

    def commit(self) -> None:
        """Raises DBAPIError."""
        self._carry_out(self._driver.commit)

    def rollback(self) -> None:
        """Raises DBAPIError."""
        self._carry_out(self._driver.rollback)

    def _carry_out(self, work: Callable[[], object]) -> None:
        import sqlite3

        try:
            work()
        except sqlite3.Error as error:
            raise wrapped(error, sqlite3.Error, self._connection) from error


def driver_of(connection: sa.Connection) -> sqlite3.Connection:
    """SQLite's own connection."""
    found: sqlite3.Connection = cast("Any", connection.connection.driver_connection)
    return found


def look(connection: sa.Connection, statements: Statements) -> int:
    """The epoch of the lease, which nobody can raise before this transaction ends."""
    return int(connection.exec_driver_sql(statements.epoch).scalar_one())


def send(connection: sa.Connection, statements: Statements, writes: Sequence[Written], epoch: int) -> int:
    """All rows, for the master of this epoch; returns that of the lease: of another one nothing is sent. Raises DBAPIError.

    By the driver itself: what SQLAlchemy does around a statement takes as long as SQLite for some rows.
    """
    import sqlite3

    driver = driver_of(connection)
    try:
        held = int(driver.execute(statements.epoch).fetchone()[0])
        if held == epoch:
            for write, values in writes:
                whole = len(values) - len(values) % TOGETHER if write.many else 0
                for at in range(0, whole, TOGETHER):
                    driver.execute(write.many, [*chain.from_iterable(values[at : at + TOGETHER])])
                driver.executemany(write.text, values[whole:])
    except sqlite3.Error as error:
        raise wrapped(error, sqlite3.Error, connection) from error
    return held


def calls(statements: Statements, rows: Rows, epoch: int) -> Iterator[Call]:
    """The same for PostgreSQL, which fails at the first where the lease is at another epoch. Raises as ``Write.calls``."""
    yield from statements.guard.calls([(epoch,)])
    for write, values in rows.writes():
        yield from write.calls(values)
