"""`lava db restore`: a backup becomes the store of a site again, as a new incarnation.

Rule: what the backup cannot know is never guessed. Job ids go on above all that may have been given since; queues are inactive
until an administrator has seen the hosts come back; attempts that the backup does not know are ended by their hosts.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial

import msgspec
import sqlalchemy as sa

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.events.apply import apply
from lavad.core.lang.states import STARTED
from lavad.database.held_lease import HOLDER, held_lease
from lavad.progress import Tell, silent
from lavad.store import schema
from lavad.store.backup import UNFINISHED, fill, settle, store_of_file, sync
from lavad.store.batch import batch_of
from lavad.store.connect import FileLock, parse_url
from lavad.store.errors import StoreError, StoreRefused
from lavad.store.lease import Lease
from lavad.store.load import RESTORING, load
from lavad.store.read import Reader
from lavad.store.writer import Store

SECONDS = 3600.0
"""For which the lease of a working copy is held, which nobody else has."""
LEAST_MARGIN = 1_000
"""Job ids that are left out at least."""
_WEEK = 7 * 86400.0


class Wanted(msgspec.Struct, frozen=True):
    """How to restore: over a store that is there; without making queues inactive; the first job id (0: found out)."""

    replace: bool = False
    hold: bool = True
    first_job: int = 0


class Restored(msgspec.Struct, frozen=True):
    """What was restored: the time of the newest event, counts, the first job id, the queues that were made inactive."""

    taken: float
    jobs: int
    started: int
    next_job: int
    queues: tuple[str, ...]
    kept: str = ""
    """Where the former SQLite store is."""


def restore(file: str, url: str, wanted: Wanted, now: float, tell: Tell = silent) -> Restored:
    """Restore a backup into a store without a master; raises ``StoreError``, and then nothing has changed."""
    target = parse_url(url)
    store_of_file(file)
    if target.get_backend_name() == "sqlite":
        return _into_sqlite(file, str(target.database), wanted, now, tell)
    return _into_postgres(file, url, wanted, now, tell)


def _into_sqlite(file: str, path: str, wanted: Wanted, now: float, tell: Tell) -> Restored:
    with contextlib.closing(_Lock(path)):
        former = os.path.exists(path)
        if former and not wanted.replace:
            raise StoreRefused(f"store {path}: there is a store; --replace puts the backup in its place and keeps it beside")
        first = max(wanted.first_job, _find_next_job(f"sqlite:///{path}") if former else 0)
        tell("copying the file", 0, 0)
        with _working_copy(file, os.path.dirname(os.path.abspath(path))) as copy:
            restored = _make_new(copy, wanted, first, now, tell)
            _take_owner(copy, path if former else os.path.dirname(os.path.abspath(path)))
            kept = _keep_former(path) if former else ""
            os.replace(copy, path)
            sync(os.path.dirname(os.path.abspath(path)))
    return msgspec.structs.replace(restored, kept=kept)


class _Lock(FileLock):
    def close(self) -> None:
        self.release()


def _take_owner(copy: str, like: str) -> None:
    """A store that root restores belongs to the account of lavad."""
    sync(copy)
    if os.geteuid() == 0:
        owner = os.stat(like)
        for name in (copy, f"{like}.lock"):
            with contextlib.suppress(FileNotFoundError):
                os.chown(name, owner.st_uid, owner.st_gid)


def _keep_former(path: str) -> str:
    """Give the store that is replaced another name beside its own, so that there is one under its own all the time."""
    kept = next(name for number in range(1, 10_000) if not os.path.exists(name := f"{path}.before-restore-{number}"))
    with contextlib.suppress(StoreError):
        settle(path)
    os.link(path, kept)
    for end in ("-wal", "-shm"):  # of one that is too damaged to be settled
        with contextlib.suppress(FileNotFoundError):
            os.replace(path + end, kept + end)
    return kept


def _into_postgres(file: str, url: str, wanted: Wanted, now: float, tell: Tell) -> Restored:
    store = Store.open(url)
    try:
        with held_lease(store) as epoch:
            store.take_over(epoch)
            with contextlib.closing(Reader.open(url)) as reader:
                former = reader.version()
            if former and not wanted.replace:
                raise StoreRefused(f"the store has {former} events; --replace deletes them")
            first = max(wanted.first_job, _find_next_job(url))
            with contextlib.nullcontext() if former else _marked(store, epoch):
                tell("copying the file", 0, 0)
                with _working_copy(file, tempfile.gettempdir()) as copy:
                    restored = _make_new(copy, wanted, first, now, tell)
                    fill(url, copy, epoch, tell)
    finally:
        store.close()
    return restored


@contextlib.contextmanager
def _marked(store: Store, epoch: int) -> Iterator[None]:
    """No master begins a history in this empty store until it is filled, which replaces the mark, or the restore is refused."""

    def mark(connection: sa.Connection, *, there: bool) -> None:
        connection.execute(sa.delete(schema.meta).where(schema.meta.c.name == RESTORING))
        if there:
            connection.execute(sa.insert(schema.meta).values(name=RESTORING, value="1"))

    store.change(epoch, partial(mark, there=True))
    try:
        yield
    except Exception:
        with contextlib.suppress(StoreError):
            store.change(epoch, partial(mark, there=False))
        raise


@contextlib.contextmanager
def _working_copy(file: str, folder: str) -> Iterator[str]:
    """A copy of the backup to work on, in a folder of its own that only we can enter."""
    try:
        work = tempfile.mkdtemp(prefix=UNFINISHED, dir=folder)
    except OSError as error:
        raise StoreRefused(f"{folder}: {error.strerror or error}") from error
    try:
        copy = os.path.join(work, "lavad.sqlite")
        shutil.copyfile(file, copy)
        os.chmod(copy, 0o600)
        yield copy
    except OSError as error:
        raise StoreRefused(f"{error.filename or file}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _make_new(copy: str, wanted: Wanted, first: int, now: float, tell: Tell) -> Restored:
    """Bring a copy of a backup up to date, and make a new incarnation of it, without a master."""
    tell("looking whether the backup is sound, and bringing it up to date", 0, 0)
    settle(copy)
    store = Store.open(f"sqlite:///{copy}", create=False)
    try:
        lease = Lease(store.engine)
        epoch = lease.acquire(HOLDER, SECONDS)
        if epoch is None:
            # a master held it when the backup was made
            lease.release(_epoch_of(store))
            epoch = lease.acquire(HOLDER, SECONDS)
        assert epoch is not None
        store.take_over(epoch)
        tell("reading the live jobs", 0, 0)
        cluster = load(store)
        with contextlib.closing(Reader.open(f"sqlite:///{copy}")) as reader:
            taken = _newest(reader)
            first = max(first, cluster.next_job + _margin(reader, taken, now))
        events = _events(cluster, taken, first, now, wanted.hold)
        for event in events:
            apply(cluster, event)
        batch = batch_of(cluster, events)
        batch.epoch = epoch
        store.commit(batch)
        lease.release(epoch)
    finally:
        store.close()
    settle(copy)
    started = sum(job.state in STARTED for job in cluster.jobs.rows.values())
    live = len(cluster.jobs.rows) + sum(len(array.pending) + len(array.held) for array in cluster.arrays.rows.values())
    queues = tuple(event.queue for event in events if isinstance(event, ev.QueueSwitched))
    return Restored(taken, live, started, cluster.next_job, queues)


def _events(cluster: Cluster, taken: float, first: int, now: float, hold: bool) -> list[ev.Event]:
    former = {**cluster.former, cluster.incarnation: taken}
    new = ev.StoreRestored(at=now, incarnation=secrets.token_hex(8), former=former, next_job=first)
    events: list[ev.Event] = [new]
    for queue in cluster.conf.queues if hold else ():
        row = cluster.queue_state(queue.name)
        if row.active:
            why = "restored from a backup"
            events.append(
                ev.QueueSwitched(at=now, queue=queue.name, open=row.open, active=False, by=HOLDER, comment=why, what="qinact")
            )
    return events


def _epoch_of(store: Store) -> int:
    with store.engine.connect() as connection:
        return int(connection.execute(sa.select(schema.lease.c.epoch)).scalar() or 0)


def _newest(reader: Reader) -> float:
    """The time of the newest event: what was acknowledged later may be missing in the store."""
    version = reader.version()
    found = reader.events_after(version - 1, 1)
    if not found:
        raise StoreRefused("the backup has no events: nothing was ever committed in it")
    return found[0][1].at


def _margin(reader: Reader, taken: float, now: float) -> int:
    """How many job ids may have been given since: twice those of as long a time before, at the rate of the last week."""
    week = len(reader.finished_keys(taken - _WEEK, None))
    return LEAST_MARGIN + int(2 * week * max(0.0, now - taken) / _WEEK)


def _find_next_job(url: str) -> int:
    """The next job id of a store that is to be replaced; 0 where it cannot be read any more."""
    try:
        with contextlib.closing(Reader.open(url)) as reader, reader.engine.connect() as connection:
            found = connection.execute(sa.select(schema.meta.c.value).where(schema.meta.c.name == "next_job")).scalar()
    except (StoreError, sa.exc.DBAPIError):
        return 0
    return int(found or 0)
