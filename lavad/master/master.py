"""The active master: builds, wires and starts everything that serves while this lavad holds the masters' lease."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec

from config.programs.as_admin import AsAdmin
from lavad.boottime import boottime
from lavad.committed import Committed
from lavad.configure.difference import differences
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control.office import take_office
from lavad.core.decide.report.report import decide_report
from lavad.core.job.reports import RefusedReport
from lavad.core.plan.volatile import Soft, SoftUpdate, all_of, forget, update
from lavad.core.site.conf import Conf
from lavad.engine import Engine
from lavad.hosts.job_text_cache import JobTextCache
from lavad.hosts.outbox import Outbox
from lavad.hosts.peek_requests import PeekRequests
from lavad.hosts.peek_service import PeekService
from lavad.hosts.sessions import Sessions
from lavad.replica import protocol as feed
from lavad.replica.publisher import Publisher
from lavad.replica.replicas import QueryProcess, ReplicaProcess
from lavad.replica.spawn import QUERY, SCHEDULER, seed_ahead
from lavad.rpc.admission import Admission
from lavad.rpc.certificate_watch import CertificateWatch
from lavad.rpc.certificates import Certificates, certificate_of
from lavad.rpc.dispatch import Dispatch
from lavad.rpc.report_stream import SetAside
from lavad.rpc.server import Listener, PeerAuth, serve
from lavad.services.audit import Audit
from lavad.services.audit_file import AuditFile
from lavad.services.disks import Disks, sqlite_folder
from lavad.services.event_log import EventLog
from lavad.services.exceptions.telling import Teller
from lavad.services.exceptions.watch import Exceptions
from lavad.services.fencing import Fencing
from lavad.services.goals.action import Actions
from lavad.services.goals.watch import GoalWatch, note_missed
from lavad.services.gpu_watch import GpuWatch
from lavad.services.hang_monitor import Hangs
from lavad.services.held_gpu_metrics import HeldWatch, gpus_of_running_jobs
from lavad.services.host_watch import HostWatch
from lavad.services.loops import Loops
from lavad.services.masters_lease import Held
from lavad.services.notices import Notices
from lavad.services.perfmon import Perfmon
from lavad.services.plans import Plans
from lavad.services.pruning import Pruning
from lavad.services.reconfiguration import Reconfiguration
from lavad.services.unknown_users import UnknownUsers
from lavad.services.waits import Waits
from lavad.store.load import load
from lavad.store.read import Reader
from lavad.store.writer import Store, newest_answers, secret
from proto.daemon import grpc_threads
from proto.daemon.large_pages import gather_soon
from proto.daemon.workers import Workers

if TYPE_CHECKING:
    from lavad.services.metrics import Metrics, Server
    from lavad.services.traces import Traces

log = logging.getLogger(__name__)

READS, READS_EACH = 6, 2
"""Reads of finished jobs at a time, and of them one user's."""


class MasterSettings(msgspec.Struct):
    """Settings of this master: host, folders, database, addresses, intervals in seconds."""

    host: str
    confdir: str
    rundir: str
    database: str
    address: str
    tls_folder: str = ""
    certificates: Certificates | None = None
    """None: agents come in through a socket of this machine."""
    lsf: dict[str, str] = {}
    heartbeat: float = 10.0
    sample: float = 10.0
    hang: float = 600.0
    """Seconds until a rank that hangs is named; 0: never."""
    audit: str = ""
    """Path of the audit file, or ``syslog``; "": none."""
    metrics: str = ""
    """Prometheus listen address, "": none."""
    traces: bool = False
    """Whether the life of jobs goes to a collector of OpenTelemetry."""
    lease: float = 20.0
    """Seconds of the masters' lease."""


class Stored(NamedTuple):
    """What a master reads from its store before it serves."""

    cluster: Cluster
    answers: dict[str, bytes]
    secret: bytes


def read_store(store: Store) -> Stored:
    """Takes long where the store is large or slow: not for the thread of the loop. Replicas that wait begin with what is read."""
    return Stored(load(store, lambda read: seed_ahead(lambda: feed.frame(read))), newest_answers(store, 1_000), secret(store))


class Master:
    """Serves until the lease is lost or the daemon is stopped.

    ``conf``: as the files are now; None: the store has what is in force, and the files are read again beside the service.
    """

    def __init__(
        self, site: MasterSettings, store: Store, stored: Stored, held: Held, conf: Conf | None, output: BinaryIO | None
    ) -> None:
        self.site = site
        self.epoch, self.leases, self._renewals = held.epoch, held.leases, held.refusals
        self.conf, self._has_read = conf or stored.cluster.conf, conf is not None
        self.soft = Soft()
        self.ready = asyncio.Event()
        # set once local commands can be answered
        self.server: Listener | None = None
        cluster = self.cluster = stored.cluster
        self.engine = Engine(cluster, store, time.time, stored.answers)
        reader = Reader.open(site.database)
        self.texts = JobTextCache(reader)
        self.sessions = Sessions()
        self.outbox = Outbox(cluster, self.sessions, self.texts, stored.secret, time.time, self._refused)
        self.waits = Waits(cluster)
        facts = feed.ReplicaSettings(
            master=site.host, lsf=site.lsf, database=site.database, confdir=site.confdir, cluster=self.conf.cluster
        )
        quiet = self.engine.quiet
        self.scheduler = ReplicaProcess(SCHEDULER, cluster, self._soft_now, facts, output, quiet)
        answering = ReplicaProcess(QUERY, cluster, self._soft_now, facts, output, quiet, lazy=True)
        self.queries = QueryProcess(answering, time.time)
        self._facts, self._output = facts, output
        self.traces = self._traces() if site.traces else None
        self.publisher = Publisher(self.scheduler, self.queries.process, hosts=lambda: len(cluster.hosts.rows))
        self.peeks = PeekRequests()
        outputs = PeekService(cluster, self.sessions, self.peeks, reader, Workers("reads of history", READS, READS_EACH))
        self.perfmon = Perfmon(cluster, time.time)
        self.audit_file = AuditFile(site.audit) if site.audit else None
        self.audit = Audit(self._write_audit, lambda: cluster.conf, time.time)
        self.reconfiguration = Reconfiguration(self.engine, site.host, site.confdir, time.time, self.audit)
        self.loops = Loops(self.engine, self.sessions, self.leases, store, time.time)
        self.dispatch = Dispatch(
            self.engine,
            self.texts,
            self.waits,
            self.queries,
            outputs,
            self.reconfiguration,
            stored.secret,
            self.perfmon,
        )
        self.unknown_users = UnknownUsers(self.engine)
        self.host_watch, self.gpu_watch = HostWatch(self.engine, time.time), GpuWatch(self.engine, time.time)
        self.pruning = Pruning(
            self.engine, store, reader, self.dispatch.lookups, self.epoch, site.lsf.get("LSB_SHAREDIR", ""), time.time
        )
        self.hangs = Hangs(self.engine, time.time, site.hang, site.sample)
        self.held = HeldWatch((cluster.jobs.rows[key] for key in cluster.promised), time.time)
        self._admit()
        self.metrics = self._metrics(cluster) if site.metrics else None
        self.metrics_server: Server | None = None
        counters = [self.perfmon.planned] if self.metrics is None else [self.perfmon.planned, self.metrics.planned]
        self.plans = Plans(self.engine, self.scheduler, self.queries, self.soft, self.publisher.plan, counters)
        self._listen(reader)

    def _admit(self) -> None:
        """Who is let in, and by which certificates."""
        site, certificates = self.site, self.site.certificates

        def why_not(pem: bytes) -> str:
            return "" if certificates is None else certificates.why_not(certificate_of(pem), time.time())

        def reloaded() -> None:
            if self.metrics_server is not None:
                self.metrics_server.reload()

        auth = PeerAuth(certificates is None, why_not)
        self.admission = Admission(auth, self.cluster, self.sessions, self._silence, self._lasting, site.host, time.time)
        self.set_aside = SetAside()
        self.watch: CertificateWatch | None = None
        if certificates is not None:
            known = self.cluster.hosts
            self.watch = CertificateWatch(certificates, self.sessions, time.time, reloaded, lambda host: host in known.rows)
        disks = Disks([*sqlite_folder(site.database), site.lsf.get("LSF_LOGDIR", "")])
        self.event_log = EventLog(self._output)
        sources = [
            self._renewals.notices,
            self._ending,
            self.admission.refused_lately,
            self.set_aside.notices,
            disks.notices,
            self.event_log.notices,
            self.reconfiguration.notices,
        ]
        self.notices = Notices(self.publish, sources)

    def _listen(self, reader: Reader) -> None:
        """Who hears of every commit, in this order."""
        as_admin = AsAdmin(self.site.lsf, lambda: self.cluster.conf.admins, os.geteuid() == 0)
        teller = Teller(as_admin, lambda: self.cluster.conf)
        self.exceptions = Exceptions(self.engine, self.soft, lambda: reader, teller, time.time)
        note, actions = partial(note_missed, self.engine), Actions(as_admin)
        self.goals = GoalWatch(self.cluster, self.soft, lambda: reader, actions, note, time.time)
        self.engine.ahead = self.publisher
        for listener in (
            self._forget,
            self.publisher.committed,
            self.outbox.committed,
            self.waits.committed,
            self.dispatch.changes.committed,
            self.hangs.committed,
            self.perfmon.committed,
            self.unknown_users.committed,
            self.loops.committed,
            self.host_watch.committed,
            self.gpu_watch.committed,
            self.exceptions.committed,
        ):
            self.engine.listen(listener)
        if self.metrics is not None:
            self.engine.listen(self.metrics.committed)
        if self.traces is not None:
            self.engine.listen(self.traces.committed)
        self.engine.listen(self.held.committed)
        self.engine.on_text(self.texts.seen)

    def _metrics(self, cluster: Cluster) -> Metrics:
        from lavad.services.metrics import Metrics

        ends = (lambda: {}) if self.watch is None else self.watch.ends
        gpus = partial(gpus_of_running_jobs, self.soft)
        return Metrics(cluster, self.held.gpu_held_idle_seconds, ends, lambda: self.set_aside.count, gpus)

    def _traces(self) -> Traces:
        from lavad.services.traces import Traces

        return Traces(self._facts, self.cluster, self.soft, self._output)

    def _soft_now(self) -> SoftUpdate:
        return all_of(self.soft)

    def _write_audit(self, entry: dict[str, object]) -> None:
        if self.audit_file is not None:
            self.audit_file.put(entry)

    def _forget(self, committed: Committed) -> None:
        """Drop the soft state of what is over."""
        forget(self.soft, self.cluster, committed.events, [job.key for job in committed.finished])

    def _refused(self, report: RefusedReport) -> None:
        """A start that no host can be told of."""
        told = self.engine.hand_in([lambda cluster, now: Decided(events=decide_report(cluster, report, now))])
        told.add_done_callback(lambda told: told.cancelled() or told.exception())

    def _ending(self) -> tuple[str, ...]:
        if self.watch is None or self.site.certificates is None:
            return ()
        unread = self.site.certificates.unread
        return (*self.watch.ending, unread) if unread else self.watch.ending

    def _silence(self, host: str) -> float:
        return self.leases.silence(host, boottime())

    def _lasting(self, host: str) -> list[int]:
        return self.leases.lasting(self.cluster, host, boottime())

    def publish(self, news: SoftUpdate) -> None:
        """Soft news from an agent or the scheduler."""
        update(self.soft, news)
        self.publisher.soft(news)
        if self.traces is not None:
            self.traces.take(news)
        self.hangs.take(news)
        self.gpu_watch.take(news)

    async def take_office(self) -> None:
        """The first commit of this master: its epoch, and the configuration if the files have changed."""
        fresh = ev.MasterStarted(at=time.time(), epoch=self.epoch, incarnation=secrets.token_hex(8), host=self.site.host)
        former = self.cluster.conf
        await self.engine.ask(lambda cluster, now: take_office(cluster, now, fresh, self.conf))
        if self.cluster.version > 2:
            self.audit.configured(None, "the master started", differences(former, self.cluster.conf))

    async def serve(self) -> None:
        """Run everything; ends with the first part that fails."""
        if self.metrics is not None:
            from lavad.services.metrics import Server

            self.metrics_server = Server(self.metrics, self.site.metrics, self.site.tls_folder)
        try:
            await self._serve()
        finally:
            if self.metrics_server is not None:
                await Workers("end of the metrics server").run(self.metrics_server.close)
            if self.server is not None:
                await self.server.close()
            self.audit.flush()
            if self.audit_file is not None:
                await Workers("end of the audit file").run(self.audit_file.close)

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.engine.run())
            await self.take_office()
            group.create_task(self.plans.run())
            group.create_task(self.queries.run())
            if self.site.lsf.get("LSB_SHAREDIR"):
                group.create_task(self.event_log.run(self._facts, self.queries.answers))
            if self.traces is not None:
                group.create_task(self.traces.run())
            if self.watch is not None:
                group.create_task(self.watch.run())
            group.create_task(self.notices.run())
            group.create_task(self.loops.hosts())
            group.create_task(self.loops.masters_lease())
            group.create_task(self.loops.overdue(self.outbox))
            group.create_task(self.loops.deadlines())
            group.create_task(self.loops.postponed())
            group.create_task(self.pruning.run())
            group.create_task(self.audit.run())
            group.create_task(self.loops.forget_cycles())
            group.create_task(self.loops.windows())
            group.create_task(self.loops.migrations())
            group.create_task(self.loops.groups())
            group.create_task(self.loops.orphans())
            group.create_task(self.loops.tokens())
            group.create_task(self.loops.rusage_decay())
            for watch in (self.hangs, self.unknown_users, self.host_watch, self.gpu_watch, self.exceptions, self.goals):
                group.create_task(watch.run())
            group.create_task(self.reconfiguration.run(at_once=not self._has_read))
            group.create_task(self.exceptions.run_hosts())
            group.create_task(self.loops.advance_reservations())
            group.create_task(self.loops.note_extension())
            group.create_task(Fencing(self.engine, self.leases, self.site.lsf.get("LAVA_FENCE", ""), os.geteuid() == 0).run())
            self.ready.set()
            gather_soon()
            await self._listen_to_agents()
            log.info("master of cluster %s, epoch %d, %s", self.conf.cluster, self.epoch, self.site.address)

    async def _listen_to_agents(self) -> None:
        """Local commands are answered by then: gRPC is loaded beside them."""
        loading = Workers("gRPC")
        await loading.run(grpc_threads.load)
        await loading.run(import_module, "lavad.rpc.agents")
        from lavad.rpc.agents import Agents, HostLinks

        agents = Agents(
            self.engine,
            HostLinks(self.sessions, self.outbox, self.peeks, self.leases),
            self.admission,
            self.dispatch,
            self.publish,
            (self.site.heartbeat, self.site.sample),
            self.host_watch,
            self.set_aside,
        )
        # referenced, as a gRPC server that is garbage-collected stops serving
        certificates = self.site.certificates
        self.server = await serve(agents, self.site.address, certificates.credentials() if certificates is not None else None)
