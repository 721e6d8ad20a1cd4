"""The servicer for agents: a host's one stream, and commands that a host's agent relays for its users."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, NamedTuple

import grpc
import msgspec

from lavad.boottime import boottime
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.leases import shortest_lease
from lavad.core.cluster.over import which_are_over
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control.hosts import greeted
from lavad.core.decide.control.strays import Stray, tell_strays
from lavad.core.job.job import Attempt, Job
from lavad.core.job.places import places_of
from lavad.core.job.reports import EndedReport, GoneReport, PartReport, RefusedReport
from lavad.core.job.resize import uid_of
from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import show
from lavad.core.plan.volatile import SoftUpdate, of_live_parts
from lavad.core.rules.copy_hosts import unneeded
from lavad.engine import Engine
from lavad.hosts.leases import Leases
from lavad.hosts.outbox import Outbox
from lavad.hosts.peek_requests import PeekRequests
from lavad.hosts.sessions import Session as HostSession
from lavad.hosts.sessions import Sessions
from lavad.rpc.admission import Admission
from lavad.rpc.dispatch import Dispatch
from lavad.rpc.gang_reports import GangReports
from lavad.rpc.report_stream import ReportStream, SetAside
from lavad.rpc.server import certificate_in
from lavad.services.host_watch import HostWatch
from lavad.wire import calls, decode, encode
from lavad.wire.decode import CommandFrame, FromAgent, Reports
from lavad.wire.encode import OrderMessage, ToAgent
from lavad.wire.records import Copies, Heartbeat, Hello, KillOrder, PartStatus, PeekData, Welcome, WorkFolders
from proto import agent_pb2_grpc
from proto.version import PROTOCOL

log = logging.getLogger(__name__)

STALE_SHOWN = 20
"""How many attempts that are ended a line of the log names."""

if TYPE_CHECKING:
    Context = grpc.aio.ServicerContext[FromAgent, ToAgent]


class HostLinks(NamedTuple):
    """The streams to hosts: those that are open, what goes out, who waits for an answer, and how long each host counts."""

    sessions: Sessions
    outbox: Outbox
    peeks: PeekRequests
    leases: Leases


class Agents(agent_pb2_grpc.AgentsServicer):
    """Serves all hosts."""

    def __init__(
        self,
        engine: Engine,
        links: HostLinks,
        admission: Admission,
        dispatch: Dispatch,
        publish: Callable[[SoftUpdate], None],
        periods: tuple[float, float],
        watch: HostWatch,
        set_aside: SetAside,
    ) -> None:
        self._watch = watch
        self._engine = engine
        self._sessions, self._outbox, self._peeks, self._leases = links
        self._admission = admission
        self._dispatch = dispatch
        self._publish = publish
        self._periods = periods
        self._set_aside = set_aside
        self._gangs = GangReports(engine)
        self._gpu_errors: dict[str, str] = {}
        """Host to what is known to be wrong with its GPU driver."""
        rows = engine.cluster.jobs.rows
        self._former = {run.uid for key in engine.cluster.started if (run := rows[key].run) is not None}
        """Attempts that an earlier master dispatched: this one does not know whether it sent them."""

    async def Session(self, requests: AsyncIterator[FromAgent], context: Context) -> AsyncIterator[ToAgent]:
        """One host's stream, from its greeting to its end."""
        hello = decode.hello(await anext(aiter(requests)))
        why = self._admission.why_not_stream(hello, context)
        if why:
            self._dispatch.audit.host_refused(hello.host, context.peer(), why)
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, why)
        if not self._leases.answer(hello.host, boottime()):
            await context.abort(grpc.StatusCode.UNAVAILABLE, "another master may have taken over")
        if hello.incarnation not in ("", self._engine.cluster.incarnation):
            # it first has to give up what it has of the other store, or to find what it has kept for this one
            log.info("host %s comes from another store (%s)", hello.host, hello.incarnation)
            yield self._welcome(hello)
            return
        certificate = certificate_in(context)
        session = HostSession(hello.host, hello.sequence, context.peer(), hello.facts.boot_id, certificate, hello.unpacks)
        self._leases.heard(hello.host, boottime())
        self._sessions.open(session)
        session.send(self._welcome(hello))
        reports = ReportStream(self._engine, session.host, self._set_aside, self._gangs)
        reading = asyncio.create_task(self._serve(session, self._read(session, hello, requests, reports)))
        acknowledging = asyncio.create_task(self._serve(session, self._acknowledge(session, reports)))
        pumping = asyncio.create_task(self._serve(session, self._outbox.pump(session)))
        try:
            while (sent := await session.outgoing.get()) is not None:
                try:
                    yield sent.message
                finally:
                    session.was_written(sent)
        finally:
            self._sessions.closed(session)
            for task in (reading, acknowledging, pumping):
                task.cancel()
            session.abandon()
            log.info("host %s: stream ended", session.host)

    def _welcome(self, hello: Hello) -> ToAgent:
        cluster = self._engine.cluster
        beat, sample = self._periods
        restored = cluster.former.get(hello.incarnation, 0.0)
        found = Welcome(cluster.epoch, cluster.incarnation, beat, sample, cluster.conf.cluster, PROTOCOL, restored=restored)
        if hello.facts.copies_port:
            key, cert, secret = self._outbox.identity(hello.host)
            found = msgspec.structs.replace(found, copies_key=key, copies_cert=cert, copies_secret=secret)
        return encode.welcome(found)

    async def _serve(self, session: HostSession, work: Coroutine[object, None, None]) -> None:
        """One of the tasks of a stream, which ends with it."""
        try:
            await work
        except asyncio.CancelledError:
            raise
        except (grpc.RpcError, StopAsyncIteration) as error:
            log.info("host %s: %s", session.host, error)
        except Refused as refusal:
            # the store takes nothing, of which the log has a line already; the host comes back with all that it has to say
            log.info("host %s: %s", session.host, refusal.text)
        except Exception:
            # a broken stream must not end the others; its host reconnects
            log.exception("host %s: stream failed", session.host)
        finally:
            session.close()

    async def _read(self, session: HostSession, hello: Hello, requests: AsyncIterator[FromAgent], reports: ReportStream) -> None:
        await self._greet(session, hello)
        async for message in requests:
            if self._admission.has_left(session.host):
                log.warning("host %s: the stream is closed, as it has left the cluster", session.host)
                return
            self._leases.heard(session.host, boottime())
            try:
                found = decode.read(message, session.host)
            except Exception:
                # what one message says must not end the stream, on which it would come again
                log.exception("host %s: a message that is not understood: %s", session.host, message.WhichOneof("kind"))
                continue
            match found:
                case Reports(reports=told):
                    session.ending.update(_ends(told))
                    await reports.take(told)
                case Heartbeat() as beat:
                    self._heartbeat(session, beat)
                case PeekData() as data:
                    self._peeks.answered(session, data)
                case Copies(jobs=held):
                    session.send(encode.copies(unneeded(self._engine.cluster, held)))
                case WorkFolders(jobs=kept):
                    session.send(encode.work_folders(which_are_over(self._engine.cluster, kept)))

    async def _acknowledge(self, session: HostSession, reports: ReportStream) -> None:
        """Acknowledge settled reports to the host, in their order."""
        while True:
            done = await reports.settled()
            await self._end_unknown(session, done)
            session.ending.difference_update(_ends(done))
            session.send(_acks(done))

    async def _end_unknown(self, session: HostSession, reports: Sequence[PartReport]) -> None:
        """End parts that a host reports although their attempts are over here, unless they are ending already."""
        unknown = [r for r in reports if not self._is_live(r, session.host) and r.uid not in session.ending]
        if not unknown:
            return
        async with self._engine.quiet:
            stale = {r.uid: r for r in unknown if not self._is_live(r, session.host)}
        if stale:
            log.warning("host %s: %d attempts that are over are ended there", session.host, len(stale))
            session.send(encode.batch(_kill(report) for report in stale.values()))

    def _is_live(self, report: PartReport, host: str) -> bool:
        job = self._engine.cluster.jobs.rows.get(report.key)
        return job is not None and self._engine.cluster.use.has_part(job, host, report.uid)

    async def _greet(self, session: HostSession, hello: Hello) -> None:
        known = {part.uid: part.state for part in hello.parts}

        def was_sent(run: Attempt) -> bool:
            return run.uid in self._former or run.uid in self._sessions.sent.get(session.host, ())

        def decide(cluster: Cluster, now: float) -> Decided:
            events = greeted(cluster, session.host, hello.facts, known, now, was_sent, hello.gpus_unknown)
            return Decided(events=[*events, *tell_strays(cluster, session.host, map(_stray, hello.parts), now)])

        await self._engine.ask(decide)
        self._gpu_errors.pop(session.host, None)
        cluster = self._engine.cluster
        live = {uid for key in cluster.use.hosts[session.host].jobs for uid in _uids(cluster.jobs.rows[key], session.host)}
        sent = self._sessions.sent.get(session.host, {})
        for uid in sent.keys() - live:
            del sent[uid]
        stale = [part for part in hello.parts if part.uid not in live]
        if stale:
            self._end_stale(session, stale)
        async with self._engine.quiet:
            self._outbox.greeted(session)
        log.info("host %s: connected, %d parts, %d stale", session.host, len(hello.parts), len(stale))

    def _end_stale(self, session: HostSession, stale: list[PartStatus]) -> None:
        """End parts that an agent still has of attempts that are over or of another incarnation, and acknowledge their ends."""
        if run := [part for part in stale if _stray(part).runs]:
            shown = ", ".join(f"{show(part.key)} ({part.attempt})" for part in run[:STALE_SHOWN])
            log.warning("host %s: %d attempts are not known here and are ended there: jobs %s", session.host, len(run), shown)
        session.send(encode.batch(_kill(part) for part in stale))
        session.send(encode.acks(part.uid for part in stale))

    def _heartbeat(self, session: HostSession, beat: Heartbeat) -> None:
        news = SoftUpdate(
            load={session.host: beat.load} if beat.load else {},
            gpus={session.host: beat.gpus} if beat.gpus else {},
            gpu_errors={session.host: beat.gpu_error} if self._gpu_errors.get(session.host) != beat.gpu_error else {},
            usage=of_live_parts(self._engine.cluster, session.host, beat.usage),
        )
        self._gpu_errors[session.host] = beat.gpu_error
        self._publish(news)
        self._watch.heard(session.host, beat.health)
        if self._leases.answer(session.host, boottime()):
            extended = self._leases.extended_for(boottime())
            session.send(encode.echo(beat.sent, extended, shortest_lease(self._engine.cluster)))

    async def Command(self, request: CommandFrame, context: Context) -> AsyncIterator[CommandFrame]:
        """A command of a user on an agent's host; the agent has authenticated the user."""
        host, why = self._admission.vouched_host(context)
        if why:
            self._dispatch.audit.host_refused(host, context.peer(), why)
            # an agent that has not noticed yet that this master let it go has the command come again
            await context.abort(grpc.StatusCode.UNAVAILABLE if host else grpc.StatusCode.PERMISSION_DENIED, why)
        caller = decode.caller(request, host, self._admission.may_administer(host))
        with contextlib.suppress(asyncio.CancelledError):
            async for frame in self._dispatch.answer(request.frame, caller):
                yield calls.command_frame(frame)


def _stray(part: PartStatus) -> Stray:
    return Stray(part.key, part.attempt, part.state not in ("ended", "gone", "lost"))


def _kill(of: PartReport | PartStatus) -> OrderMessage:
    return encode.kill(KillOrder(of.key, of.attempt, of.uid))


def _uids(job: Job, host: str) -> list[str]:
    run = job.run
    return [] if run is None else [uid_of(run, run.parts[at]) for at in places_of(run, host)]


def _ends(reports: Sequence[PartReport]) -> list[str]:
    return [report.uid for report in reports if isinstance(report, EndedReport | GoneReport | RefusedReport)]


def _acks(reports: Sequence[PartReport]) -> ToAgent:
    """The acknowledgement up to the newest report; the host may forget parts that are gone."""
    over = [report.uid for report in reports if report.is_last]
    return encode.acks(over, max((report.serial for report in reports), default=0))
