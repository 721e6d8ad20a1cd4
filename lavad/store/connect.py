"""Engines for the store's databases with the settings of each connection, and the lock file of SQLite stores.

SQLite: WAL, synchronous FULL, explicit BEGIN; one process writes a store, and the lock ends with its process. PostgreSQL: time
limits on everything (a frozen holder of a row would block a standby for good), and no server that may lose committed data.
Errors of the driver name no values of a statement, which may be a user's environment. ``among`` writes what each has for many
numbers.
"""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, cast

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.operators import in_op

from lavad.store import schema
from lavad.store.errors import StoreError, StoreHeld, StoreRefused, refusal
from lavad.store.filesystem import check_local
from proto.database_url import find_kind, why_no_database

if TYPE_CHECKING:
    import psycopg

Query = sa.Select[Any]
"""A query of whichever columns."""
Found = Sequence[Any]
Ask = Callable[[Query], Found]
"""Runs a query."""
_BUSY_MS = 10_000
_CONNECT_S = 10
_SETTINGS = {
    "statement_timeout": "30s",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "15s",
    "tcp_user_timeout": "15s",
}
_PING = "import sys; sys.path[:] = sys.argv[1:]; from psycopg import pq; print(int(pq.PGconn.ping(sys.stdin.buffer.read())))"
"""A process of its own: psycopg's ping holds the interpreter's lock until it has an answer, and no thread goes on meanwhile. Its
standard input may have a password."""


def parse_url(text: str) -> URL:
    """A store's URL; raises ``StoreRefused``."""
    if why := why_no_database(text):
        raise StoreRefused(f"store: {why}")
    try:
        url = make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        # neither the text nor the cause, which may have a password
        raise StoreRefused("store: this is not a database URL (dialect://user@host/database)") from None
    return url.set(drivername="sqlite" if find_kind(text) == "sqlite" else "postgresql+psycopg")


def make_engine(text: str, *, read_only: bool = False) -> sa.Engine:
    """An engine whose connections are set up; nothing is connected yet."""
    url = parse_url(text)
    if url.get_backend_name() == "sqlite":
        check_local(str(url.database))
        return _sqlite(url, read_only)
    return _postgres(url, read_only)


def _sqlite(url: URL, read_only: bool) -> sa.Engine:
    import sqlite3

    engine = sa.create_engine(url, hide_parameters=True, connect_args={"timeout": _BUSY_MS / 1000, "check_same_thread": False})

    def connected(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        # of an empty file only, before its first page is written: of another one it is a write, which a full disk refuses
        if not read_only and not connection.execute("PRAGMA page_count").fetchone()[0]:
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("PRAGMA query_only=ON" if read_only else "PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        # KiB; the kernel keeps what was written last, too: with 16 times as much a commit takes as long
        connection.execute("PRAGMA cache_size=-1000")
        connection.execute("PRAGMA case_sensitive_like=ON")

    def begun(connection: sa.Connection) -> None:
        driver: sqlite3.Connection = cast("Any", connection.connection.driver_connection)
        try:
            driver.execute("BEGIN" if read_only else "BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise wrapped(error, sqlite3.Error, connection) from error

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)
    return engine


def _postgres(url: URL, read_only: bool) -> sa.Engine:
    arguments = {
        "connect_timeout": _CONNECT_S,
        "tcp_user_timeout": 15_000,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "application_name": "lavad",
        "client_encoding": "utf8",
    }
    schema.use_postgresql()
    engine = sa.create_engine(url, hide_parameters=True, connect_args=arguments, pool_use_lifo=True)

    from psycopg.types.numeric import Int8Dumper

    def connected(connection: psycopg.Connection[object], _record: object) -> None:
        # one type for all ints: otherwise each mix of small and large ones makes a prepared statement of its own
        connection.adapters.register_dumper(int, Int8Dumper)
        was = connection.autocommit
        connection.autocommit = True
        for name, value in _SETTINGS.items():
            connection.execute(f"SET {name} = '{value}'")
        if read_only:
            connection.execute("SET default_transaction_read_only = on")
        else:
            # a statement may be planned while a table has few rows, and be kept when it has a million; what a plan without an
            # index is said to cost would have it compiled, which takes longer than it
            connection.execute("SET enable_seqscan = off")
            connection.execute("SET jit = off")
        connection.autocommit = was

    event.listen(engine, "connect", connected)
    return engine


def may_come(text: str) -> bool:
    """Whether a PostgreSQL that cannot be reached starts or is away: not one that takes connections, be it none of lavad's, nor
    one that was never asked, as the URL cannot be right. Waits ``_CONNECT_S`` seconds at most for each host of the URL. Where no
    process can be started to ask, it may come.
    """
    from psycopg import pq
    from psycopg.conninfo import make_conninfo

    url = parse_url(text)
    given = url.get_dialect()().create_connect_args(url)[1]
    info = make_conninfo("", **{**given, "connect_timeout": _CONNECT_S})
    words = [sys.executable, "-I", "-c", _PING, *sys.path]
    try:
        asked = subprocess.run(words, input=info, text=True, stdout=subprocess.PIPE, check=True)
    except (OSError, subprocess.CalledProcessError):
        return True
    return int(asked.stdout) in (pq.Ping.REJECT, pq.Ping.NO_RESPONSE)


def connect(engine: sa.Engine) -> sa.Connection:
    """A connection to a database that is durable and takes any text; raises ``StoreRefused`` or ``StoreCorrupt``."""
    try:
        connection = engine.connect()
        if engine.dialect.name == "postgresql":
            _prove_fit(connection)
        return connection
    except sa.exc.DBAPIError as error:
        raise _named(engine, error) from error


def wrapped(error: Exception, kind: type[Exception], connection: sa.Connection) -> sa.exc.DBAPIError:
    """As SQLAlchemy does with errors of statements that go through it; ``kind``: that of all errors of the driver."""
    away = connection.dialect.is_disconnect(cast("Any", error), cast("Any", connection.connection.driver_connection), None)
    found = sa.exc.DBAPIError.instance("", (), error, kind, connection_invalidated=away, dialect=connection.dialect)
    return cast("sa.exc.DBAPIError", found)


def _named(engine: sa.Engine, error: sa.exc.DBAPIError) -> StoreError:
    found = refusal(error)
    # a password may be among the options too
    name = engine.url.set(query={}).render_as_string(hide_password=True)
    return type(found)(f"{name}: {found}")


def _prove_fit(connection: sa.Connection) -> None:
    with connection.begin():
        for name in ("fsync", "synchronous_commit"):
            if connection.exec_driver_sql(f"SHOW {name}").scalar() == "off":
                connection.close()
                raise StoreRefused(f"store: PostgreSQL has {name} off and may lose what it has committed; set it on")
        encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
        # who only reads it may be moving it to another
        if encoding != "UTF8" and connection.exec_driver_sql("SHOW default_transaction_read_only").scalar() == "off":
            database = connection.engine.url.database
            connection.close()
            why = f"store: the database {database} has the encoding {encoding}, and lavad needs one of UTF8"
            raise StoreRefused(f"{why} (createdb --encoding UTF8 --template template0)")


def one_snapshot(connection: sa.Connection) -> None:
    """At the start of a transaction: everything is read as of now, for as long as it takes."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
        forever(connection)


def forever(connection: sa.Connection) -> None:
    """Lift the limits of time from a transaction that moves many rows."""
    for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
        connection.execute(sa.text(f"SET LOCAL {name} = 0"))


class FileLock:
    """An exclusive lock on ``path``.lock, held until ``release``."""

    def __init__(self, path: str) -> None:
        self.path = f"{path}.lock"
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreRefused(f"store {path}: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._file, 200, 0).decode(errors="replace").strip()
            os.close(self._file)
            raise StoreHeld(f"store {path} is in use by lavad ({holder or 'holder unknown'})") from error
        self._sign()

    def _sign(self) -> None:
        """Write the holder's name into the file; errors do not matter, as it is for information only."""
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        except OSError:
            pass

    def release(self) -> None:
        """Give the lock back; the file stays, as removing it would let two processes hold two files of one name."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class _Numbers(sa.types.TypeDecorator[Collection[int]]):
    """Integers as text: a list in JSON for SQLite, an array for PostgreSQL."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Collection[int] | None, dialect: sa.Dialect) -> str:
        text = ",".join(map(str, value or ()))
        return f"[{text}]" if dialect.name == "sqlite" else f"{{{text}}}"


class _Among(sa.BinaryExpression[bool]):
    """Of a column and numbers. Behind an expression of another kind SQLAlchemy writes ``= 1``, and SQLite uses no index."""

    inherit_cache = True


def among(column: sa.ColumnElement[int], numbers: Collection[int]) -> sa.ColumnElement[bool]:
    """Whether the column has one of these 64-bit integers, which are one parameter.

    With one for each, SQLAlchemy and psycopg make and read a text of thousands of words for each query, which takes them longer
    than the database takes to find the rows.
    """
    return _Among(column, sa.bindparam(None, numbers, type_=_Numbers()), in_op, type_=sa.Boolean())


@compiles(_Among, "sqlite")
def _of_sqlite(element: _Among, compiler: SQLCompiler, **how: object) -> str:
    column, numbers = (compiler.process(side, **how) for side in (element.left, element.right))
    return f"{column} IN (SELECT value FROM json_each({numbers}))"


@compiles(_Among, "postgresql")
def _of_postgresql(element: _Among, compiler: SQLCompiler, **how: object) -> str:
    column, numbers = (compiler.process(side, **how) for side in (element.left, element.right))
    return f"{column} = ANY(CAST({numbers} AS bigint[]))"
