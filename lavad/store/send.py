"""What a transaction of the writer sends before its COMMIT: a look at the lease, then the rows of a batch.

To PostgreSQL all of it goes at once, and one wait is for all of its answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec
import sqlalchemy as sa

from lavad.store.arrays import Row
from lavad.store.rows import Rows
from lavad.store.statements import Statements

if TYPE_CHECKING:
    import psycopg


class Sent(msgspec.Struct, frozen=True):
    """What the database said: the epoch of the lease, and whether it had the answer to an ask of the batch before.

    Of another epoch, or with such an answer, rows may not have been sent: the transaction has to be rolled back.
    """

    epoch: int
    answered: bool = False


def look(connection: sa.Connection, statements: Statements) -> Sent:
    """At the lease, whose epoch nobody can raise before this transaction ends."""
    return Sent(int(connection.exec_driver_sql(statements.epoch).scalar_one()))


def send(connection: sa.Connection, statements: Statements, rows: Rows, epoch: int) -> Sent:
    """All rows, for the master of this epoch. Raises DBAPIError, or as ``Write.calls``."""
    if connection.dialect.name == "postgresql":
        return _together(connection, statements, rows, epoch)
    sent = look(connection, statements)
    if sent.epoch != epoch:
        return sent
    if rows.answers and connection.exec_driver_sql(statements.answer.text, rows.answers).rowcount < len(rows.answers):
        return Sent(epoch, answered=True)
    for write, values in rows.writes:
        connection.exec_driver_sql(write.text, list(values))
    return sent


def _together(connection: sa.Connection, statements: Statements, rows: Rows, epoch: int) -> Sent:
    import psycopg

    driver: psycopg.Connection[Row] = cast("Any", connection.connection.driver_connection)
    held, cursor, answers = driver.cursor(), driver.cursor(), []
    failure: psycopg.Error | None = None
    try:
        with driver.pipeline():
            held.execute(statements.epoch)
            for text, values in statements.answer.calls(rows.answers):
                answers.append(driver.execute(text, values))
            for write, many in rows.writes:
                for text, values in write.calls(many):
                    cursor.execute(text, values)
    except psycopg.Error as error:
        failure = error
    # what another master wrote, or what there is of an ask that was answered, may be why a row was refused
    if held.description is not None:
        answered = all(one.rowcount >= 0 for one in answers) and sum(one.rowcount for one in answers) < len(rows.answers)
        sent = Sent(int(held.fetchall()[0][0]), answered)
        if failure is None or sent.epoch != epoch or answered:
            return sent
    if failure is None:
        raise AssertionError("a statement without a result")
    raise _wrapped(failure, connection)


def _wrapped(error: psycopg.Error, connection: sa.Connection) -> sa.exc.DBAPIError:
    """As SQLAlchemy does with errors of statements that go through it."""
    import psycopg

    away = connection.dialect.is_disconnect(cast("Any", error), cast("Any", connection.connection.driver_connection), None)
    found = sa.exc.DBAPIError.instance("", (), error, psycopg.Error, connection_invalidated=away, dialect=connection.dialect)
    return cast("sa.exc.DBAPIError", found)
