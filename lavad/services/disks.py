"""The disks that the master writes to: a notice for each that is nearly full, before it is.

Rule: a thread of its own looks: a file system that hangs holds up the look alone, and is told of.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable

from proto.daemon.workers import Workers

LEAST_SHARE = 0.03
LEAST_BYTES = 1 << 30
"""A disk is nearly full below both: 3 % of a large one is room enough."""
HANGS = 20.0
"""Seconds after which a look is said not to end."""


def sqlite_folder(database: str) -> list[str]:
    """The folder of a store that is a file; [] for a server's."""
    scheme, _, path = database.partition(":///")
    return [os.path.dirname(path) or "."] if scheme.startswith("sqlite") and path else []


class Disks:
    """Looks at the file systems of these folders; one that cannot be looked at tells nothing."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = tuple(dict.fromkeys(folder for folder in folders if folder))
        self._thread = Workers("disks")
        self._looking: asyncio.Future[list[str]] | None = None
        self._began = 0.0
        self._found: list[str] = []

    def notices(self) -> list[str]:
        """What the last look that has ended found; begins the next one. Called by the loop."""
        looking = self._looking
        if looking is None or looking.done():
            if looking is not None:
                self._found = looking.result()
            self._looking, self._began = self._thread.begin(self.look), time.monotonic()
        elif time.monotonic() - self._began >= HANGS:
            folders = " or ".join(self._folders)
            return [*self._found, f"the disk of {folders} does not answer: a look at it has not ended for {HANGS:g} s"]
        return self._found

    def look(self) -> list[str]:
        """``the disk of /var/lib/lava has 120 MB left (1 %)``, once for each file system."""
        found: dict[int, str] = {}
        for folder in self._folders:
            try:
                disk, device = os.statvfs(folder), os.stat(folder).st_dev
            except OSError:
                continue
            free, size = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
            if size and free < LEAST_BYTES and free < LEAST_SHARE * size:
                found[device] = f"the disk of {folder} has {free >> 20} MB left ({100 * free / size:.0f} %)"
        return list(found.values())
