"""The outbox: carries out effects, after the commit, by orders on the hosts' streams. One pump a stream keeps their order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import JobModified, PartLeft
from lavad.core.job.job import Attempt, Job
from lavad.core.job.resize import is_part
from lavad.core.job.spec import JobText
from lavad.core.lang.states import PartState
from lavad.core.rules.effects import Effect, KillPart, StartPart, effects_due
from lavad.engine import Committed
from lavad.hosts.job_text_cache import Texts
from lavad.hosts.orders import other_order, placement, start_order, text_key, text_message
from lavad.hosts.sessions import Session, Sessions
from lavad.wire import encode
from lavad.wire.encode import HostSlots, OrderMessage, TextMessage, ToAgent

log = logging.getLogger(__name__)


class Outbox:
    """Listens to commits and feeds the streams."""

    def __init__(self, cluster: Cluster, sessions: Sessions, texts: Texts, secret: bytes, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._sessions = sessions
        self._texts = texts
        self._secret = secret
        self._clock = clock
        self._placed: tuple[str, list[HostSlots]] = ("", [])

    def committed(self, committed: Committed) -> None:
        """Offer what a commit made due."""
        self._sessions.offer(job for job in committed.changed if job.run is not None)
        self._sessions.over(committed.finished)
        for event in committed.events:
            if isinstance(event, JobModified):
                self._sessions.text_changed(event.key)
            elif isinstance(event, PartLeft):
                self._sessions.left(event.host, self._cluster.find_job(event.key))

    def greeted(self, session: Session) -> None:
        """A stream is new: offer everything that is due on its host."""
        for key in sorted(self._cluster.use.hosts[session.host].jobs):
            job = self._cluster.jobs.rows[key]
            if job.run is not None:
                session.offer(job.run.uid, [effect for effect in effects_due(job) if effect.host == session.host])

    def overdue(self, session: Session) -> None:
        """Send again what a host should long have acted on."""
        rows = self._cluster.jobs.rows
        jobs = (rows[key] for key in self._cluster.use.hosts[session.host].jobs if key in rows)
        if count := session.offer_again(jobs, self._clock()):
            log.info("host %s: orders for %d attempts are sent again", session.host, count)

    async def pump(self, session: Session) -> None:
        """Send what is offered to a stream, batch by batch, until it closes."""
        while True:
            await session.wake.wait()
            due = session.take()
            if due:
                session.send(await self._orders(session, due))
            elif not self._open(session):
                return

    def _open(self, session: Session) -> bool:
        return self._sessions.rows.get(session.host) is session

    async def _orders(self, session: Session, due: list[Effect]) -> ToAgent:
        starts = [job for effect in due if isinstance(effect, StartPart) and (job := self._job(effect)) is not None]
        needed = {text_key(self._cluster, job): job for job in starts}
        missing = session.missing(needed)
        texts = await self._texts.texts({key & 0xFFFFFFFF for key in missing})
        messages: list[TextMessage] = []
        orders: list[OrderMessage] = []
        unsaid: set[int] = set()
        for key in missing:
            text = texts.get(key & 0xFFFFFFFF)
            if text is None:
                log.error("host %s: the store has no text of job %d; it cannot start", session.host, key & 0xFFFFFFFF)
                session.drop_text(key)
                unsaid.add(key)
                continue
            env = await self._texts.env(text.env) if text.env else {}
            try:
                self._add_text(messages, session, needed, starts, key, text, env)
            except Exception:
                # one job that cannot be told must not keep the others of its host from starting
                log.exception("host %s: the text of job %d", session.host, key & 0xFFFFFFFF)
                session.drop_text(key)
                unsaid.add(key)
        now = self._clock()
        if needed:
            self._sessions.renewed[session.host] = now
        for effect in due:
            try:
                self._add_order(orders, session, effect, unsaid, now)
            except Exception:
                # as above; what stays due is offered again by and by
                log.exception("host %s: the order for job %d", session.host, effect.key & 0xFFFFFFFF)
        return encode.batch(orders, messages)

    def _add_text(
        self,
        messages: list[TextMessage],
        session: Session,
        needed: dict[int, Job],
        starts: list[Job],
        key: int,
        text: JobText,
        env: Mapping[str, str],
    ) -> None:
        job = self._live(key, starts)
        if job is None:
            return  # finished while its text was read
        session.number(key, needed)
        messages.append(text_message(self._cluster, session, job, text, env))

    def _add_order(self, orders: list[OrderMessage], session: Session, effect: Effect, unsaid: set[int], now: float) -> None:
        current = self._job(effect)
        if isinstance(effect, KillPart):
            orders.append(other_order(self._cluster, effect, current))
        elif current is None or (isinstance(effect, StartPart) and not _is_offered(current, effect.host)):
            pass  # over, or begun by the same order sent before
        elif not isinstance(effect, StartPart) or self._has_text(session, current):
            orders.append(self._order(session, effect, current, now))
        elif text_key(self._cluster, current) not in unsaid:
            session.due.append(effect)  # it was changed meanwhile
            session.wake.set()

    def _has_text(self, session: Session, job: Job) -> bool:
        return text_key(self._cluster, job) in session.texts

    def _live(self, key: int, starts: list[Job]) -> Job | None:
        """One of the jobs with this text that is still there."""
        for job in starts:
            if self._cluster.find_job(job.key) is not None and text_key(self._cluster, job) == key:
                return job
        return None

    def _order(self, session: Session, effect: Effect, job: Job, now: float) -> OrderMessage:
        if isinstance(effect, StartPart) and job.run is not None:
            self._sessions.sent.setdefault(session.host, set()).add(effect.uid)
            hosts = self._placement(job.run)
            return start_order(self._cluster, session, effect, job, hosts, self._secret, now)
        return other_order(self._cluster, effect, job)

    def _placement(self, run: Attempt) -> list[HostSlots]:
        """Made once for all hosts of a large job: their starts go out together."""
        if len(run.parts) == 1 or run.elastic:
            return placement(self._cluster, run)
        if self._placed[0] != run.uid:
            self._placed = (run.uid, placement(self._cluster, run))
        return self._placed[1]

    def _job(self, effect: Effect) -> Job | None:
        """The job, if this attempt is still the one that lives."""
        job = self._cluster.find_job(effect.key)
        return job if job is not None and job.run is not None and is_part(job.run, effect.host, effect.uid) else None


def _is_offered(job: Job, host: str) -> bool:
    """Whether the part on a host is still to be started."""
    return job.run is not None and any(part.host == host and part.state is PartState.OFFERED for part in job.run.parts)
