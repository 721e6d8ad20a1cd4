"""Ends a replica's process that does not answer, as another is started then."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

import msgspec
import psutil

from lavad.replica import protocol as feed

SILENT, LOADING = 30.0, 20
"""Seconds in which a process answers; how many times that at its start, as it reads all live records first."""
log = logging.getLogger(__name__)


class Watched(Protocol):
    """What is known of the process."""

    pid: int
    there: asyncio.Event
    answered: int
    """Number of the last ping that was answered."""
    reads: bool
    """Whether its next message is waited for, and not what becomes of the last one."""

    def send(self, message: msgspec.Struct) -> None:
        """Send a message."""

    def kill(self) -> None:
        """End the process."""


async def watch(process: Watched, name: str, works_long: bool = False) -> None:
    """For ever. ``works_long``: it answers between two pieces of its work only, and is not silent while it has CPU time."""
    number, pid, first, since = 0, 0, 0, 0
    while True:
        await process.there.wait()
        number += 1
        if pid != process.pid:
            pid, first = process.pid, number
        used = _cpu_time(pid)
        process.send(feed.Ping(number=number))
        await asyncio.sleep(SILENT)
        silent = process.answered < number and pid == process.pid and process.reads
        if works_long and _cpu_time(pid) > used:
            silent = False
        since = since + 1 if silent else 0
        if since >= (1 if process.answered >= first else LOADING):
            log.error("the %s (pid %d) has not answered for %g seconds; it is ended", name, pid, since * SILENT)
            process.kill()


def _cpu_time(pid: int) -> float:
    """Seconds."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
