"""Errors of the store, and their mapping from the errors of the drivers.

Rule: ``StoreRefused`` and its kinds promise that nothing was written; only ``OutcomeUnknown`` leaves that open.
psycopg is imported only where PostgreSQL is the store, SQLAlchemy where one is read: each takes a tenth of a second or more.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psycopg
    import sqlalchemy.exc as exc


class StoreError(Exception):
    """The message is one line."""


class StoreRefused(StoreError):
    """A known failure: nothing of the batch was written."""


class RecordRefused(StoreRefused):
    """The database cannot hold one of the batch's records: nothing of it was written, and without that record it may be."""


class AnsweredBefore(StoreRefused):
    """Asks of the batch have been answered before: nothing was written. ``answers``: by client uuid."""

    def __init__(self, answers: dict[str, bytes]) -> None:
        super().__init__("store: an ask was answered before")
        self.answers = answers


class StoreAway(StoreRefused):
    """The database cannot be reached, or has ended the connection: nothing of the batch was written."""


class StoreFull(StoreRefused):
    """No room on the disk: nothing of the batch was written."""


class Fenced(StoreRefused):
    """Another master holds the lease: nothing of the batch was written."""


class StoreHeld(StoreError):
    """Another process has this SQLite file open for writing."""


class OutcomeUnknown(StoreError):
    """The connection was lost in the commit: the batch may be there or not."""


class TooManyJobs(Exception):
    """A reader that is to read few jobs was asked for more."""


class StoreCorrupt(StoreError):
    """The store is damaged."""


_FULL = {sqlite3.SQLITE_FULL}
_IO = {sqlite3.SQLITE_IOERR}
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def refusal(error: exc.DBAPIError) -> StoreError:
    """The error of a transaction that was not committed."""
    import sqlalchemy.exc as exc

    origin = error.orig
    text = _line(origin)
    if isinstance(error, exc.DataError | exc.IntegrityError | exc.ProgrammingError):
        return RecordRefused(f"store: {text}")
    if isinstance(origin, sqlite3.Error):
        return _sqlite(origin, text)
    import psycopg

    if isinstance(origin, psycopg.Error):
        away = lost(error) or (isinstance(origin, psycopg.OperationalError) and not origin.sqlstate)
        return StoreAway(f"store: {text}") if away else _postgres(origin, text)
    return StoreRefused(f"store: {text}")


def _sqlite(origin: sqlite3.Error, text: str) -> StoreError:
    # the low byte is the primary result code
    code = getattr(origin, "sqlite_errorcode", 0) & 0xFF
    if code in _FULL:
        return StoreFull(f"store full: {text}")
    if code in _IO:
        return StoreFull(f"store full or disk failing: {text}")
    if code in _CORRUPT:
        return StoreCorrupt(f"store is corrupt: {text}")
    return StoreRefused(f"store: {text}")


def _postgres(origin: psycopg.Error, text: str) -> StoreError:
    state = origin.sqlstate or ""
    if state in ("53100", "58030"):
        return StoreFull(f"store full: {text}")
    if state in ("XX001", "XX002"):
        return StoreCorrupt(f"store is corrupt: {text}")
    if state.startswith("54"):  # program limit exceeded: a value is too long for an index, a row for a page
        return RecordRefused(f"store: {text}")
    return StoreRefused(f"store: {text}")


def at_commit(error: exc.DBAPIError) -> StoreError:
    """The error of the COMMIT itself; the outcome is known only where the database reported that it did not commit."""
    origin = error.orig
    if isinstance(origin, sqlite3.Error):
        # a failed fsync may or may not have left the frames on the disk
        known = getattr(origin, "sqlite_errorcode", 0) & 0xFF in _FULL | _CORRUPT | {sqlite3.SQLITE_BUSY}
    else:
        import psycopg

        # a transaction that was ended by its idle timeout had not received COMMIT
        idled = isinstance(origin, psycopg.errors.IdleInTransactionSessionTimeout)
        known = idled or (isinstance(origin, psycopg.Error) and bool(origin.sqlstate) and not lost(error))
    return refusal(error) if known else OutcomeUnknown(f"store: outcome of the commit unknown: {_line(origin)}")


def lost(error: exc.DBAPIError) -> bool:
    """Whether the connection is lost (SQLAlchemy does not notice when the server ended the session with an error message).

    So it is where its prepared statements are gone (26): psycopg has the server forget all of them after a rollback.
    """
    state = getattr(error.orig, "sqlstate", None) or ""
    return error.connection_invalidated or state.startswith(("57P", "08", "25P03", "25P04", "26"))


def _line(error: BaseException | None) -> str:
    """An error as one line (a driver's hints and positions come on further lines)."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
