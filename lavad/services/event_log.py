"""The process that writes lsb.events, kept running; what keeps it from writing, as it says, is a notice."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import subprocess
import time
from typing import BinaryIO

from lavad.replica import protocol as feed
from lavad.replica.started import started
from proto.daemon.workers import Workers

PAUSE = 0.5
LONGEST_PAUSE = 30.0
"""Seconds: the first and the longest pause before it is started again."""
QUERIES_WAIT = 30.0
"""Seconds that the first start waits for the query process."""
log = logging.getLogger(__name__)


class EventLog:
    """``output``: the log that it writes to, too."""

    def __init__(self, output: BinaryIO | None) -> None:
        self._output = output
        self._why = ""

    def notices(self) -> list[str]:
        """Why lsb.events is not written."""
        return [self._why] if self._why else []

    async def run(self, settings: feed.ReplicaSettings, queries: asyncio.Event) -> None:
        """Start it again whenever it ends, ever later while it ends soon.

        It begins once ``queries`` are answered, which its own start would delay: it reads what it has missed from the store.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(QUERIES_WAIT):
                await queries.wait()
        pause = PAUSE
        while True:
            process, link, _ = await started("lavad.processes.lsb_events", self._output)
            try:
                began = time.monotonic()
                with contextlib.suppress(OSError):  # it has ended already
                    link.sendall(feed.frame(settings))
                status = await Workers("event log").run(self.follow, link, process)
                if time.monotonic() - began >= LONGEST_PAUSE:
                    pause = PAUSE
                log.warning("lava-eventlog (pid %d, exit status %d) died; another starts in %g s", process.pid, status, pause)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            finally:
                link.close()
                process.kill()

    def follow(self, link: socket.socket, process: subprocess.Popen[bytes]) -> int:
        """Hear what it says, a line each time, an empty one as it begins and once it writes again; its exit status at its end."""
        try:
            with link.makefile("rb") as lines:
                for line in lines:
                    self._why = line.decode(errors="replace").strip()
        except OSError:
            pass
        return process.wait()
