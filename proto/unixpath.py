"""Unix sockets in folders whose paths are too long for the kernel's 107 bytes: named through an open folder."""

from __future__ import annotations

import os
import socket
import struct
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


def connect(link: socket.socket, path: str, seconds: int) -> None:
    """Connect a socket that blocks, which waits so long for a place in the queue of who listens; OSError.

    Not by a time-out of Python's: with one, a socket whose queue is full sends its callers away at once.
    """
    link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", seconds, 0))
    with reachable(path) as short:
        link.connect(short)
