"""The memory of a daemon in pages of 2 MB, from a while after its start on: after a pause it finds its code and data sooner.

A daemon that waits for the next job has lost to others what the processor knew of its thousands of small pages.

Rule: what is there already is moved together, so that hardly any memory is added; what comes later is left to the kernel.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator

AFTER = 5.0
"""Seconds, in which a daemon reads what it needs."""
MOST = 64
"""Pages: more would be of a large cluster, and hold up the daemon."""
DENSE = 0.75
"""The part of a piece of memory that is in use at least; stacks of threads are nearly empty."""
SIZE = 2 << 20
_COLLAPSE = 25
"""MADV_COLLAPSE of Linux 6.1; on an older kernel nothing happens."""


def gather_soon() -> None:
    """Do it once, in a thread of its own."""
    timer = threading.Timer(AFTER, gather)
    timer.daemon = True
    timer.start()


def gather() -> int:
    """How many pages there are now."""
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    found = 0
    try:
        for begin in _dense():
            found += advise(begin, SIZE, _COLLAPSE) == 0
            if found == MOST:
                break
    except OSError:  # there is no /proc
        pass
    return found


def _dense() -> Iterator[int]:
    """Where large pages would lie in pieces of memory that are of this process alone and in use."""
    with open("/proc/self/smaps", "rb") as file:
        lines = file.read().splitlines()
    begin = end = 0
    for line in lines:
        name, *words = line.split()
        if not name.endswith(b":"):
            where, _, after = name.partition(b"-")
            own = words[0].startswith(b"rw") and (len(words) == 4 or words[4] == b"[heap]")
            begin, end = (int(where, 16), int(after, 16)) if own else (0, 0)
        elif name == b"Rss:" and int(words[0]) * 1024 >= DENSE * (end - begin):
            yield from range(-(-begin // SIZE) * SIZE, end - SIZE + 1, SIZE)
