"""Looks for exceptions every EADMIN_TRIGGER_DURATION, and has those told that have not been.

Rule: what has been told is noted in the store after that, so that what a mailer does not take is told later, by the next master
too. Jobs that ended before the master started are looked up as far back as the last note.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from lavad.boottime import boottime
from lavad.committed import Committed
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control.faulty_hosts import Cause
from lavad.core.lang.asks import Refused
from lavad.core.plan.volatile import Soft
from lavad.engine import Engine
from lavad.queries.facts import queuefacts
from lavad.queries.frame.view import View
from lavad.services.exceptions.found import Found, exceptions_of
from lavad.store.asked import Find
from lavad.store.errors import StoreError
from lavad.store.read import Reader
from proto.daemon.workers import Workers

log = logging.getLogger(__name__)

PAUSE = 5.0
"""Seconds after which a change of the period is noticed."""
AT_ONCE = 500
"""Jobs that are looked at, or noted in one commit, before others get their turn."""
MOST_ENDED = 10_000
"""Exceptions of jobs that have ended which wait to be told; what is more is not told."""
BACK = 86_400.0
"""Seconds that a new master looks back at most."""


class Tell(Protocol):
    """``telling.Teller``."""

    async def jobs(self, found: Sequence[Found]) -> bool: ...

    async def hosts(self, hosts: Sequence[tuple[str, str]]) -> bool: ...


class Exceptions:
    """Those of all jobs, and hosts that are closed as too many jobs end badly on them."""

    def __init__(self, engine: Engine, soft: Soft, opened: Callable[[], Reader], tell: Tell, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._view = View(engine.cluster, soft, opened)
        self._tell = tell
        self._clock = clock
        self._reading = Workers("jobs that ended before")
        self._ended: list[Found] = []
        """Of jobs that have ended, and not told yet."""
        self._told: set[tuple[int, int, str]] = set()
        """(key, attempt, exception) that were told, and could not be noted yet."""
        self._closed: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def committed(self, committed: Committed) -> None:
        """Listener of the engine."""
        for event in committed.events if ev.HostSwitched in committed.kinds else ():
            if isinstance(event, ev.HostSwitched) and event.closed and event.cause == Cause.EXITS.value:
                self._closed.put_nowait((event.host, event.comment))
        if committed.finished and any(queue.job_underrun is not None for queue in self._engine.cluster.conf.queues):
            specs, now = self._engine.cluster.specs.rows, self._clock()
            for job in committed.finished:
                if job.spec in specs and len(self._ended) < MOST_ENDED:
                    self._ended += exceptions_of(job, self._view, now)

    async def run(self) -> None:
        """Serve for ever."""
        while not await self.look_back():
            await self._period()
        while True:
            await self._period()
            await self.turn()

    async def _period(self) -> None:
        """EADMIN_TRIGGER_DURATION, as it is meanwhile."""
        begun, params = boottime(), self._engine.cluster.conf.params
        while (left := begun + params.eadmin_trigger_duration - boottime()) > 0:
            await asyncio.sleep(min(PAUSE, left))
            params = self._engine.cluster.conf.params

    async def run_hosts(self) -> None:
        """Tell of closed hosts, at once. Serves for ever."""
        while True:
            if not await self.turn_hosts():
                await self._period()

    async def turn_hosts(self) -> bool:
        """Tell of the hosts that are closed next; False: that is to be tried again."""
        closed = [await self._closed.get()]
        while not self._closed.empty():
            closed.append(self._closed.get_nowait())
        told = await self._tell.hosts(closed)
        for one in () if told else closed:
            self._closed.put_nowait(one)
        return told

    def _is_asked(self) -> bool:
        return any(queuefacts.has_thresholds(queue) for queue in self._engine.cluster.conf.queues)

    async def look_back(self) -> bool:
        """Find what ended after the last note, while there was no master or before it told; False: the store cannot be read."""
        since, now = self._engine.cluster.exceptions_told, self._clock()
        if not self._is_asked():
            return True
        if not since:
            await self._note([], now)
            return True
        try:
            missed = await self._reading.run(self._missed, max(since, now - BACK), now)
        except StoreError as error:
            log.warning("exceptions of jobs that have ended: %s", error)
            return False
        self._ended = [*missed, *self._ended]
        return True

    def _missed(self, since: float, now: float) -> list[Found]:
        """Reads the store: not for the thread of the loop."""
        jobs = self._view.finished_jobs(Find(since=since, limit=MOST_ENDED))
        self._view.load_specs(jobs)
        return [found for job in jobs for found in exceptions_of(job, self._view, now)]

    async def turn(self) -> None:
        """Tell, and note, what is new."""
        if not self._is_asked():
            self._ended.clear()
            return
        until = self._clock()
        # one that ended while the master before was followed has been read, and heard of
        ended = list({(one.key, one.attempt): one for one in self._ended}.values())
        self._ended = []
        running = await self._running()
        if not (running or ended):
            return
        if not await self._tell.jobs([*running, *ended]):
            self._ended = [*ended, *self._ended][:MOST_ENDED]
            return
        self._told.update((one.key, one.attempt, one.name) for one in running)
        await self._note(running, until)

    async def _running(self) -> list[Found]:
        cluster, found = self._engine.cluster, []
        keys = list(cluster.started)
        for at in range(0, len(keys), AT_ONCE):
            now = self._clock()
            for key in keys[at : at + AT_ONCE]:
                job = cluster.jobs.rows.get(key)
                if job is not None and job.run is not None:
                    found += exceptions_of(job, self._view, now, job.run.exceptions)
            await asyncio.sleep(0)
        return [one for one in found if (one.key, one.attempt, one.name) not in self._told]

    async def _note(self, told: Sequence[Found], until: float) -> None:
        names: dict[tuple[int, int], list[str]] = {}
        for one in told:
            names.setdefault((one.key, one.attempt), []).append(one.name)
        attempts = list(names.items())
        for at in range(0, max(len(attempts), 1), AT_ONCE):
            some = attempts[at : at + AT_ONCE]
            try:
                await self._engine.ask(partial(_noted, told=some, until=until))
            except Refused as refusal:
                log.warning("exceptions of jobs: %s", refusal)
                return
            self._told.difference_update((*attempt, name) for attempt, found in some for name in found)


def _noted(cluster: Cluster, now: float, told: Iterable[tuple[tuple[int, int], list[str]]], until: float) -> Decided:
    jobs = []
    for (key, attempt), names in told:
        job = cluster.jobs.rows.get(key)
        if job is not None and job.run is not None and job.run.number == attempt:
            jobs.append((key, tuple(dict.fromkeys((*job.run.exceptions, *names)))))
    return Decided(events=[ev.ExceptionsTold(at=now, until=until, jobs=tuple(jobs))])
