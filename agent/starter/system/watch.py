"""Which files are ready: epoll with one call-back a file. Starter and shepherd live in its loop.

Rule: a call-back may watch and unwatch anything, itself too; one file's events reach only who watches it now.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable

READ = select.EPOLLIN
WRITE = select.EPOLLOUT
Ready = Callable[[int], object]


class Watch:
    """An epoll set and its call-backs, which get the events (READ, WRITE and EPOLLHUP bits)."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._ready: dict[int, Ready] = {}

    def add(self, fd: int, ready: Ready, events: int = READ) -> None:
        """Call ``ready`` when ``fd`` has one of ``events``."""
        self._epoll.register(fd, events)
        self._ready[fd] = ready

    def change(self, fd: int, events: int) -> None:
        """Other events for a watched file."""
        if fd in self._ready:
            self._epoll.modify(fd, events)

    def remove(self, fd: int) -> None:
        """Watch it no longer; before it is closed. An unknown file is no error."""
        if self._ready.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def wait(self, timeout: float | None) -> None:
        """Wait for events (None: for ever) and deliver them."""
        for fd, events in self._epoll.poll(-1 if timeout is None else timeout, 256):
            ready = self._ready.get(fd)
            if ready is not None:
                ready(events)


class Wake:
    """Ends the waiting of a loop when a signal comes that this process has a handler for; none is lost."""

    def __init__(self, watch: Watch) -> None:
        self._came = False
        self._read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        watch.add(self._read, self._woken)

    def _woken(self, _: int) -> None:
        try:
            os.read(self._read, 4096)
        except BlockingIOError:
            pass
        self._came = True

    def came(self) -> bool:
        """Whether one came since this was last asked."""
        came, self._came = self._came, False
        return came
