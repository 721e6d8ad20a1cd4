"""Unix sockets in folders whose paths are too long for the kernel; as ``proto.unixpath``, which is not imported here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST = 100


@contextmanager
def reachable(path: str) -> Iterator[str]:
    """A name for ``path`` that bind and connect take while the context lasts."""
    if len(os.fsencode(path)) <= LONGEST:
        yield path
        return
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)
