"""Whether the disks on which the agent, its starter and jobs keep files have room; without it one job after the other fails.

Rule: a file system that hangs holds up this look only.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence

from proto.daemon.workers import Workers

LEAST_BYTES = 1 << 20
LEAST_FILES = 64
"""Below these a disk is full; it has room again from twice as much on."""
PAUSE = 2.0
STEADY = 5
"""Looks in a row that have to find nothing: jobs that fill a disk and clean up again open and close their host only so often."""
log = logging.getLogger("lava-agent")


class Room:
    """``folders``: what has to have room."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = folders
        self._why = ""
        self._well = 0
        """Looks in a row that found nothing."""
        self._looking = Workers("room on disks")

    def why(self) -> str:
        """What is wrong with the disks, as of the last looks; "" for nothing."""
        return self._why

    async def run(self) -> None:
        """Look again and again."""
        while True:
            self.note(await self._looking.run(self.look))
            await asyncio.sleep(PAUSE)

    def note(self, found: str) -> None:
        """What a look has found: a fault holds at once, and until STEADY looks in a row have found nothing."""
        self._well = 0 if found else self._well + 1
        if found != self._why and (found or self._well >= STEADY):
            log.warning("%s", found or f"{self._why}: no longer so")
            self._why = found

    def look(self) -> str:
        """What is wrong now: one line about the first disk with a fault, "" for nothing."""
        least = 2 if self._why else 1
        return next((why for folder in self._folders if (why := _why_not(folder, least))), "")


def _why_not(folder: str, least: int) -> str:
    try:
        disk = os.statvfs(folder)
    except FileNotFoundError:
        return ""  # it is made for the first job that needs it
    except OSError as error:
        return f"the disk of {folder} cannot be used: {error.strerror}"
    if disk.f_flag & os.ST_RDONLY:
        return f"the disk of {folder} is read-only"
    # a file system that does not know how large it is knows nothing of its room either
    if disk.f_blocks and disk.f_bavail * disk.f_frsize < least * LEAST_BYTES:
        return f"the disk of {folder} is full"
    if disk.f_files and disk.f_favail < least * LEAST_FILES:
        return f"the disk of {folder} is full: it can have no more files"
    return ""
