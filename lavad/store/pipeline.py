"""Statements for PostgreSQL that are sent one behind the other, as one transaction, and whose answers are waited for together.

What is sent up to a Sync is one transaction, without BEGIN and COMMIT: the error of a statement undoes those before it and skips
those behind it, and the Sync commits if there was none (PostgreSQL's documentation, "Message Flow", "Pipelining"). libpq is
called itself, by psycopg's own layer for that: a cursor takes longer for a statement than PostgreSQL does, and sends it alone.
"""

from __future__ import annotations

import select
from collections.abc import Iterable, Iterator, Sequence
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


class Repeatable:
    """Statements that are made when they are first gone through, and can be gone through again."""

    def __init__(self, calls: Iterator[Call]) -> None:
        self._left = calls
        self._made: list[Call] = []

    def __iter__(self) -> Iterator[Call]:
        yield from self._made
        for call in self._left:
            self._made.append(call)
            yield call


_WORTH = 2048
"""Bytes of values that are worth to be sent while the next statement is made."""


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
        self._poll = select.poll()
        self._poll.register(self._libpq.socket, select.POLLIN)

    def commit(self, calls: Iterable[Call]) -> None:
        """Carry these out as one transaction. Raises DBAPIError: none of it is committed, nor will be; ``InDoubt``.

        The first is sent before the others are made, so that the server is awake and at work meanwhile. What is raised where one
        is made is let through: nothing is committed, and the connection is of no use any more.
        """
        import psycopg

        new: dict[str, bytes] = {}
        sent = unsent = 0
        try:
            self._check_alive()
            self._libpq.enter_pipeline_mode()
            for text, values in calls:
                unsent += sum([len(value) for value in values if value])
                first = not sent
                sent += self._send(text, values, new)
                if first or unsent >= _WORTH:
                    self._libpq.flush()
                    unsent = 0
        except psycopg.Error as error:
            raise wrapped(error, psycopg.Error, self._connection) from error
        answers: list[PGresult] = []
        try:
            self._libpq.pipeline_sync()
            self._take(answers)
        except psycopg.OperationalError as error:
            # answers come in order: an error of a statement, were it that the server ends the connection, is told before the Sync
            failure = self._failure(answers[:sent])
            if failure is None:
                raise InDoubt(str(error)) from error
        else:
            failure = self._failure(answers)
        if failure is not None:
            raise wrapped(failure, psycopg.Error, self._connection)
        self._names |= new

    def _check_alive(self) -> None:
        """Raises OperationalError where the server has closed the connection by now."""
        while self._poll.poll(0):
            self._libpq.consume_input()

    def _send(self, text: str, values: Sequence[bytes | None], new: dict[str, bytes]) -> int:
        """Returns how many answers there will be: a statement that is not known is prepared first.

        It gets a name in ``new``, as what a transaction that fails was to prepare may be there or not.
        """
        name, answers = self._names.get(text) or new.get(text), 1
        if name is None:
            name, answers = b"lavad_%d" % next(self._numbers), 2
            new[text] = name
            self._libpq.send_prepare(name, text.encode())
        self._libpq.send_query_prepared(name, values, [1] * len(values))
        return answers

    def _take(self, answers: list[PGresult]) -> None:
        """``answers`` gets the results of what was sent up to the Sync. Raises OperationalError where the connection is lost."""
        libpq, poll = self._libpq, self._poll
        while libpq.flush():
            poll.modify(libpq.socket, select.POLLIN | select.POLLOUT)
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
