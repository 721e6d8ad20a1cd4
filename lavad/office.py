"""What a lavad does that has read its configuration: it opens the store, waits for the lease, and serves as master until it ends.

Wiring only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Literal, TypeVar

from config.model.site_params import SiteParams
from config.read.load import Loaded
from lavad.configure.database import database_url
from lavad.configure.resolve import resolve
from lavad.core.site.conf import Conf
from lavad.master.master import Master, MasterSettings, Stored, read_store
from lavad.rpc.certificates import BadCertificates, Certificates
from lavad.rpc.dispatch import Dispatch
from lavad.rpc.local import LocalServer
from lavad.rpc.server import CannotListen
from lavad.run_lock import RunLock, RunLocked
from lavad.services import masters_lease
from lavad.services.audit_file import SYSLOG
from lavad.services.masters_lease import LeaseLost
from lavad.services.watchdog import Watchdog
from lavad.store.backup import UNFINISHED
from lavad.store.connect import may_come, parse_url
from lavad.store.errors import Fenced, OutcomeUnknown, StoreAway, StoreError, StoreRefused
from lavad.store.lease import Lease
from lavad.store.refusals import Refusals
from lavad.store.schema import HEAD
from lavad.store.writer import Store
from proto.daemon import programs
from proto.daemon.workers import Workers
from proto.listen_address import is_loopback, split_address
from proto.localsocket import address, is_local, why_not_kept
from proto.whole_file import write_pid

log = logging.getLogger("lavad")
T = TypeVar("T")

STANDBY_PAUSE = 0.5
SPOOL = "/var/lib/lava-master"
FORMER_STORE = "/var/lib/lava/lavad.sqlite"
"""Where versions up to 0.1 had it, in a folder that root's daemons share."""


class Cannot(Exception):
    """Why lavad cannot start, in one line."""


def read_site(options: argparse.Namespace, loaded: Loaded) -> MasterSettings:
    """The site from the command line and lsf.conf. Raises Cannot."""
    params = loaded.config.params
    rundir = options.run or params.lava_rundir
    _make(rundir)
    database = database_url(params, options.database, options.database_file)
    if database.startswith(f"sqlite:///{params.lava_spooldir}/"):
        _make(params.lava_spooldir)
    _refuse_to_leave_a_store(database, params.lava_spooldir)
    listen = options.listen or (f"0.0.0.0:{params.lava_port}" if params.lava_tls_dir else address(rundir, _name(options.number)))
    if not params.lava_tls_dir and not is_local(listen):
        raise Cannot(f"{listen}: without LAVA_TLS_DIR lavad listens on a socket of this machine only (unix:PATH)")
    return MasterSettings(
        host=options.host,
        confdir=options.conf,
        rundir=rundir,
        database=database,
        address=listen,
        tls_folder=params.lava_tls_dir,
        certificates=_certificates(listen, params),
        lsf=loaded.config.lsf,
        heartbeat=float(params.lava_heartbeat),
        sample=float(params.lava_sample_period),
        hang=float(params.lava_hang_time),
        audit=_audit(params.lava_audit, params.lsf_logdir, params.lava_spooldir),
        metrics=_metrics(params.lava_metrics_address, params.lava_tls_dir),
        traces=bool(params.lava_traces),
        lease=params.masters_lease,
    )


def _make(folder: str) -> None:
    """Make a folder where there is none."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    if why := why_not_kept(folder):
        log.warning("%s", why)


def _refuse_to_leave_a_store(database: str, spooldir: str) -> None:
    """Raises Cannot where lavad would begin a new store, but that of an older version lies where its default was, or a restore
    was killed before there was one: agents end all jobs where they meet another store."""
    url = parse_url(database)
    if url.get_backend_name() == "sqlite" and not os.path.exists(wanted := str(url.database)):
        for left in Path(wanted).absolute().parent.glob(f"{UNFINISHED}*"):
            raise Cannot(f"a restore into {wanted} has not ended: run lava db restore again, or remove {left}")
    path = f"{spooldir}/lavad.sqlite"
    if spooldir == SPOOL and database == f"sqlite:///{path}" and os.path.exists(FORMER_STORE) and not os.path.exists(path):
        raise Cannot(f"the store is {FORMER_STORE}: move it to {spooldir} (docs/operations.md), or set LAVA_SPOOLDIR")


def _name(number: int) -> str:
    return "lavad" if number == 1 else f"lavad-{number}"


def _certificates(listen: str, params: SiteParams) -> Certificates | None:
    """Those of LAVA_TLS_DIR; None where agents come in through a socket of this machine."""
    try:
        return None if is_local(listen) else Certificates(params.lava_tls_dir, params.lava_cert_warn_days)
    except BadCertificates as error:
        raise Cannot(str(error)) from None


def _audit(named: str, logs: str, spool: str) -> str:
    """Where the audit goes: LAVA_AUDIT, else ``lava.audit`` beside the logs, or with what must survive a restart."""
    if named.upper() == "N":
        return ""
    return named if named in (SYSLOG,) or named.startswith("/") else f"{logs or spool}/{named or 'lava.audit'}"


def _metrics(listen: str, tls_folder: str) -> str:
    if not listen:
        return ""
    try:
        host, _ = split_address(listen)
    except ValueError as error:
        raise Cannot(f"LAVA_METRICS_ADDRESS {error}") from None
    if not is_loopback(host) and not tls_folder:
        raise Cannot(f"LAVA_METRICS_ADDRESS {listen}: without LAVA_TLS_DIR on loopback only")
    return listen


async def run(
    site: MasterSettings, loaded: Loaded, number: int, holder: str, opened: Store | StoreAway, closing: contextlib.ExitStack
) -> None:
    """Serve the local socket; be master whenever the lease can be had, until told to end. ``closing``: closes the store later."""
    office: list[Master] = []

    def dispatch() -> Dispatch | None:
        return office[0].dispatch if office else None

    name = _name(number)
    local = LocalServer(f"{site.rundir}/{name}.sock", site.host, dispatch)
    await local.start()
    write_pid(f"{site.rundir}/{name}.pid")
    watchdog = Watchdog()
    watchdog.tell("READY=1")
    beats = asyncio.ensure_future(watchdog.run(lambda: _lives(office)))
    ended = asyncio.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sign, ended.set)
    try:
        store = opened if isinstance(opened, Store) else await _wait_for_store(site.database, opened, ended)
        if store is None:
            return
        closing.callback(store.close)
        lease, leasing = Lease(store.engine), Workers("lease")
        conf, just_read = resolve(loaded.config), isinstance(opened, Store)
        while not ended.is_set():
            held, at_once = await _wait_for_lease(lease, leasing, holder, site.lease, ended)
            if held is not None:
                serving = _serve(site, conf, just_read and at_once, store, lease, leasing, held, office)
                await _hold_office(serving, ended)
                just_read = False
                office.clear()
                local.break_off()
                if ended.is_set():
                    await leasing.run(lease.release, held.epoch)
    finally:
        watchdog.tell("STOPPING=1")
        beats.cancel()
        local.close()


def _open(database: str) -> Store | StoreAway:
    """The store, or why its database is away. Raises StoreError, also where a server is there that does not let lavad in, and
    where the database is named so that there can be none.
    """
    try:
        return Store.open(database)
    except StoreAway as error:
        if may_come(database):
            return error
    try:
        return Store.open(database)  # a server that takes connections may have come in between
    except StoreAway as error:
        if may_come(database):
            return error
        raise


async def _wait_for_store(database: str, away: StoreAway, ended: asyncio.Event) -> Store | None:
    """The store once its database is there; None when told to end first. Raises StoreError."""
    refusals, opening = Refusals(log, "the store cannot be opened", "the store can be opened"), Workers("opening of the store")
    refusals.failed(away)
    while not ended.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STANDBY_PAUSE):
                await ended.wait()
        if (found := await _unless(ended, opening.begin(_open, database))) is None:
            return None
        if isinstance(found, Store):
            refusals.worked()
            return found
        refusals.failed(found)
    return None


async def _unless(ended: asyncio.Event, answer: asyncio.Future[T]) -> T | None:
    """The answer, which may take long; None when told to end first."""
    ending = asyncio.ensure_future(ended.wait())
    both: set[asyncio.Future[T] | asyncio.Future[Literal[True]]] = {ending, answer}
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()
    return answer.result() if answer.done() else None


async def _lives(office: list[Master]) -> None:
    """Returns while this lavad does what it is there for; a standby has to be there only."""
    if office:
        await office[0].engine.lives()


async def _wait_for_lease(
    lease: Lease, leasing: Workers, holder: str, seconds: float, ended: asyncio.Event
) -> tuple[masters_lease.Held | None, bool]:
    """The lease once this lavad has it, None when told to end first; whether the first try had it."""
    refusals, told = Refusals(log, "the lease cannot be asked for", "the lease can be asked for again"), False
    tries = 0
    while not ended.is_set():
        tries += 1
        try:
            held = await masters_lease.acquire(lease, leasing, holder, seconds)
            refusals.worked()
            if held is None and not told:
                told = await _tell_holder(lease, leasing)
        except StoreRefused as error:
            refusals.failed(error)
            held = None
        if held is not None:
            return held, tries == 1
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STANDBY_PAUSE):
                await ended.wait()
    return None, False


async def _tell_holder(lease: Lease, leasing: Workers) -> bool:
    """Say whom a standby waits for; False: it has just gone. Raises StoreRefused."""
    found = await leasing.run(lease.find_holder)
    if found:
        log.info("standby: %s has the masters' lease", found[0])
    return bool(found)


async def _serve(
    site: MasterSettings,
    conf: Conf,
    just_read: bool,
    store: Store,
    lease: Lease,
    leasing: Workers,
    held: masters_lease.Held,
    office: list[Master],
) -> None:
    """Serve as master, and hold the lease from before the store is read, which may take longer than the lease.

    ``conf``: as the files were at the start of this process. Unless that was just before, another may be in force since, and the
    files may have been changed, too.
    """
    async with asyncio.TaskGroup() as group:
        group.create_task(masters_lease.renew(lease, leasing, held, site.lease))
        reading = Workers("reading of the store")
        stored = await _read(store, reading, lease, leasing, held.epoch)
        holds = just_read or not stored.cluster.incarnation
        master = Master(site, store, stored, held, conf if holds else None, sys.stderr.buffer)
        group.create_task(master.serve())
        await master.ready.wait()
        office.append(master)


async def _read(store: Store, reading: Workers, lease: Lease, leasing: Workers, epoch: int) -> Stored:
    """Bring the store up to date, as only the holder of the lease may, and read it; Fenced where another has it by now.

    Raises ``StoreError`` for a store with which this master cannot work, as one that another has made newer; the lease is free
    again then.
    """
    try:
        former = await reading.run(store.take_over, epoch)
        if former is not None:
            log.info("the store was at version %s and is at %s now", former, HEAD)
        return await reading.run(read_store, store)
    except Fenced:
        raise
    except StoreError:
        with contextlib.suppress(StoreError):
            await leasing.run(lease.release, epoch)
        raise


async def _hold_office(work: Coroutine[None, None, None], ended: asyncio.Event) -> None:
    """Serve as master; returns when told to end, or when memory must be thrown away and the store read again."""
    serving = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(ended.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    for task in (stopping, serving):
        task.cancel()
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await serving
    except* (OutcomeUnknown, LeaseLost, Fenced) as group:
        log.warning("no longer master: %s", _first(group))


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first exception of a group, whatever groups it is in."""
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def serve(options: argparse.Namespace, loaded: Loaded) -> int:
    """Serve until told to end; exit 1 with one line where the daemon cannot start."""
    try:
        site = read_site(options, loaded)
        lock = RunLock(site.rundir, site.host, options.number)
        former = os.umask(0o077)  # environments and the store's secret are in it
        opened = _open(site.database)
        os.umask(former)
        if isinstance(opened, StoreAway) and options.no_wait:
            raise opened
    except (Cannot, RunLocked, StoreError, OSError) as error:
        print(f"lavad: {error}", file=sys.stderr)  # noqa: T201
        return 1
    status = 0
    programs.wait_by_files()
    closing = contextlib.ExitStack()
    try:
        asyncio.run(run(site, loaded, options.number, lock.holder, opened, closing))
    except* StoreError as failure:
        log.critical("the store failed: %s", _first(failure))
        status = 2
    except* CannotListen as failure:
        log.critical("lavad ends: %s", _first(failure))
        status = 1
    finally:
        closing.close()
        lock.release()
    return status
