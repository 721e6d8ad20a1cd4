"""Copies of a store, as one SQLite file: from SQLite and PostgreSQL, while a master writes, and back into either.

Rule: a copy is of one moment, and appears under its name when it is whole and on the disk.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa

from lavad.progress import Tell, silent
from lavad.store import schema
from lavad.store.connect import connect, forever, make_engine, one_snapshot, parse_url
from lavad.store.errors import StoreCorrupt, StoreFull, StoreRefused, refusal
from lavad.store.upgrade import check_known, find_version, make_tables

_AT_ONCE = 2_000
UNFINISHED = ".lava-restore-"
"""How the folders are called in which restores work, beside the SQLite store that is to be."""
_SKIPPED = ("alembic_version",)


def backup(url: str, path: str, tell: Tell = silent) -> None:
    """Copy a store into a file, which only its owner can read; a file of that name is replaced, but for the store's own.

    Raises ``StoreError``.
    """
    _prove_other(url, path)
    with whole_file(path) as new:
        engine = make_engine(url, read_only=True)
        try:
            if engine.dialect.name == "sqlite":
                tell("copying the file", 0, 0)
                copy_file(str(engine.url.database), new)
            else:
                _dump(engine, new, tell)
        finally:
            engine.dispose()
        tell("looking whether the copy is sound", 0, 0)
        settle(new)


def _prove_other(url: str, path: str) -> None:
    """A store that its copy takes the place of is lost to the lavad that writes it, with all that it writes from then on."""
    store = parse_url(url)
    if store.get_backend_name() == "sqlite":
        with contextlib.suppress(OSError):  # there is none, or no store: both are said later
            if os.path.samefile(path, str(store.database)):
                raise StoreRefused(f"{path}: this is the store; the backup needs a file of its own")


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[str]:
    """A temporary name beside ``path``, whose file becomes ``path`` when the block has ended without an exception."""
    new = f"{path}.{os.getpid()}.part"
    try:
        try:
            os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            yield new
            sync(new)
            os.replace(new, path)
            sync(os.path.dirname(os.path.abspath(path)))
        except OSError as error:
            raise StoreRefused(f"{path}: {error.strerror or error}") from error
    finally:
        for name in (new, f"{new}-wal", f"{new}-shm", f"{new}-journal", f"{new}.lock"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


def sync(path: str) -> None:
    """Have a file, or the names of a folder, on the disk on return."""
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def copy_file(source: str, target: str) -> None:
    """Copy a SQLite store, which may be written to meanwhile, into an empty file."""
    if not os.path.exists(source):
        raise StoreRefused(f"store {source}: there is no store")
    with _named(source), contextlib.closing(_opened(source, "ro")) as old, contextlib.closing(_opened(target, "rw")) as new:
        old.backup(new)


def settle(path: str) -> None:
    """Put everything into the one file, and prove that it is sound; raises ``StoreCorrupt``."""
    with _named(path), contextlib.closing(_opened(path, "rw")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("PRAGMA journal_mode=DELETE")
        for (problem,) in database.execute("PRAGMA quick_check(1)"):
            if problem != "ok":
                raise StoreCorrupt(f"store {path} is corrupt: {problem}")


def _opened(path: str, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode={mode}", uri=True, timeout=30.0, isolation_level=None)


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Errors of SQLite as those of the store, with the file's name."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        kind = StoreCorrupt if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) else StoreRefused
        raise (StoreFull if code == sqlite3.SQLITE_FULL else kind)(f"store {path}: {error}") from error


def _dump(engine: sa.Engine, path: str, tell: Tell) -> None:
    """Copy a PostgreSQL store into an empty file, within one snapshot."""
    target = make_engine(f"sqlite:///{path}")
    try:
        with connect(engine) as source, source.begin():
            one_snapshot(source)
            version = find_version(source)
            if version is None:
                raise StoreRefused(f"store {engine.url.database}: there is no store")
            check_known(version)
            with target.connect() as connection, connection.begin():
                make_tables(connection, version)
                copy_rows(source, connection, tell)
    except sa.exc.DBAPIError as error:
        raise refusal(error) from error
    finally:
        target.dispose()


def fill(url: str, path: str, epoch: int, tell: Tell) -> None:
    """Replace everything in a PostgreSQL store, whose lease is held at ``epoch``, by what a file has; one transaction.

    The lease can be renewed until the very end, and not be taken. Raises ``StoreRefused`` where another has taken it.
    """
    engine, file = make_engine(url), make_engine(f"sqlite:///{path}", read_only=True)
    try:
        with connect(engine) as target, target.begin(), file.connect() as source, source.begin():
            forever(target)
            if target.execute(sa.text("SELECT epoch FROM lease WHERE id = 1 FOR KEY SHARE")).scalar() != epoch:
                raise StoreRefused(f"store {engine.url.database}: another has taken the lease")
            copy_rows(source, target, tell)
            free = "UPDATE lease SET epoch = greatest(epoch, :epoch), holder = '', expires = 0"
            target.execute(sa.text(free), {"epoch": epoch})
    except sa.exc.DBAPIError as error:
        raise refusal(error) from error
    finally:
        engine.dispose()
        file.dispose()


def copy_rows(source: sa.Connection, target: sa.Connection, tell: Tell = silent) -> None:
    """Replace the rows of all tables, the lease at last; both databases are at the same version."""
    there, here = sa.MetaData(), sa.MetaData()
    there.reflect(source)
    here.reflect(target)
    for name, table in sorted(there.tables.items(), key=lambda named: named[0] == schema.lease.name):
        if name in _SKIPPED:
            continue
        into = here.tables[name]
        target.execute(sa.delete(into))
        of = int(source.execute(sa.select(sa.func.count()).select_from(table)).scalar() or 0)
        rows = source.execution_options(yield_per=_AT_ONCE).execute(sa.select(table))
        for number, part in enumerate(rows.mappings().partitions(_AT_ONCE)):
            tell(f"copying the rows of {name}", number * _AT_ONCE, of)
            target.execute(sa.insert(into), [dict(row) for row in part])


def store_of_file(path: str) -> str:
    """The URL of a file that should be a backup; raises ``StoreRefused``."""
    try:
        with Path(path).open("rb") as file:
            begin = file.read(16)
    except OSError as error:
        raise StoreRefused(f"{path}: {error.strerror or error}") from error
    if begin != b"SQLite format 3\0":
        raise StoreRefused(f"{path}: not a backup of a store")
    return f"sqlite:///{os.path.abspath(path)}"
