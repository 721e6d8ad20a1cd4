"""Carries out effects after their commit, by orders on the hosts' streams. One task for each stream keeps their order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from lavad.committed import Committed
from lavad.core.cluster.cluster import Cluster
from lavad.core.events import JobModified, PartLeft
from lavad.core.job.job import Attempt, Job, Part
from lavad.core.job.places import places_of
from lavad.core.job.reports import UNSENDABLE, RefusedReport
from lavad.core.job.resize import uid_of
from lavad.core.lang.ids import job_of
from lavad.core.lang.states import PartState
from lavad.core.rules.copy_hosts import name_of
from lavad.core.rules.effects import CopyTo, Effect, KillPart, StartPart, effects_due
from lavad.hosts.job_text_cache import JobTextCache
from lavad.hosts.joblink import holder_identity
from lavad.hosts.orders import holder, other_order, placement, start_order, text_key
from lavad.hosts.sessions import Session, Sessions
from lavad.hosts.text_sender import FULL_MESSAGE, NOTHING, TextSender
from lavad.wire import encode
from lavad.wire.encode import OrderMessage, Placement

LONGEST_REASON = 300
log = logging.getLogger(__name__)


class Outbox:
    """Sends the effects that a commit made due as orders."""

    def __init__(
        self,
        cluster: Cluster,
        sessions: Sessions,
        texts: JobTextCache,
        secret: bytes,
        clock: Callable[[], float],
        refused: Callable[[RefusedReport], object],
    ) -> None:
        """``refused``: called with what would be the host's report, for a start that cannot be sent."""
        self._cluster = cluster
        self._sessions = sessions
        self._texts_sent = TextSender(cluster, texts)
        self._refused = refused
        self._secret = secret
        self._clock = clock
        self._placed: tuple[str, tuple[Part, ...], Placement] = ("", (), Placement(b"", b"", {}))
        self._alike: tuple[tuple[Part, ...], Placement] | None = None
        """The part that the last order of a message is about, which elements that were folded together share."""

    def committed(self, committed: Committed) -> None:
        """After a commit: offer due effects, and forget attempts that are over."""
        self._sessions.offer(job for job in committed.changed if job.run is not None)
        self._sessions.end_attempts(committed.finished)
        for event in () if committed.kinds.isdisjoint((JobModified, PartLeft)) else committed.events:
            if isinstance(event, JobModified):
                self._sessions.text_changed(event.key)
            elif isinstance(event, PartLeft):
                self._sessions.forget_host(event.host, self._cluster.find_job(event.key))

    def greeted(self, session: Session) -> None:
        """A new stream: offer all effects that are due on its host."""
        for key in sorted(self._cluster.use.hosts[session.host].jobs):
            job = self._cluster.jobs.rows[key]
            if job.run is not None:
                session.offer(job.run.uid, effects_due(job, places_of(job.run, session.host)))

    def overdue(self, session: Session, now: float) -> None:
        """Send orders again on which a host should have acted by ``now``, in seconds of any clock that nobody sets."""
        rows = self._cluster.jobs.rows
        self._sessions.forget_ended(session.host, self._is_live_on(session.host))
        jobs = (rows[key] for key in self._cluster.use.hosts[session.host].jobs if key in rows)
        if count := session.resend_overdue(jobs, now):
            log.info("host %s: orders for %d attempts are sent again", session.host, count)

    async def pump(self, session: Session) -> None:
        """Send offered effects to a stream, batch by batch, until it closes."""
        while True:
            await session.wake.wait()
            due = session.take_due()
            if due:
                await self._send(session, due)
            elif not self._open(session):
                return

    def _open(self, session: Session) -> bool:
        return self._sessions.rows.get(session.host) is session

    async def _send(self, session: Session, due: list[Effect]) -> None:
        """Send the orders for these effects, with the texts that their starts need and the stream lacks."""
        starts = [job for effect in due if isinstance(effect, StartPart) and (job := self._job(effect)) is not None]
        texts, size, failed = await self._texts_sent.send_missing(session, starts) if starts else NOTHING
        await session.room()
        now, self._alike = self._clock(), None
        orders: list[OrderMessage] = []
        for effect in due:
            try:
                self._add_order(orders, session, effect, failed, now)
            except Exception as error:
                # one job must not prevent others on its host from starting
                log.exception("host %s: the order for job %d", session.host, job_of(effect.key))
                if isinstance(effect, StartPart):
                    self._refuse(session, effect, f"{type(error).__name__}: {error}")
            if orders and (size := size + len(orders[-1])) > FULL_MESSAGE:
                session.send(encode.batch(orders, texts), size)
                await session.room()
                orders, texts, size = [], (), 0
        if orders or texts:
            session.send(encode.batch(orders, texts), size)

    def _refuse(self, session: Session, start: StartPart, why: str) -> None:
        """A start that no host can be told of: the job ends with the reason, as if its host had refused it."""
        said = f"the order to start it cannot be sent: {why}"
        about = RefusedReport(
            host=session.host, key=start.key, uid=start.uid, attempt=start.attempt, code=UNSENDABLE, why=said[:LONGEST_REASON]
        )
        self._refused(about)

    def _add_order(
        self, orders: list[OrderMessage], session: Session, effect: Effect, failed: Mapping[int, str], now: float
    ) -> None:
        if isinstance(effect, StartPart):
            self._add_start(orders, session, effect, failed, now)
            return
        current = self._job(effect)
        if isinstance(effect, KillPart):
            orders.append(other_order(self._cluster, session, effect, current))
        elif current is None or current.run is None:
            pass  # over
        elif isinstance(effect, CopyTo):
            name = name_of(current, self._cluster.specs.rows[current.spec].user)
            orders.append(encode.copy_to(effect, holder(self._cluster, self._secret, effect.holder, name)))
        else:
            orders.append(other_order(self._cluster, session, effect, current))

    def _add_start(
        self, orders: list[OrderMessage], session: Session, effect: StartPart, failed: Mapping[int, str], now: float
    ) -> None:
        job, part = self._cluster.jobs.rows.get(effect.key), self._cluster.use.part(effect.key, effect.host)
        run = None if job is None else job.run
        if job is None or run is None or part is None or part.state is not PartState.OFFERED or uid_of(run, part) != effect.uid:
            return  # over, or an earlier copy of the order has started it
        key = text_key(self._cluster, job)
        if (text := session.texts.get(key)) is not None:
            self._sessions.sent.setdefault(session.host, {})[effect.uid] = effect.key
            hosts = self._placement(run)
            orders.append(start_order(self._cluster, session, effect, job, text.number, hosts, self._secret, now))
        elif why := failed.get(key):
            self._refuse(session, effect, why)
        elif key not in failed:
            session.due.append(effect)  # bmod changed the text meanwhile: the next batch has the new one
            session.wake.set()

    def identity(self, host: str) -> tuple[bytes, bytes, bytes]:
        """What a host shows that holds copies of checkpoints (``joblink.holder_identity``)."""
        return holder_identity(self._secret, host)

    def _placement(self, run: Attempt) -> Placement:
        """Cached for the newest attempt, as the starts of a large job go out together, and for elements that started together."""
        if len(run.parts) == 1 and not run.elastic:
            if self._alike is None or self._alike[0] is not run.parts:
                self._alike = (run.parts, placement(self._cluster, run))
            return self._alike[1]
        uid, parts, known = self._placed
        if uid != run.uid or (run.elastic and parts is not run.parts):
            known = placement(self._cluster, run)
            self._placed = run.uid, run.parts if run.elastic else (), known
        return known

    def _is_live_on(self, host: str) -> Callable[[int, str], bool]:
        def is_live(key: int, uid: str) -> bool:
            job = self._cluster.find_job(key)
            return job is not None and self._cluster.use.has_part(job, host, uid)

        return is_live

    def _job(self, effect: Effect) -> Job | None:
        """The job, if the effect's attempt is still its live one."""
        job = self._cluster.find_job(effect.key)
        return job if job is not None and self._cluster.use.has_part(job, effect.host, effect.uid) else None
