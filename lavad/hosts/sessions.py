"""The connected hosts and what was sent on each stream: effects are offered repeatedly, but sent once on a stream."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from lavad.core.cluster.usage_index import MANY, changed_parts
from lavad.core.job.job import Attempt, Job, Part
from lavad.core.job.places import places_of
from lavad.core.lang.ids import job_of
from lavad.core.lang.states import JobState, PartState
from lavad.core.rules.effects import Effect, FinishPart, KillPart, StartPart, StopPart, effects_due, effects_of_end
from lavad.wire.encode import ToAgent

MAX_TEXTS = 1024
MAX_TEXT_BYTES = 64 << 20
"""What a host keeps of texts of jobs, beside those that the batch at hand needs."""
MOST_QUEUED = 8 << 20
"""Bytes of orders that may wait in a stream before it takes no more."""
OVERDUE = 10.0
"""Seconds after which an order is sent again if the host has not acted on it; doubled each further time."""


class SentText(NamedTuple):
    """A job text that was sent on a stream: its number there, of which job it is, and its bytes."""

    number: int
    job: tuple[float, int]
    size: int


def _which(job: Job) -> tuple[float, int]:
    """What tells a job from one that had its id before, and from itself with other options: its submission, and its spec."""
    return job.submitted, job.spec


class Sent(NamedTuple):
    """A message on its way. ``size``: bytes that count as queued; ``written``: called when it was written, or never will be."""

    message: ToAgent
    size: int = 0
    written: Callable[[], None] = lambda: None


class Session:
    """One host's stream. On a new stream nothing was sent yet, so all due effects are sent again."""

    def __init__(
        self, host: str, sequence: int, peer: str = "", boot_id: str = "", certificate: bytes = b"", unpacks: bool = False
    ) -> None:
        self.host = host
        self.sequence = sequence
        """Highest start-order number the agent has seen."""
        self.outgoing: asyncio.Queue[Sent | None] = asyncio.Queue()
        self.peer = peer
        """The connection, in gRPC's words."""
        self.boot_id = boot_id
        self.certificate = certificate
        """PEM; b"" where there is none, on one machine."""
        self.unpacks = unpacks
        """Its agent reads what an order says packed."""
        self.due: list[Effect] = []
        self.wake = asyncio.Event()
        self.texts: OrderedDict[int, SentText] = OrderedDict()
        """Texts by key, least recently used first."""
        self.ending: set[str] = set()
        """Uids of attempts whose end the host has reported and that is not acknowledged yet."""
        self._queued = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._text_bytes = 0
        self._free: list[int] = []
        self._numbers = 0
        self._sent: dict[str, set[Effect]] = {}
        self._waits: dict[str, tuple[float, float]] = {}
        """Uid of an attempt that the host has not acted on: (since when, when its orders are sent again)."""

    def missing_texts(self, needed: Mapping[int, Job]) -> list[int]:
        """The keys whose text was not sent on this stream, or was sent with another spec, or for a job that had the id before."""
        for key in needed:
            if key in self.texts:
                self.texts.move_to_end(key)
        return [key for key, job in needed.items() if key not in self.texts or self.texts[key].job != _which(job)]

    def assign_number(self, key: int, needed: Mapping[int, Job], size: int = 0) -> int:
        """A number for a text of ``size`` bytes that is to be sent; beyond MAX_TEXTS, that of the least recently used one."""
        self.drop_text(key)
        oldest = next(iter(self.texts), None)
        if not self._free and oldest is not None and oldest not in needed and len(self.texts) >= MAX_TEXTS:
            self.drop_text(oldest)
        if self._free:
            number = self._free.pop()
        else:
            self._numbers += 1
            number = self._numbers
        self.texts[key] = SentText(number, _which(needed[key]), size)
        self._text_bytes += size
        return number

    def trim_texts(self, needed: Collection[int]) -> list[int]:
        """Drop the least recently used texts beyond MAX_TEXT_BYTES; their numbers, whose texts the host need not keep."""
        dropped: list[int] = []
        for key in list(self.texts) if self._text_bytes > MAX_TEXT_BYTES else ():
            if self._text_bytes <= MAX_TEXT_BYTES:
                break
            if key not in needed:
                dropped.append(self.texts[key].number)
                self.drop_text(key)
        return dropped

    def drop_text(self, key: int) -> None:
        """The text must be sent again before it is used; its number is free for another."""
        sent = self.texts.pop(key, None)
        if sent is not None:
            self._free.append(sent.number)
            self._text_bytes -= sent.size

    def offer(self, uid: str, effects: Sequence[Effect]) -> None:
        """Queue those of ``effects``, all that are due here for an attempt, that were not sent on this stream yet.

        Effects that are no longer due are forgotten, so that they are sent again when due again (stop, resume, stop).
        """
        sent = self._sent.get(uid, set())
        self.due += [effect for effect in effects if effect not in sent]
        if effects:
            self._sent[uid] = set(effects)
        else:
            self._sent.pop(uid, None)
        if self.due:
            self.wake.set()

    def resend_overdue(self, jobs: Iterable[Job], now: float) -> int:
        """Send overdue starts, releases and ends again; returns the number of attempts concerned.

        Those that wait in chunks are not counted: nothing is wrong, but a start that their host has dropped is known to nobody.
        """
        waits: dict[str, tuple[float, float]] = {}
        count = 0
        for job in jobs:
            run = job.run
            places = places_of(run, self.host) if run is not None else ()
            if run is None or not places or not _awaits(job, run.parts[places[0]]):
                continue
            since, at = self._waits.get(run.uid, (now, now + OVERDUE))
            if now >= at:
                count += job.state is not JobState.WAIT
                at = now + (now - since)
                self._sent.pop(run.uid, None)
                self.offer(run.uid, effects_due(job, places))
            waits[run.uid] = (since, at)
        self._waits = waits
        return count

    def forget_ended(self, is_live: Callable[[int, str], bool]) -> None:
        """As ``Sessions.forget_ended``."""
        over = [uid for uid, sent in self._sent.items() if not is_live(next(iter(sent)).key, uid)]
        for uid in over:
            del self._sent[uid]

    def take_due(self) -> list[Effect]:
        """All effects that wait to be sent, each once, however often it was offered meanwhile.

        What stops parts goes first: those that were preempted make room for others, which a new stream offers by key.
        """
        due, self.due = list(dict.fromkeys(self.due)), []
        self.wake.clear()
        stops = [effect for effect in due if isinstance(effect, StopPart) and effect.stopped]
        if not stops:
            return due
        started = {effect.uid for effect in due if isinstance(effect, StartPart)}
        first = dict.fromkeys(effect for effect in stops if effect.uid not in started)
        return [*first, *(effect for effect in due if effect not in first)]

    def end_attempt(self, uid: str, effects: Sequence[Effect]) -> None:
        """An attempt is over for the master; ``effects`` end what is left of it on the host."""
        self._sent.pop(uid, None)
        self.due += effects
        if effects:
            self.wake.set()

    def send(self, message: ToAgent, size: int = 0, written: Callable[[], None] = lambda: None) -> None:
        """Put a message on the stream. ``size``: its bytes, where it is large or one of many; ``written``: as in ``Sent``."""
        self._queued += size
        if self._queued > MOST_QUEUED:
            self._has_room.clear()
        self.outgoing.put_nowait(Sent(message, size, written))

    async def room(self) -> None:
        """Wait until few bytes are queued, or the stream ends."""
        await self._has_room.wait()

    def was_written(self, sent: Sent) -> None:
        """A message has left the queue."""
        self._queued -= sent.size
        if self._queued <= MOST_QUEUED:
            self._has_room.set()
        sent.written()

    def close(self) -> None:
        """End the stream."""
        self.outgoing.put_nowait(None)
        self.wake.set()

    def abandon(self) -> None:
        """The stream has ended: what is queued is not written any more."""
        while not self.outgoing.empty():
            if (sent := self.outgoing.get_nowait()) is not None:
                self.was_written(sent)


def _awaits(job: Job, part: Part) -> bool:
    """Whether the master waits for the host to start or end a part; all effects are computed last, as that is slow."""
    if part.state in (PartState.OFFERED, PartState.STARTING):
        return True
    run = job.run
    if run is None or part.state not in (PartState.PREPARED, PartState.RUNNING) or not (run.refused or run.verdict):
        return False
    return any(isinstance(effect, KillPart | FinishPart) for effect in effects_due(job, places_of(run, part.host)))


class Sessions:
    """All connected hosts by name."""

    def __init__(self) -> None:
        self.rows: dict[str, Session] = {}
        self.sent: dict[str, dict[str, int]] = {}
        """Host to the attempts (uid to key of the job) whose start this master sent there; kept when the stream ends."""
        self._offered: dict[int, Job] = {}
        """Jobs with many parts, as they were when they were offered last."""

    def open(self, session: Session) -> None:
        """A host has connected; an older stream of it ends."""
        old = self.rows.get(session.host)
        if old is not None:
            old.close()
        self.rows[session.host] = session

    def hang_up(self, host: str) -> None:
        """End the stream of a silent host: if it was only suspended, it reconnects and reports its parts."""
        session = self.rows.pop(host, None)
        if session is not None:
            session.close()

    def forget_host_left(self, host: str) -> None:
        """A host has left the cluster."""
        self.hang_up(host)
        self.sent.pop(host, None)

    def closed(self, session: Session) -> None:
        """A stream ended."""
        if self.rows.get(session.host) is session:
            del self.rows[session.host]

    def text_changed(self, key: int) -> None:
        """A job was modified: its text must be sent again on every stream."""
        for session in self.rows.values():
            session.drop_text(key)
            session.drop_text(job_of(key))

    def offer(self, jobs: Iterable[Job]) -> None:
        """Offer the due effects of these jobs to the connected hosts."""
        for job in jobs:
            if job.run is None:
                continue
            places = self._changed(job, job.run)
            due = by_host(effects_due(job, places))
            for place in places:
                host = job.run.parts[place].host
                session = self.rows.get(host)
                if session is not None:
                    session.offer(job.run.uid, due.get(host, ()))

    def _changed(self, job: Job, run: Attempt) -> Sequence[int]:
        """The places of parts for which something else may be due than when the job was offered before.

        A large job is offered with each commit that has one of its reports, which are about a few of its parts.
        """
        everywhere = range(len(run.parts))
        if run.elastic or len(run.parts) < MANY:
            return everywhere
        former, self._offered[job.key] = self._offered.get(job.key), job
        changed = None if former is None else changed_parts(former, job)
        # what becomes of the first part is for all of them
        if changed is None or any(part is run.parts[0] for _, part in changed):
            return everywhere
        return [place for _, part in changed for place in places_of(run, part.host)]

    def forget_host(self, host: str, job: Job | None) -> None:
        """A host has left an attempt: forget what was sent there for it."""
        session = self.rows.get(host)
        run = None if job is None else job.run
        if session is not None and run is not None and all(part.host != host for part in run.parts):
            session.offer(run.uid, [])

    def forget_ended(self, host: str, is_live: Callable[[int, str], bool]) -> None:
        """Forget what was sent to a host for attempts that are over while their jobs are not: requeued ones, and parts that left.

        ``is_live`` says whether the job of this key has the attempt of this uid there.
        """
        sent = self.sent.get(host, {})
        for uid in [uid for uid, key in sent.items() if not is_live(key, uid)]:
            del sent[uid]
        session = self.rows.get(host)
        if session is not None:
            session.forget_ended(is_live)

    def end_attempts(self, jobs: Iterable[Job]) -> None:
        """Attempts are over: forget what was sent for them, and end their remains on their hosts."""
        for job in jobs:
            self._offered.pop(job.key, None)
            if job.run is not None:
                left = by_host(effects_of_end(job))
                for part in job.run.parts:
                    self.sent.get(part.host, {}).pop(job.run.uid, None)
                    session = self.rows.get(part.host)
                    if session is not None:
                        session.end_attempt(job.run.uid, left.get(part.host, ()))


def by_host(effects: Iterable[Effect]) -> dict[str, list[Effect]]:
    """The effects of one attempt by host, in their order."""
    found: dict[str, list[Effect]] = {}
    for effect in effects:
        found.setdefault(effect.host, []).append(effect)
    return found
