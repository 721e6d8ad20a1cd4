"""The one writer of a store.

Rule: a batch is one transaction, written completely or not at all. A store that is full, refuses or
is fenced has written nothing. After ``OutcomeUnknown`` the caller must discard its state, load it again, and find out by uuid
which of its requests were answered.

To PostgreSQL a batch goes with its commit, and is carried out while the rest of it is still encoded. Where the connection is lost
when all was sent, it is sent again on a new one: as its events have numbers it can be there only once, and the database lets one
of both wait for the other, or refuses it.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import sqlalchemy as sa

from lavad.store import schema
from lavad.store.batch import Batch
from lavad.store.codec import decode_spec
from lavad.store.connect import FileLock, Found, Query, connect, make_engine
from lavad.store.errors import (
    AnsweredBefore,
    Fenced,
    OutcomeUnknown,
    RecordRefused,
    StoreAway,
    StoreCorrupt,
    StoreError,
    at_commit,
    lost,
    refusal,
)
from lavad.store.pipeline import InDoubt, Pipeline, Repeatable
from lavad.store.rows import Rows, StoredText
from lavad.store.send import Direct, calls, look, send
from lavad.store.statements import Call, Statements
from lavad.store.upgrade import migrate, open_schema

T = TypeVar("T")
Transaction = sa.RootTransaction | Direct
_MAX_NAMES = 100_000
_AT_ONCE = 2_000
_PAUSE = 0.1
"""Seconds between two looks whether the database is there again."""


class Store:
    """An open store. Calls may come from any thread; they wait for each other."""

    def __init__(self, engine: sa.Engine, lock: FileLock | None) -> None:
        self.engine = engine
        self.statements = Statements(engine.dialect)
        self._file_lock = lock
        self._busy = threading.Lock()
        self._connection: sa.Connection | None = None
        self._pipeline: Pipeline | None = None
        self.patience = 5.0
        """Seconds for which a database that was lost in a commit is looked for, to find out whether it was committed."""
        self._names: dict[int, tuple[str, str, str]] = {}
        self._top_job = 0

    @classmethod
    def open(cls, url: str, *, create: bool = True) -> Store:
        """Open for writing; ``create``: make the tables in an empty database.

        Raises ``StoreHeld``, ``StoreRefused`` (also for a store that is newer than this code) or ``StoreCorrupt``.
        """
        engine = make_engine(url)
        file = engine.url.database if engine.dialect.name == "sqlite" else None
        lock = FileLock(file) if file else None
        store = cls(engine, lock)
        try:
            if open_schema(store.connection(), create=create):
                store._find_top_job()
        except BaseException:
            store.close()
            raise
        return store

    def take_over(self, epoch: int) -> str | None:
        """Prepare for the commits of this epoch, whose lease the caller holds: run what migrations are missing.

        Returns the version before them, None: the tables were up to date. Raises as ``migrate``.
        """
        with self._busy:
            # the database may have been away: what is left of former connections is of no use then
            self._drop()
            self.engine.dispose()
            try:
                former = migrate(self.connection(), epoch)
            except StoreError:
                self._drop()
                raise
        self._find_top_job()
        return former

    def connection(self) -> sa.Connection:
        """The writer's connection; a new one if the last one was lost."""
        if self._connection is None:
            self._connection = connect(self.engine)
        return self._connection

    def commit(self, batch: Batch) -> Sequence[StoredText]:
        """Write a batch; returns its texts as they are stored. Raises ``StoreRefused`` (or a kind of it), ``OutcomeUnknown`` or
        ``StoreCorrupt``."""
        with self._busy:
            rows = Rows(batch, self.statements, self._spec_names, self._top_job)
            self._write(rows, batch.epoch)
            self._names.update(rows.new_names)
            self._top_job = rows.top_job
            return rows.texts

    def find_answer(self, uuid: str) -> bytes | None:
        """The stored answer to the ask of this client uuid."""
        query = sa.select(schema.answers.c.data).where(schema.answers.c.uuid == uuid)
        with self._busy:
            found = self._ask(query)
        return bytes(found[0][0]) if found else None

    def change(self, epoch: int, work: Callable[[sa.Connection], T]) -> T:
        """Carry out ``work`` in one transaction of the master of this epoch; raises as ``commit``."""
        with self._busy:
            transaction = self._open(epoch, lambda connection: look(connection, self.statements))
            try:
                found = work(self.connection())
            except sa.exc.DBAPIError as error:
                raise self._lost(error, transaction) from error
            except BaseException:
                transaction.rollback()
                raise
            self._end(transaction)
            return found

    def purge_cycles(self, before: float) -> int:
        """Delete some of the recorded inputs of plans from before this time; returns their number, 0: none left.

        The newest complete record from before it is kept, as later ones build on it.
        """
        cycles = schema.cycles.c
        whole = sa.select(sa.func.max(cycles.version)).where(cycles.anew, cycles.at < before).scalar_subquery()
        old = sa.select(cycles.version).where(cycles.version < whole).order_by(cycles.version).limit(_AT_ONCE)
        return self._delete(schema.cycles.delete().where(cycles.version.in_(old)))

    def _delete(self, statement: sa.Delete) -> int:
        with self._busy:
            try:
                with self.connection().begin():
                    return int(self.connection().execute(statement).rowcount)
            except sa.exc.DBAPIError as error:
                raise self._lost(error) from error

    def close(self) -> None:
        """Close the connections and give the lock file back."""
        with self._busy:
            self._drop()
            self.engine.dispose()
            if self._file_lock is not None:
                self._file_lock.release()

    def _find_top_job(self) -> None:
        # rows with any job id up to this one may exist already
        ids = [self._ask(sa.select(sa.func.max(table.c.id)))[0][0] or 0 for table in (schema.jobs, schema.live_jobs)]
        array = self._ask(sa.select(sa.func.max(schema.arrays.c.job)))[0][0] or 0
        self._top_job = max(*(found >> 32 for found in ids), array)

    def _spec_names(self, number: int) -> tuple[str, str, str]:
        names = self._names.get(number)
        if names is None:
            found = self._ask(sa.select(schema.specs.c.data).where(schema.specs.c.id == number))
            if not found:
                raise StoreCorrupt(f"store is corrupt: it has no spec {number}")
            spec = decode_spec(number, found[0][0])
            if len(self._names) >= _MAX_NAMES:
                self._names.clear()
            names = self._names[number] = (spec.user, spec.queue, spec.project)
        return names

    def _ask(self, query: Query) -> Found:
        for last in (False, True):
            try:
                connection = self.connection()
                with connection.begin():
                    return connection.execute(query).all()
            except sa.exc.DBAPIError as error:
                failure = self._lost(error)
                if last or not lost(error):
                    raise failure from error
        raise AssertionError

    def _write(self, rows: Rows, epoch: int) -> None:
        try:
            if self.engine.dialect.name == "postgresql":
                self._write_at_once(Repeatable(calls(self.statements, rows, epoch)), rows, epoch)
            else:
                writes = list(rows.writes())
                self._end(self._open(epoch, lambda connection: send(connection, self.statements, writes, epoch), Direct))
        except (UnicodeEncodeError, OverflowError) as error:
            raise RecordRefused(f"store: a record cannot be written: {error}") from error
        except RecordRefused:
            # what another master wrote, or what there is of an ask that was answered, may be why
            self._check_lease(epoch)
            known = self._known_answers(rows.uuids)
            if known:
                raise AnsweredBefore(known) from None
            raise

    def _write_at_once(self, sent: Iterable[Call], rows: Rows, epoch: int) -> None:
        try:
            self._send(sent)
        except InDoubt as doubt:
            if not self._settle(sent, rows, epoch):
                raise OutcomeUnknown(f"store: outcome of the commit unknown: {doubt}") from doubt

    def _send(self, sent: Iterable[Call]) -> None:
        """Once; again on a new connection if the old one is lost, and it is known that it did not commit. Raises InDoubt."""
        for last in (False, True):
            try:
                connection = self.connection()
                self._pipeline = self._pipeline or Pipeline(connection)
                self._pipeline.commit(sent)
                return
            except sa.exc.DBAPIError as error:
                failure = self._lost(error)
                if last or not lost(error):
                    raise failure from error
            except BaseException:
                self._drop()
                raise

    def _settle(self, sent: Iterable[Call], rows: Rows, epoch: int) -> bool:
        """Send what is in doubt until it is there; False: that cannot be found out."""
        until = time.monotonic() + self.patience
        while rows.first is not None:
            try:
                self._send(sent)
                return True
            except (InDoubt, StoreAway):
                if time.monotonic() > until:
                    break
                threading.Event().wait(_PAUSE)
            except StoreError:
                return self._has(*rows.first, epoch)
        return False

    def _has(self, seq: int, data: bytes, epoch: int) -> bool:
        """Whether the store has this event of the master of this epoch, who holds the lease; nobody else writes any."""
        held = sa.select(schema.lease.c.epoch).scalar_subquery()
        try:
            found = self._ask(sa.select(schema.events.c.data).where(schema.events.c.seq == seq, held == epoch))
        except StoreError:
            return False
        return bool(found) and bytes(found[0][0]) == data

    def _check_lease(self, epoch: int) -> None:
        held = self._ask(sa.select(schema.lease.c.epoch))[0][0]
        if held != epoch:
            raise _fenced(epoch, held)

    def _known_answers(self, uuids: list[str]) -> dict[str, bytes]:
        table = schema.answers.c
        found = self._ask(sa.select(table.uuid, table.data).where(table.uuid.in_(uuids)))
        return {uuid: bytes(data) for uuid, data in found}

    def _open(
        self,
        epoch: int,
        work: Callable[[sa.Connection], int],
        begin: Callable[[sa.Connection], Transaction] = sa.Connection.begin,
    ) -> Transaction:
        """A transaction that ``work`` has begun, again on a new connection if the old one is lost, as COMMIT was not sent yet.

        ``work`` returns the epoch of the lease. Raises Fenced if that is not this epoch.
        """
        for last in (False, True):
            transaction: Transaction | None = None
            try:
                transaction = begin(self.connection())
                held = work(self.connection())
            except sa.exc.DBAPIError as error:
                failure = self._lost(error, transaction)
                if last or not lost(error):
                    raise failure from error
                continue
            except BaseException:
                if transaction is not None:
                    transaction.rollback()
                raise
            if held == epoch:
                return transaction
            transaction.rollback()
            raise _fenced(epoch, held)
        raise AssertionError

    def _end(self, transaction: Transaction) -> None:
        try:
            transaction.commit()
        except sa.exc.DBAPIError as error:
            self._drop()
            raise at_commit(error) from error

    def _lost(self, error: sa.exc.DBAPIError, transaction: Transaction | None = None) -> StoreError:
        """Roll back a failed transaction; returns the error to raise."""
        if lost(error):
            self._drop()
        elif transaction is not None:
            try:
                transaction.rollback()
            except sa.exc.DBAPIError:
                self._drop()
        return refusal(error)

    def _drop(self) -> None:
        """Close the connection; the next call makes a new one."""
        connection, self._connection, self._pipeline = self._connection, None, None
        if connection is not None:
            try:
                connection.invalidate()
                connection.close()
            except sa.exc.SQLAlchemyError:
                pass


def _fenced(epoch: int, held: int) -> Fenced:
    return Fenced(f"store: this master's epoch is {epoch}, but the lease is at {held}")


_NAME = "secret"


def secret(store: Store) -> bytes:
    """32 random bytes that live as long as the store; keys of single attempts are derived from them."""
    name, value = schema.meta.c.name, schema.meta.c.value
    try:
        with connect(store.engine) as connection, connection.begin():
            found = connection.execute(sa.select(value).where(name == _NAME)).scalar()
            if found is None:
                found = secrets.token_hex(32)
                connection.execute(sa.insert(schema.meta).values(name=_NAME, value=found))
    except sa.exc.DBAPIError as error:
        raise refusal(error) from error
    return bytes.fromhex(str(found))


def newest_answers(store: Store, count: int) -> dict[str, bytes]:
    """Client uuid to answer, oldest first."""
    answers = schema.answers.c
    query = sa.select(answers.uuid, answers.data).order_by(answers.at.desc()).limit(count)
    try:
        with connect(store.engine) as connection, connection.begin():
            rows = connection.execute(query).all()
    except sa.exc.DBAPIError as error:
        raise refusal(error) from error
    return {uuid: bytes(data) for uuid, data in reversed(rows)}
