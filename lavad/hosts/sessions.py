"""Which hosts are connected, and what each connection has been told: an effect is offered often, and sent once a stream."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lavad.core.job.job import Job, Part
from lavad.core.lang.ids import job_of
from lavad.core.lang.states import PartState
from lavad.core.rules.effects import Effect, FinishPart, KillPart, effects_due, effects_of_end
from lavad.wire.encode import ToAgent

MAX_TEXTS = 1024
OVERDUE = 10.0
"""Seconds after which a host that has not acted on an order is told once more; each time after twice as long."""


class Told(NamedTuple):
    """A text that a stream knows: its number there, and the spec that it was made with."""

    number: int
    spec: int


class Session:
    """One host's stream. A new stream starts with nothing told, so everything that is due goes out again."""

    def __init__(self, host: str, sequence: int) -> None:
        self.host = host
        self.sequence = sequence
        """Highest start-order number the agent has seen."""
        self.outgoing: asyncio.Queue[ToAgent | None] = asyncio.Queue()
        self.due: list[Effect] = []
        self.wake = asyncio.Event()
        self.texts: OrderedDict[int, Told] = OrderedDict()
        """Text key to what this stream knows of it, used longest ago first."""
        self.ending: set[str] = set()
        """Attempts whose end the host has told, and does not know yet to be committed."""
        self._free: list[int] = []
        self._numbers = 0
        self._told: dict[str, set[Effect]] = {}
        self._waits: dict[str, tuple[float, float]] = {}
        """Attempt not yet acted on, to since when that is known, and when its orders go out once more."""

    def missing(self, needed: Mapping[int, Job]) -> list[int]:
        """The keys whose text this stream does not know, or knows with another spec."""
        for key in needed:
            if key in self.texts:
                self.texts.move_to_end(key)
        return [key for key, job in needed.items() if key not in self.texts or self.texts[key].spec != job.spec]

    def number(self, key: int, needed: Mapping[int, Job]) -> int:
        """A number for a text that is about to be sent. With many texts, that of the one not needed for longest."""
        self.drop_text(key)
        oldest = next(iter(self.texts), None)
        if not self._free and oldest is not None and oldest not in needed and len(self.texts) >= MAX_TEXTS:
            self.drop_text(oldest)
        if self._free:
            number = self._free.pop()
        else:
            self._numbers += 1
            number = self._numbers
        self.texts[key] = Told(number, needed[key].spec)
        return number

    def drop_text(self, key: int) -> None:
        """It must be sent again before it is used; its number is free for another."""
        told = self.texts.pop(key, None)
        if told is not None:
            self._free.append(told.number)

    def offer(self, uid: str, effects: Sequence[Effect]) -> None:
        """``effects`` are all that is due here for an attempt; those that this stream was not told yet are queued.

        What is no longer due is forgotten, so that it goes out again should it become due again (stop, go on, stop).
        """
        told = self._told.get(uid, set())
        self.due += [effect for effect in effects if effect not in told]
        if effects:
            self._told[uid] = set(effects)
        else:
            self._told.pop(uid, None)
        if self.due:
            self.wake.set()

    def offer_again(self, jobs: Iterable[Job], now: float) -> int:
        """Whatever became of it, a start, a release or an end that is due for long is sent again; for how many attempts."""
        waits: dict[str, tuple[float, float]] = {}
        count = 0
        for job in jobs:
            run = job.run
            part = next((part for part in run.parts if part.host == self.host), None) if run is not None else None
            if run is None or part is None or not _awaits(job, part):
                continue
            since, at = self._waits.get(run.uid, (now, now + OVERDUE))
            if now >= at:
                count += 1
                at = now + (now - since)
                self._told.pop(run.uid, None)
                self.offer(run.uid, [effect for effect in effects_due(job) if effect.host == self.host])
            waits[run.uid] = (since, at)
        self._waits = waits
        return count

    def take(self) -> list[Effect]:
        """All effects that wait to be sent."""
        due, self.due = self.due, []
        self.wake.clear()
        return due

    def end(self, uid: str, effects: Sequence[Effect]) -> None:
        """An attempt is over for the master; ``effects`` end what of it is left here."""
        self._told.pop(uid, None)
        self.due += effects
        if effects:
            self.wake.set()

    def send(self, message: ToAgent) -> None:
        """Put a message on the stream."""
        self.outgoing.put_nowait(message)

    def close(self) -> None:
        """End the stream."""
        self.outgoing.put_nowait(None)
        self.wake.set()


def _awaits(job: Job, part: Part) -> bool:
    """Whether the master waits for the host to start or to end a part. (All effects are asked for in few cases: it is slow.)"""
    if part.state in (PartState.OFFERED, PartState.STARTING):
        return True
    run = job.run
    if run is None or part.state not in (PartState.PREPARED, PartState.RUNNING) or not (run.refused or run.verdict):
        return False
    return any(isinstance(effect, KillPart | FinishPart) and effect.host == part.host for effect in effects_due(job))


class Sessions:
    """All connected hosts by name."""

    def __init__(self) -> None:
        self.rows: dict[str, Session] = {}
        self.heard: dict[str, float] = {}
        """Host to when it last said anything (master's clock)."""
        self.renewed: dict[str, float] = {}
        """Host to when leases on it were last granted or renewed."""
        self.sent: dict[str, set[str]] = {}
        """Host to the attempts whose start this master sent there; kept beyond the stream."""

    def open(self, session: Session) -> None:
        """A host greeted; an older stream of the same host ends."""
        old = self.rows.get(session.host)
        if old is not None:
            old.close()
        self.rows[session.host] = session

    def hang_up(self, host: str) -> None:
        """End the stream of a host that has fallen silent: if it only slept, it greets anew and tells what it has."""
        session = self.rows.pop(host, None)
        if session is not None:
            session.close()

    def closed(self, session: Session) -> None:
        """A stream ended."""
        if self.rows.get(session.host) is session:
            del self.rows[session.host]

    def text_changed(self, key: int) -> None:
        """A job was modified: no stream knows its text any more."""
        for session in self.rows.values():
            session.drop_text(key)
            session.drop_text(job_of(key))

    def offer(self, jobs: Iterable[Job]) -> None:
        """Offer what is due for these jobs to the hosts that are there."""
        for job in jobs:
            if job.run is None:
                continue
            due = by_host(effects_due(job))
            for part in job.run.parts:
                session = self.rows.get(part.host)
                if session is not None:
                    session.offer(job.run.uid, due.get(part.host, ()))

    def left(self, host: str, job: Job | None) -> None:
        """A host is no longer of an attempt: forget what it was told of it."""
        session = self.rows.get(host)
        run = None if job is None else job.run
        if session is not None and run is not None and all(part.host != host for part in run.parts):
            session.offer(run.uid, [])

    def over(self, jobs: Iterable[Job]) -> None:
        """Forget what was told about attempts that are over; what they left behind is to end."""
        for job in jobs:
            if job.run is not None:
                left = by_host(effects_of_end(job))
                for part in job.run.parts:
                    self.sent.get(part.host, set()).discard(job.run.uid)
                    session = self.rows.get(part.host)
                    if session is not None:
                        session.end(job.run.uid, left.get(part.host, ()))


def by_host(effects: Iterable[Effect]) -> dict[str, list[Effect]]:
    """The effects of one attempt, host by host, each in its order."""
    found: dict[str, list[Effect]] = {}
    for effect in effects:
        found.setdefault(effect.host, []).append(effect)
    return found
