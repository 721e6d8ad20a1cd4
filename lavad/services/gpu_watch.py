"""Watches the GPUs of the hosts by what their agents say: closes those that are not well, and opens them when they are again.

What is decided is in ``core.decide.report.gpus``. That a GPU is closed, and why, is an event; what was heard is in memory only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from lavad.committed import Committed
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.report.gpus import Cause, accepted, cause_of, close_gpu, closed_gpu, open_gpu
from lavad.core.lang.asks import Refused
from lavad.core.plan.volatile import SoftUpdate
from lavad.core.site.host import BY
from lavad.engine import Engine

log = logging.getLogger(__name__)

PAUSE = 1.0
WELL_FOR = 60.0
"""Seconds for which a GPU must be well until it is opened: one that is lost comes and goes for a while."""
WELL = "it is well again"
FREE = "nothing holds it any more"


class _Known(msgspec.Struct):
    """What was heard of one GPU. Times in seconds since the epoch."""

    error: str = ""
    cause: str = ""
    heard: float = 0.0
    well_since: float = 0.0
    told: Cause | None = None
    """The cause that was acted upon."""


class GpuWatch:
    """All GPUs of the cluster."""

    def __init__(self, engine: Engine, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._clock = clock
        self._known: dict[str, dict[str, _Known]] = {}
        """Host to UUID to what is known of it."""
        self._drivers: dict[str, str] = {}
        """Host to what is wrong with its driver, which is told when it changes."""

    def take(self, news: SoftUpdate) -> None:
        """Heartbeats: how the GPUs are, and what is wrong with the driver of them all."""
        now = self._clock()
        self._drivers |= news.gpu_errors
        for host in {*news.gpus, *news.gpu_errors}:
            error = self._drivers.get(host, "")
            states = {state.uuid: (state.error, state.cause) for state in news.gpus.get(host, ())}
            if error:
                states = dict.fromkeys(self._gpus_of(host), (error, Cause.HEALTH.value)) | {
                    uuid: state for uuid, state in states.items() if state[0]
                }
            for uuid, (why, cause) in states.items():
                self._heard(self._known.setdefault(host, {}).setdefault(uuid, _Known()), why, cause, now)

    def _gpus_of(self, host: str) -> Iterator[str]:
        row = self._engine.cluster.hosts.rows.get(host)
        return (gpu.uuid for gpu in (row.facts.gpus if row is not None else ()))

    @staticmethod
    def _heard(known: _Known, error: str, cause: str, now: float) -> None:
        if error or known.error or not known.heard:
            known.well_since = now
        known.error, known.cause, known.heard = error, cause, now

    def committed(self, committed: Committed) -> None:
        """Listener of the engine."""
        for event in committed.events if ev.HostLeft in committed.kinds else ():
            if isinstance(event, ev.HostLeft):
                self._known.pop(event.host, None)
                self._drivers.pop(event.host, None)

    async def run(self) -> None:
        """Serve for ever."""
        while True:
            await asyncio.sleep(PAUSE)
            await self.turn()

    async def turn(self) -> None:
        """Close and open what is due."""
        for host, gpus in list(self._known.items()):
            for uuid, known in list(gpus.items()):
                if known.error:
                    await self._ill(host, uuid, known)
                else:
                    await self._well(host, uuid, known)

    async def _ill(self, host: str, uuid: str, known: _Known) -> None:
        cause = cause_of(known.cause)
        if known.told is None or cause.is_news_after(known.told):
            log.warning("host %s: GPU %s: %s", host, uuid, known.error)
            if await self._ask(partial(close_gpu, host=host, gpu=uuid, cause=cause, why=known.error)):
                known.told = cause

    async def _well(self, host: str, uuid: str, known: _Known) -> None:
        closed = closed_gpu(self._engine.cluster, host, uuid)
        by_master = closed is not None and closed.by == BY
        opened = accepted(self._engine.cluster, host, uuid)
        cause = cause_of(closed.cause) if closed is not None and by_master else opened or known.told
        if cause is None:
            return
        # only what was heard after it was closed counts, and a host that is silent says nothing
        shut = closed.at if closed is not None and by_master else 0.0
        if known.heard <= shut or known.heard - max(known.well_since, shut) < (0.0 if cause is Cause.HELD else WELL_FOR):
            return
        known.told = None
        if (by_master and cause is not Cause.FAULT) or opened is not None:
            log.info("host %s: GPU %s is opened", host, uuid)
            await self._ask(partial(open_gpu, host=host, gpu=uuid, why=FREE if cause is Cause.HELD else WELL))

    async def _ask(self, decide: Callable[..., list[ev.Event]]) -> bool:
        def decided(cluster: Cluster, now: float) -> Decided:
            return Decided(events=decide(cluster, now=now))

        with contextlib.suppress(Refused):  # of a full store: the next turn tries again
            await self._engine.ask(decided)
            return True
        return False
