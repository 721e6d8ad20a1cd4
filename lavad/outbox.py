"""The outbox: carries out effects, after the commit, by orders on the hosts' streams. One pump a stream keeps their order."""

from __future__ import annotations

from collections.abc import Callable

from lavad.core.cluster import Cluster
from lavad.core.effects import Effect, KillPart, StartPart, effects_due
from lavad.core.events import JobModified
from lavad.core.job import Job
from lavad.core.spec import JobText
from lavad.engine import Committed
from lavad.orders import other_order, start_order, text_key, text_message
from lavad.sessions import Session, Sessions
from lavad.texts import Texts
from proto import agent_pb2 as pb


class Outbox:
    """Listens to commits and feeds the streams."""

    def __init__(
        self, cluster: Cluster, sessions: Sessions, texts: Texts, secret: bytes, clock: Callable[[], float]
    ) -> None:
        self._cluster = cluster
        self._sessions = sessions
        self._texts = texts
        self._secret = secret
        self._clock = clock

    def committed(self, committed: Committed) -> None:
        """Offer what a commit made due."""
        self._sessions.offer(job for job in committed.changed if job.run is not None)
        self._sessions.over(committed.finished)
        for event in committed.events:
            if isinstance(event, JobModified):
                self._sessions.text_changed(event.key)

    def greeted(self, session: Session) -> None:
        """A stream is new: offer everything that is due on its host."""
        for key in sorted(self._cluster.use.hosts[session.host].jobs):
            job = self._cluster.jobs.rows[key]
            if job.run is not None:
                session.offer(job.run.uid, [effect for effect in effects_due(job) if effect.host == session.host])

    async def pump(self, session: Session) -> None:
        """Send what is offered to a stream, batch by batch, until it closes."""
        while True:
            await session.wake.wait()
            due = session.take()
            if due:
                session.send(pb.ToAgent(orders=await self._orders(session, due)))
            elif not self._open(session):
                return

    def _open(self, session: Session) -> bool:
        return self._sessions.rows.get(session.host) is session

    async def _orders(self, session: Session, due: list[Effect]) -> pb.Orders:
        starts = [job for effect in due if isinstance(effect, StartPart) and (job := self._job(effect)) is not None]
        needed = {text_key(self._cluster, job): job for job in starts}
        missing = session.missing(needed)
        texts = await self._texts.texts({key & 0xFFFFFFFF for key in missing})
        orders = pb.Orders()
        for key in missing:
            text = texts.get(key & 0xFFFFFFFF) or JobText(command="")
            env = await self._texts.env(text.env) if text.env else {}
            job = self._live(key, starts)
            if job is None:
                continue  # finished while its text was read
            number = session.number(key, needed)
            spec = self._cluster.specs.rows[job.spec]
            orders.texts.append(text_message(self._cluster, job.key, number, spec, text, env, session.host))
        now = self._clock()
        if needed:
            self._sessions.renewed[session.host] = now
        for effect in due:
            current = self._job(effect)
            if isinstance(effect, KillPart):
                orders.orders.append(other_order(effect))
            elif isinstance(effect, StartPart) and current is not None and not self._has_text(session, current):
                session.due.append(effect)  # it was changed meanwhile
                session.wake.set()
            elif current is not None:
                orders.orders.append(self._order(session, effect, current, now))
        return orders

    def _has_text(self, session: Session, job: Job) -> bool:
        return text_key(self._cluster, job) in session.texts

    def _live(self, key: int, starts: list[Job]) -> Job | None:
        """One of the jobs with this text that is still there."""
        for job in starts:
            if self._cluster.find_job(job.key) is not None and text_key(self._cluster, job) == key:
                return job
        return None

    def _order(self, session: Session, effect: Effect, job: Job, now: float) -> pb.Order:
        if isinstance(effect, StartPart) and job.run is not None:
            self._sessions.sent.setdefault(session.host, set()).add(effect.uid)
            return start_order(self._cluster, session, effect, job, job.run, self._secret, now)
        return other_order(effect)

    def _job(self, effect: Effect) -> Job | None:
        """The job, if this attempt is still the one that lives."""
        job = self._cluster.find_job(effect.key)
        return job if job is not None and job.run is not None and job.run.uid == effect.uid else None
