"""Watches hosts for faults of their own: closes those on which jobs fail, and opens them when they are well again.

What is counted is in ``core.rules.host_faults``. Counts are in memory only; that a host is closed, and why, is an event.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial

from lavad.committed import Committed
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control.faulty_hosts import EXITS, Cause, close_faulty, open_again
from lavad.core.job.job import Job
from lavad.core.lang.asks import Refused
from lavad.core.rules import host_faults
from lavad.core.rules.host_faults import Faults
from lavad.core.site.host import BY
from lavad.engine import Engine

log = logging.getLogger(__name__)

PAUSE = 1.0
WELL = "its health check succeeds again"
_HEARD = (ev.PartRefused, ev.PartStarted, ev.HostSwitched, ev.HostLeft)
LONGEST_RETRY = 3600.0
"""Seconds at most until a closed host is tried again; each time it takes twice as long."""


class HostWatch:
    """All hosts of the cluster."""

    def __init__(self, engine: Engine, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._clock = clock
        self._faults: dict[str, Faults] = {}
        self._health: dict[str, str] = {}
        """What the agents say is wrong with their hosts."""
        self._told: dict[str, str] = {}
        """What of it was acted on: a host that an administrator opens nevertheless stays open."""
        self._retries: dict[str, tuple[float, float]] = {}
        """Hosts closed for failed starts: when they are tried again, and the seconds until then."""

    def heard(self, host: str, health: str) -> None:
        """A heartbeat: what is wrong with the host, "": nothing."""
        self._health[host] = health

    def committed(self, committed: Committed) -> None:
        """Listener of the engine."""
        for event in () if committed.kinds.isdisjoint(_HEARD) else committed.events:
            if isinstance(event, ev.PartRefused):
                self._refused(event)
            elif isinstance(event, ev.PartStarted):
                self._started(event.key, event.host)
            elif isinstance(event, ev.HostSwitched):
                self._switched(event)
            elif isinstance(event, ev.HostLeft):
                for known in (self._faults, self._health, self._told, self._retries):
                    known.pop(event.host, None)
        for job in committed.finished:
            self._ended(job)

    def _refused(self, event: ev.PartRefused) -> None:
        params = self._engine.cluster.conf.params
        faults = host_faults.refused(self._faults.get(event.host, Faults()), event.key, event.code, event.why)
        if "JOBINIT" in params.exit_rate_type and event.code not in host_faults.NOT_COUNTED:
            faults = host_faults.exited(faults, event.at, params.job_exit_rate_duration)
        self._faults[event.host] = faults

    def _started(self, key: int, host: str) -> None:
        for name, faults in self._faults.items():
            self._faults[name] = host_faults.started(faults) if name == host else host_faults.started_elsewhere(faults, key)
        if host in self._retries and not self._is_closed(host):
            del self._retries[host]

    def _ended(self, job: Job) -> None:
        run = job.run
        if run is None or run.verdict is None or run.verdict.lost:
            return
        params = self._engine.cluster.conf.params
        bad = host_faults.ended_badly(job, frozenset(params.exit_rate_type)) and self._has_rates()
        for part in run.parts:
            if self._faults:
                self._started(job.key, part.host)
            if bad:
                faults = self._faults.get(part.host, Faults())
                self._faults[part.host] = host_faults.exited(faults, self._clock(), params.job_exit_rate_duration)

    def _has_rates(self) -> bool:
        conf = self._engine.cluster.conf
        return conf.params.global_exit_rate is not None or any(host.exit_rate is not None for host in conf.hosts)

    def _switched(self, event: ev.HostSwitched) -> None:
        if event.closed and event.cause == Cause.STARTS.value:
            pause = min(LONGEST_RETRY, 2 * self._retries[event.host][1]) if event.host in self._retries else self._retry()
            self._retries[event.host] = (event.at + pause, pause)
        elif not event.closed and event.by != BY:
            self._retries.pop(event.host, None)
        if not event.closed:
            self._faults[event.host] = Faults(on_trial=event.by == BY and event.host in self._retries)

    def _retry(self) -> float:
        return float(self._engine.cluster.conf.params.lava_host_retry)

    def _is_closed(self, host: str) -> bool:
        row = self._engine.cluster.hosts.rows.get(host)
        return row is not None and row.closed

    async def run(self) -> None:
        """Serve for ever."""
        while True:
            await asyncio.sleep(PAUSE)
            await self.turn()

    async def turn(self) -> None:
        """Close and open what is due."""
        for host, health in list(self._health.items()):
            if health or self._told.get(host) or self._is_closed(host):
                await self._check_health(host, health)
        for host, faults in list(self._faults.items()):
            await self._check_faults(host, faults)
        now = self._clock()
        for host, row in list(self._engine.cluster.hosts.rows.items()):
            if row.closed and row.closed_for == Cause.STARTS.value:
                due, pause = self._retries.setdefault(host, (now + self._retry(), self._retry()))
                if now >= due:
                    await self._open(host, Cause.STARTS, f"for a trial, after {pause:.0f} s")

    async def _check_health(self, host: str, health: str) -> None:
        told = self._told.get(host, "")
        done = True
        if health and not told:
            done = await self._close(host, Cause.HEALTH, health)
        elif not health:
            done = await self._open(host, Cause.HEALTH, WELL)
            if done and told:
                # what the host has found out since is why jobs could not start there
                done = await self._open(host, Cause.STARTS, WELL)
        if done:
            self._told[host] = health

    async def _check_faults(self, host: str, faults: Faults) -> None:
        params, now = self._engine.cluster.conf.params, self._clock()
        if host_faults.loses_jobs(faults, params.lava_host_refusals):
            await self._close(host, Cause.STARTS, f"{len(faults.proven)} jobs in a row could not start: {faults.why}")
        conf = self._engine.cluster.host_conf.get(host)
        rate = params.global_exit_rate if conf is None or conf.exit_rate is None else conf.exit_rate
        if host_faults.exceeds(faults, rate, now, params.job_exit_rate_duration):
            await self._close(host, Cause.EXITS, EXITS)

    async def _close(self, host: str, cause: Cause, why: str) -> bool:
        """False where it is to be tried again; the same holds for ``_open``."""
        if self._is_closed(host):
            return True
        log.warning("host %s is closed: %s", host, why)
        return await self._ask(partial(close_faulty, host=host, cause=cause, why=why))

    async def _open(self, host: str, cause: Cause, why: str) -> bool:
        row = self._engine.cluster.hosts.rows.get(host)
        if row is None or not row.closed or row.closed_for != cause.value:
            return True
        log.info("host %s is opened: %s", host, why)
        return await self._ask(partial(open_again, host=host, cause=cause, why=why))

    async def _ask(self, decide: Callable[..., list[ev.Event]]) -> bool:
        def decided(cluster: Cluster, now: float) -> Decided:
            return Decided(events=decide(cluster, now=now))

        with contextlib.suppress(Refused):  # of a full store: the next turn tries again
            await self._engine.ask(decided)
            return True
        return False
