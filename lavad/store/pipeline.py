"""Statements for PostgreSQL that are sent all at once, as one transaction, and whose answers are waited for together.

What is sent up to a Sync is one transaction, without BEGIN and COMMIT: the error of a statement undoes those before it and skips
those behind it, and the Sync commits if there was none (PostgreSQL's documentation, "Message Flow", "Pipelining"). libpq is
called itself, by psycopg's own layer for that: a cursor takes longer for a statement than PostgreSQL does, and sends it alone.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import sqlalchemy as sa

from lavad.store.arrays import Row
from lavad.store.connect import wrapped
from lavad.store.statements import Call

if TYPE_CHECKING:
    import psycopg
    from psycopg.pq.abc import PGconn, PGresult


class InDoubt(Exception):
    """The connection was lost when all was sent: it is committed, or will be, or not."""


class Pipeline:
    """That of one connection, which is in no transaction. Statements are prepared when they are first needed."""

    def __init__(self, connection: sa.Connection) -> None:
        from psycopg.pq import ExecStatus

        self._status = ExecStatus
        self._connection = connection
        self._driver: psycopg.Connection[Row] = cast("Any", connection.connection.driver_connection)
        self._libpq: PGconn = self._driver.pgconn
        self._names: dict[str, bytes] = {}
        self._numbers = count()

    def commit(self, calls: Sequence[Call]) -> None:
        """Carry these out as one transaction. Raises DBAPIError: none of it is committed, nor will be; ``InDoubt``."""
        import psycopg

        try:
            self._check_alive()
            self._prepare(calls)
        except psycopg.Error as error:
            raise wrapped(error, psycopg.Error, self._connection) from error
        answers: list[PGresult] = []
        try:
            self._exchange(lambda: self._send(calls), answers)
        except psycopg.OperationalError as error:
            # answers come in order: an error of a statement, were it that the server ends the connection, is told before the Sync
            failure = self._failure(answers[: len(calls)])
            if failure is None:
                raise InDoubt(str(error)) from error
        else:
            failure = self._failure(answers)
        if failure is not None:
            raise wrapped(failure, psycopg.Error, self._connection)

    def _check_alive(self) -> None:
        """Raises OperationalError where the server has closed the connection by now."""
        poll = select.poll()
        poll.register(self._libpq.socket, select.POLLIN)
        while poll.poll(0):
            self._libpq.consume_input()

    def _prepare(self, calls: Sequence[Call]) -> None:
        """In a transaction of its own, as what a failed one was to prepare may be there or not."""
        new = {text: b"lavad_%d" % next(self._numbers) for text in {text for text, _ in calls} - self._names.keys()}
        if not new:
            return
        answers: list[PGresult] = []

        def send() -> None:
            for text, name in new.items():
                self._libpq.send_prepare(name, text.encode())

        self._exchange(send, answers)
        failure = self._failure(answers)
        if failure is not None:
            raise failure
        self._names |= new

    def _send(self, calls: Sequence[Call]) -> None:
        for text, values in calls:
            self._libpq.send_query_prepared(self._names[text], values, [1] * len(values))

    def _exchange(self, send: Callable[[], None], answers: list[PGresult]) -> None:
        """``answers`` gets the results of what ``send`` sends. Raises OperationalError where the connection is lost."""
        libpq = self._libpq
        libpq.enter_pipeline_mode()
        send()
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
