"""Traces of jobs (LAVA_TRACES): keeps the process that sends them, and hands on to it why jobs wait.

Rule: nothing here waits for that process: what it does not take in time is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from typing import BinaryIO

from lavad.core.plan.volatile import Soft, SoftUpdate
from lavad.processes.traces import MISSING
from lavad.replica import protocol as feed
from lavad.replica.spawn import spawn
from proto.workers import Workers

log = logging.getLogger(__name__)

PAUSE = 30.0
"""Seconds until a process that has ended is started again."""
KEPT = 100
"""News that the process has not taken yet."""


class Traces:
    """The process, and what it is to be told."""

    def __init__(self, settings: feed.ReplicaSettings, soft: Soft, output: BinaryIO | None) -> None:
        self._settings = settings
        self._soft = soft
        self._output = output
        self._news: asyncio.Queue[bytes] = asyncio.Queue(KEPT)

    def take(self, news: SoftUpdate) -> None:
        """Why jobs wait, as the scheduler says it."""
        if news.why and not self._news.full():
            self._news.put_nowait(feed.frame(SoftUpdate(why=news.why)))

    async def run(self) -> None:
        """Until the packages that it needs turn out not to be installed."""
        while True:
            process, link = spawn("lavad.processes.traces", self._output)
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
            await loop.sock_sendall(link, feed.frame(self._settings) + feed.frame(SoftUpdate(why=self._soft.why)))
            while True:
                await loop.sock_sendall(link, await self._news.get())
