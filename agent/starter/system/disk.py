"""Files that are only appended to: an entry is in them whole or not at all, also when the disk is full."""

from __future__ import annotations

import errno
import os


def append(fd: int, data: bytes) -> None:
    """Write ``data`` behind what is there, or nothing of it: OSError. Half an entry would spoil the next one too."""
    written = os.write(fd, data)
    if written < len(data):
        os.ftruncate(fd, os.fstat(fd).st_size - written)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
