"""Traces of jobs (LAVA_TRACES): keeps the process that sends them, and hands on to it why jobs wait.

Rule: nothing here waits for that process. What it does not take in time is left out, and it is told how things are then, and
which classes of jobs have ended to wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Mapping
from typing import BinaryIO

from lavad.committed import Committed
from lavad.core.cluster.cluster import Cluster
from lavad.core.plan.volatile import Soft, SoftUpdate, WhyClass
from lavad.processes.traces import MISSING
from lavad.replica import protocol as feed
from lavad.replica.started import started
from proto.daemon.workers import Workers

log = logging.getLogger(__name__)

PAUSE = 30.0
"""Seconds until a process that has ended is started again."""
KEPT = 100
"""News that the process has not taken yet."""
MOST_OVER = 20_000
"""Classes that have ended to wait meanwhile: as many as the process knows reasons of."""


class Traces:
    """The process, and what it is to be told."""

    def __init__(self, settings: feed.ReplicaSettings, cluster: Cluster, soft: Soft, output: BinaryIO | None) -> None:
        self._settings = settings
        self._cluster = cluster
        self._soft = soft
        self._output = output
        self._news: asyncio.Queue[Mapping[int, WhyClass]] = asyncio.Queue(KEPT)
        self._waiting: set[int] = set()
        """Specs whose jobs wait for a reason that was handed on."""

    def take(self, news: SoftUpdate) -> None:
        """Why jobs wait, as the scheduler says it."""
        if news.why:
            self._put(self._of_waiting(news.why))

    def committed(self, committed: Committed) -> None:
        """No job of a class waits any more: the next one has not waited for the same reason."""
        of_jobs = {job.spec for job in (*committed.changed, *committed.finished)}
        found = of_jobs | {array.spec for array in committed.arrays}
        if over := (found & self._waiting).difference(self._cluster.pending):
            self._waiting -= over
            self._put(dict.fromkeys(over, WhyClass((), committed.events[-1].at)))

    def _of_waiting(self, why: Mapping[int, WhyClass]) -> dict[int, WhyClass]:
        found = {spec: one for spec, one in why.items() if spec in self._cluster.pending}
        self._waiting.update(found)
        return found

    def _put(self, why: dict[int, WhyClass]) -> None:
        if self._news.full():
            why = self._anew(why)
        if why:
            self._news.put_nowait(why)

    def _anew(self, newest: Mapping[int, WhyClass]) -> dict[int, WhyClass]:
        """In place of what was not taken and of the newest: all that is so now, and who has ended to wait."""
        told: dict[int, WhyClass] = {}
        while not self._news.empty():
            told |= self._news.get_nowait()
        told |= newest
        now = self._of_waiting(self._soft.why)
        over = {spec: one for spec, one in told.items() if not one.reasons and spec not in now}
        while len(over) > MOST_OVER:
            del over[next(iter(over))]
        return over | now

    async def run(self) -> None:
        """Until the packages that it needs turn out not to be installed."""
        while True:
            process, link, _ = await started("lavad.processes.traces", self._output)
            link.setblocking(False)
            feeder = asyncio.create_task(self._feed(link))
            try:
                status = await Workers("traces").run(process.wait)
            finally:
                feeder.cancel()
                link.close()
                process.kill()
            if status == MISSING:
                log.error("LAVA_TRACES: jobs are not traced: OpenTelemetry is not installed (pip install 'lavad[otel]')")
                return
            await asyncio.sleep(PAUSE)

    async def _feed(self, link: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            await loop.sock_sendall(link, feed.frame(self._settings) + _frame(self._anew({})))
            while True:
                await loop.sock_sendall(link, _frame(await self._news.get()))


def _frame(why: Mapping[int, WhyClass]) -> bytes:
    return feed.frame(SoftUpdate(why=dict(why)))
