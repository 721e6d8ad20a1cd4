"""The disks that the master writes to: a notice for each that is nearly full, before it is."""

from __future__ import annotations

import os
from collections.abc import Iterable

LEAST_SHARE = 0.03
LEAST_BYTES = 1 << 30
"""A disk is nearly full below both: 3 % of a large one is room enough."""


def sqlite_folder(database: str) -> list[str]:
    """The folder of a store that is a file; [] for a server's."""
    scheme, _, path = database.partition(":///")
    return [os.path.dirname(path) or "."] if scheme.startswith("sqlite") and path else []


class Disks:
    """Looks at the file systems of these folders; one that cannot be looked at tells nothing."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = tuple(dict.fromkeys(folder for folder in folders if folder))

    def notices(self) -> list[str]:
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
