"""The master's periodic tasks: silent hosts, expired leases, deadlines, the masters' lease, old answers. The decisions
themselves are in ``core.decide``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import monotonic

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.groups import clean_groups, unused_groups
from lavad.core.decide.control.by_time import deadlines, decay_rusage, migrations
from lavad.core.decide.control.depart import depart, departing
from lavad.core.decide.control.hosts import expired, is_silent, may_fence, silent
from lavad.core.decide.control.office import check_extension
from lavad.core.decide.reserve.reservations import turn
from lavad.core.lang.asks import Caller, Refused
from lavad.core.lang.states import HostState
from lavad.engine import Decide, Engine
from lavad.hosts.outbox import Outbox
from lavad.hosts.sessions import Sessions
from lavad.local_time import local_time
from lavad.store.errors import StoreRefused
from lavad.store.lease import Lease
from lavad.store.writer import Store
from proto.workers import Workers

log = logging.getLogger(__name__)

ANSWERS_KEPT = 86_400.0
DAY = 86_400.0
OVERDUE_PAUSE = 10.0
TOGETHER = 50
"""Hosts that are checked for overdue orders before other tasks get their turn."""


class LeaseLost(Exception):
    """Another master has taken over."""


class Loops:
    """The master's periodic tasks."""

    def __init__(
        self, engine: Engine, sessions: Sessions, store: Store, lease: Lease, clock: Callable[[], float], taken_over: float
    ) -> None:
        self._engine = engine
        self._sessions = sessions
        self._store = store
        self._lease = lease
        self._renewing = Workers("renewals of the lease")
        self._deleting = Workers("deletions")
        self._clock = clock
        self._taken_over = taken_over
        self._fenced: set[str] = set()
        self._extended_until = 0.0
        """No host is fenced before this time (badmin lease extend)."""

    def extend_leases(self, caller: Caller, seconds: float) -> None:
        """badmin lease extend: no host is fenced, and no job started elsewhere, for so long. Raises Refused."""
        check_extension(self._engine.cluster, caller, seconds)
        self._extended_until = self._clock() + seconds

    async def hosts(self) -> None:
        """Find silent hosts, expired leases and hosts that leave the cluster."""
        while True:
            params = self._engine.cluster.conf.params
            await asyncio.sleep(min(1.0, params.lava_host_timeout / 4))
            now = self._clock()
            for name, host in list(self._engine.cluster.hosts.rows.items()):
                if departing(self._engine.cluster, name, now):
                    await self._depart(name)
                heard = self._sessions.heard.get(name, self._taken_over)
                if host.state is HostState.OK:
                    self._fenced.discard(name)
                    if is_silent(self._engine.cluster, name, heard, now):
                        log.warning("host %s: silent for %.0f s", name, now - heard)
                        self._sessions.hang_up(name)
                        await self._tried(_bound(silent, name))
                elif name not in self._fenced and self._may_fence(name, now) and await self._tried(_bound(expired, name)):
                    self._fenced.add(name)

    async def _depart(self, host: str) -> None:
        await self._engine.ask(_bound(depart, host))
        if host not in self._engine.cluster.hosts.rows:
            log.info("host %s has left the cluster", host)
            self._sessions.forget_host_left(host)
            self._fenced.discard(host)

    def _may_fence(self, host: str, now: float) -> bool:
        renewed = max(self._sessions.renewed.get(host, 0.0), self._taken_over, self._extended_until)
        return may_fence(self._engine.cluster, renewed, now)

    async def overdue(self, outbox: Outbox) -> None:
        """Send orders again that a host has not acted on in time."""
        while True:
            await asyncio.sleep(OVERDUE_PAUSE)
            sessions = list(self._sessions.rows.values())
            for at in range(0, len(sessions), TOGETHER):
                async with self._engine.quiet:
                    for session in sessions[at : at + TOGETHER]:
                        outbox.overdue(session)
                await asyncio.sleep(0)

    async def deadlines(self) -> None:
        """Termination deadlines (bsub -t): pending jobs exit, running ones are killed."""
        while True:
            await asyncio.sleep(5.0)
            if any(spec.deadline for spec in self._engine.cluster.specs.rows.values()):
                await self._tried(deadlines)

    async def migrations(self) -> None:
        """MIG: migrate jobs that the system suspended long ago."""
        while True:
            await asyncio.sleep(2.0)
            if migrations(self._engine.cluster, self._clock()).events:
                await self._tried(migrations)

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

    async def _tried(self, decide: Decide) -> bool:
        """Ask the engine; False where it refused (the store may be full), so that a later round tries again."""
        try:
            await self._engine.ask(decide)
        except Refused as refusal:
            log.warning("%s", refusal)
            return False
        return True

    async def renew(self, epoch: int, seconds: float) -> None:
        """Hold the masters' lease; raises LeaseLost.

        A refused renewal, as of a full store, is ignored while the lease is valid; a master with exclusive use of its store
        continues in any case.
        """
        held_from = monotonic()
        while True:
            await asyncio.sleep(seconds / 4)
            asked = monotonic()
            try:
                held = await self._renewing.run(self._lease.renew, epoch, seconds)
            except StoreRefused as refusal:
                if not self._lease.alone and asked - held_from > seconds:
                    raise LeaseLost(f"the lease of epoch {epoch} ran out: {refusal}") from refusal
                log.warning("the lease is not renewed: %s", refusal)
                continue
            if not held:
                raise LeaseLost(f"another master has taken over from epoch {epoch}")
            held_from = asked

    async def clean(self) -> None:
        """Delete old answers from the store."""
        while True:
            await asyncio.sleep(3600)
            await self._forgotten(self._store.purge, self._clock() - ANSWERS_KEPT)

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


def _bound(decide: Callable[[Cluster, str, float], list[ev.Event]], host: str) -> Callable[[Cluster, float], Decided]:
    return lambda cluster, now: Decided(events=decide(cluster, host, now))
