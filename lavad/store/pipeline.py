"""Statements for PostgreSQL that are sent as they are made, as one transaction, and whose answers are waited for together.

What is sent up to a Sync is one transaction, without BEGIN and COMMIT: the error of a statement undoes those before it and skips
those behind it, and the Sync commits if there was none (PostgreSQL's documentation, "Message Flow", "Pipelining"). libpq is
called itself, by psycopg's own layer for that: a cursor takes longer for a statement than PostgreSQL does, and sends it alone.
"""

from __future__ import annotations

import select
from collections.abc import Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import sqlalchemy as sa

from lavad.store.arrays import Row
from lavad.store.connect import wrapped
from lavad.store.statements import Call

if TYPE_CHECKING:
    import psycopg
    from psycopg.pq.abc import PGconn, PGresult


_LIMITS = 17_00_00
"""The version of PostgreSQL from which it has ``transaction_timeout``."""
_LIMIT = "60s"
"""After which it ends a transaction of which it does not get the rest, as its master is frozen: no other one could go on."""


class InDoubt(Exception):
    """The connection was lost when all was sent: it is committed, or will be, or not."""


class Pipeline:
    """That of one connection, which is in no transaction. Statements are prepared when they are first needed."""

    def __init__(self, connection: sa.Connection) -> None:
        """Raises DBAPIError."""
        from psycopg.pq import ExecStatus

        self._status = ExecStatus
        self._connection = connection
        self._driver: psycopg.Connection[Row] = cast("Any", connection.connection.driver_connection)
        self._libpq: PGconn = self._driver.pgconn
        self._names: dict[str, bytes] = {}
        self._new: dict[str, bytes] = {}
        """Of statements that the transaction under way prepares: where it fails, they may be there or not."""
        self._numbers = count()
        self._sent = 0
        """Messages of the transaction under way that have an answer of their own."""
        self.limits = self._libpq.server_version >= _LIMITS
        """Whether PostgreSQL limits the time of a transaction."""
        if self.limits:
            with connection.begin():
                connection.exec_driver_sql(f"SET transaction_timeout = '{_LIMIT}'")

    def commit(self, calls: Iterable[Call]) -> None:
        """Carry out these as one transaction, the first of them while the others are made where the time of that has a limit.

        Raises DBAPIError: none of it is committed, nor will be; ``InDoubt``; what ``calls`` raises, and then the connection is
        to be closed.
        """
        import psycopg

        self._sent, self._new = 0, {}
        answers: list[PGresult] = []
        try:
            self._check_alive()
            self._libpq.enter_pipeline_mode()
            for call in calls if self.limits else list(calls):
                self._send(call)
                if self.limits:
                    self._libpq.flush()
        except psycopg.Error as error:
            # what was sent is not to be committed with what is sent next
            self._driver.close()
            raise wrapped(error, psycopg.Error, self._connection) from error
        try:
            self._exchange(answers)
        except psycopg.OperationalError as error:
            # answers come in order: an error of a statement, were it that the server ends the connection, is told before the Sync
            failure = self._failure(answers[: self._sent])
            if failure is None:
                raise InDoubt(str(error)) from error
        else:
            failure = self._failure(answers)
        if failure is not None:
            raise wrapped(failure, psycopg.Error, self._connection)
        self._names |= self._new

    def _check_alive(self) -> None:
        """Raises OperationalError where the server has closed the connection by now."""
        poll = select.poll()
        poll.register(self._libpq.socket, select.POLLIN)
        while poll.poll(0):
            self._libpq.consume_input()

    def _send(self, call: Call) -> None:
        text, values = call
        name = self._names.get(text) or self._new.get(text)
        if name is None:
            name = self._new[text] = b"lavad_%d" % next(self._numbers)
            self._libpq.send_prepare(name, text.encode())
            self._sent += 1
        self._libpq.send_query_prepared(name, values, [1] * len(values))
        self._sent += 1

    def _exchange(self, answers: list[PGresult]) -> None:
        """``answers`` gets the results of all that was sent. Raises OperationalError where the connection is lost."""
        libpq = self._libpq
        libpq.pipeline_sync()
        poll = select.poll()
        poll.register(libpq.socket, select.POLLIN | select.POLLOUT)
        while libpq.flush():
            if poll.poll()[0][1] & ~select.POLLOUT:
                libpq.consume_input()
        poll.modify(libpq.socket, select.POLLIN)
        while True:
            while libpq.is_busy():
                poll.poll()
                libpq.consume_input()
            answer = libpq.get_result()
            # None stands behind the results of each statement
            if answer is None:
                continue
            if answer.status == self._status.PIPELINE_SYNC:
                break
            answers.append(answer)
        libpq.exit_pipeline_mode()

    def _failure(self, answers: Sequence[PGresult]) -> psycopg.Error | None:
        """The error of the first that failed."""
        from psycopg.errors import error_from_result

        failed = (answer for answer in answers if answer.status == self._status.FATAL_ERROR)
        return next((error_from_result(answer, encoding=self._driver.info.encoding) for answer in failed), None)
