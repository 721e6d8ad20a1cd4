"""The master's periodic tasks: silent hosts, expired leases, deadlines. The decisions themselves are in
``core.decide``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from lavad.boottime import boottime
from lavad.committed import Committed
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.groups import clean_groups, unused_groups
from lavad.core.decide.control.by_time import deadlines, decay_rusage, migrations
from lavad.core.decide.control.depart import depart, is_due
from lavad.core.decide.control.hosts import expired, silent
from lavad.core.decide.control.office import note_extension
from lavad.core.decide.control.tokens import over
from lavad.core.decide.depend.orphans import Orphans
from lavad.core.decide.report.array_ends import overdue
from lavad.core.decide.report.tasks import postponed
from lavad.core.decide.reserve.reservations import turn
from lavad.core.events import LeasesExtended
from lavad.core.lang.asks import Refused
from lavad.engine import Engine
from lavad.hosts.leases import Leases
from lavad.hosts.outbox import Outbox
from lavad.hosts.sessions import Sessions
from lavad.local_time import local_time
from lavad.requests import Decide
from lavad.store.errors import StoreRefused
from lavad.store.writer import Store
from proto.daemon.workers import Workers

log = logging.getLogger(__name__)

DAY = 86_400.0
LEASE_PAUSE = 1.0
OVERDUE_PAUSE = 10.0
NOTE_PAUSE = 30.0
TOKENS_PAUSE = 600.0
ORPHANS_PAUSE = 5.0
ORPHANS_TOO = 0.2
"""Seconds after orphans were ended in which the engine judges the conditions of those that wait for them."""
TOGETHER = 50
"""Hosts that are checked for overdue orders, or given up, before other tasks get their turn."""


class Loops:
    """The master's periodic tasks."""

    def __init__(self, engine: Engine, sessions: Sessions, leases: Leases, store: Store, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._sessions = sessions
        self._leases = leases
        self._store = store
        self._deleting = Workers("deletions")
        self._clock = clock
        leases.extend(boottime(), engine.cluster.extended[1])

    def committed(self, committed: Committed) -> None:
        """After a commit: leases that an administrator has extended are so from now on."""
        for event in committed.events if LeasesExtended in committed.kinds else ():
            if isinstance(event, LeasesExtended) and event.by:
                self._leases.extend(boottime(), event.seconds)

    async def note_extension(self) -> None:
        """Keep in the store what is left of an extension of the leases, for the next master."""
        while True:
            await asyncio.sleep(NOTE_PAUSE)
            cluster, left = self._engine.cluster, self._leases.extended_for(boottime())
            if left or cluster.extended[1]:
                await self._tried(partial(_note_extension, left))

    async def hosts(self) -> None:
        """Find silent hosts, expired leases and hosts that leave the cluster."""
        cluster = self._engine.cluster
        while True:
            await asyncio.sleep(min(1.0, cluster.conf.params.lava_host_timeout / 4))
            for name in [name for name in cluster.hosts.rows if is_due(cluster, name, self._clock())]:
                await self._depart(name)
            found = self._leases.look(cluster, boottime())
            await self._silent([name for name, _ in found.silent])
            for at in range(0, len(found.expired), TOGETHER):
                some = found.expired[at : at + TOGETHER]
                await asyncio.gather(*(self._tried(_expired(name, keys)) for name, keys in some))

    async def masters_lease(self) -> None:
        """End all streams while the masters' lease may be over: hosts look for the master that may be in office instead, and come
        back where there is none. An ask of the database that hangs would keep them here, and their users' commands, for longer.
        """
        is_held = True
        while True:
            await asyncio.sleep(LEASE_PAUSE)
            certain = self._leases.is_certain(boottime())
            if certain and not is_held:
                log.info("the masters' lease is renewed again")
            elif not certain and is_held:
                log.warning("the database does not renew the masters' lease in time: hosts are to look for another master")
            is_held = certain
            for host in () if certain else list(self._sessions.rows):
                self._sessions.hang_up(host)

    async def _silent(self, hosts: Sequence[str]) -> None:
        """Give them up, many in a commit: all may have gone at once. One that was heard since they were found is left alone."""
        timeout = self._engine.cluster.conf.params.lava_host_timeout
        for at in range(0, len(hosts), TOGETHER):
            now = boottime()
            gone = {name: seconds for name in hosts[at : at + TOGETHER] if (seconds := self._leases.silence(name, now)) > timeout}
            for name, seconds in gone.items():
                log.warning("host %s: silent for %.0f s", name, seconds)
                self._sessions.hang_up(name)
            await asyncio.gather(*(self._tried(_silent(name)) for name in gone))

    async def _depart(self, host: str) -> None:
        await self._tried(_departs(host))
        if host not in self._engine.cluster.hosts.rows:
            log.info("host %s has left the cluster", host)
            self._sessions.forget_host_left(host)
            self._leases.forget(host)

    async def overdue(self, outbox: Outbox) -> None:
        """Send orders again that a host has not acted on in time."""
        while True:
            await asyncio.sleep(OVERDUE_PAUSE)
            sessions = list(self._sessions.rows.values())
            for at in range(0, len(sessions), TOGETHER):
                async with self._engine.quiet:
                    for session in sessions[at : at + TOGETHER]:
                        outbox.overdue(session, boottime())
                await asyncio.sleep(0)

    async def deadlines(self) -> None:
        """Termination deadlines (bsub -t): pending jobs exit, running ones are killed."""
        while True:
            await asyncio.sleep(5.0)
            if self._engine.cluster.timed:
                await self._tried(deadlines)

    async def postponed(self) -> None:
        """What follows from ends of tasks some time later, and the ends of arrays after some time, as their policies say."""
        while True:
            await asyncio.sleep(1.0)
            for decide in (postponed, overdue) if self._engine.cluster.timed else ():
                if decide(self._engine.cluster, self._clock()).events:
                    await self._tried(decide)

    async def migrations(self) -> None:
        """MIG: migrate jobs that the system suspended long ago."""
        while True:
            await asyncio.sleep(2.0)
            if migrations(self._engine.cluster, self._clock()).events:
                await self._tried(migrations)

    async def orphans(self) -> None:
        """ORPHAN_JOB_TERM_GRACE_PERIOD: end jobs whose condition can never be met."""
        cluster, orphans = self._engine.cluster, Orphans()
        while True:
            await asyncio.sleep(ORPHANS_PAUSE)
            while (grace := cluster.conf.params.orphan_job_term_grace_period) is not None:
                if not orphans.due(cluster, self._clock(), grace):
                    break
                if not await self._tried(partial(_end_orphans, orphans, grace)):
                    break
                await asyncio.sleep(ORPHANS_TOO)

    async def groups(self) -> None:
        """JOB_GROUP_CLEAN: delete groups that jobs created once their last job is gone."""
        while True:
            await asyncio.sleep(5.0)
            cluster = self._engine.cluster
            if cluster.conf.params.job_group_clean and cluster.groups.rows and unused_groups(cluster):
                await self._tried(clean_groups)

    async def windows(self) -> None:
        """Judge dependency conditions with a time window again."""
        while True:
            await asyncio.sleep(5.0)
            if self._engine.cluster.conditions.timed:
                self._engine.time_passed()

    async def rusage_decay(self) -> None:
        """rusage[duration=,decay=]: decay reservations of running jobs."""
        while True:
            await asyncio.sleep(1.0)
            decaying = self._engine.cluster.use.decaying
            if decaying and min(decaying.values()) <= self._clock():
                await self._tried(decay_rusage)

    async def advance_reservations(self) -> None:
        """End the periods of advance reservations."""
        while True:
            await asyncio.sleep(1.0)
            now = self._clock()
            if any(now >= row.end for row in self._engine.cluster.reservations.rows.values()):
                await self._tried(lambda cluster, at: turn(cluster, at, local_time(at)))

    async def tokens(self) -> None:
        """Forget tokens whose time is over."""
        while True:
            await asyncio.sleep(TOKENS_PAUSE)
            if over(self._engine.cluster, self._clock()).events:
                await self._tried(over)

    async def _tried(self, decide: Decide) -> bool:
        """Ask the engine; False where it refused (the store may be full), so that a later round tries again."""
        try:
            await self._engine.ask(decide)
        except Refused as refusal:
            log.warning("%s", refusal)
            return False
        return True

    async def forget_cycles(self) -> None:
        """Delete records of old scheduling cycles from the store, a few at a time."""
        while True:
            before = self._clock() - self._engine.cluster.conf.params.lava_record_days * DAY
            gone = await self._forgotten(self._store.purge_cycles, before)
            await asyncio.sleep(0.1 if gone else 60)

    async def _forgotten(self, forget: Callable[[float], int], before: float) -> int:
        """The number of deleted rows; 0 where a full store refused even that."""
        try:
            return await self._deleting.run(forget, before)
        except StoreRefused as refusal:
            log.warning("old rows stay: %s", refusal)
            return 0


def _end_orphans(orphans: Orphans, grace: int, cluster: Cluster, now: float) -> Decided:
    return Decided(events=orphans.due(cluster, now, grace))


def _note_extension(left: float, cluster: Cluster, now: float) -> Decided:
    return note_extension(cluster, left, now)


def _departs(host: str) -> Decide:
    return lambda cluster, now: Decided(events=depart(cluster, host, now))


def _silent(host: str) -> Decide:
    return lambda cluster, now: Decided(events=silent(cluster, host, now))


def _expired(host: str, keys: list[int]) -> Decide:
    return lambda cluster, now: Decided(events=expired(cluster, host, keys, now))
