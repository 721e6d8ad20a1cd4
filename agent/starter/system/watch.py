"""An event loop over epoll with one call-back per file descriptor, for starter and shepherds.

Rule: a call-back may add and remove any file, its own too; events reach only the call-back that is registered at that time.
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
    """An epoll set and its call-backs, each called with the events (bits READ, WRITE, EPOLLHUP)."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._ready: dict[int, Ready] = {}

    def add(self, fd: int, ready: Ready, events: int = READ) -> None:
        """Call ``ready`` when ``fd`` has one of ``events``."""
        self._epoll.register(fd, events)
        self._ready[fd] = ready

    def change(self, fd: int, events: int) -> None:
        """Wait for other events of a watched file."""
        if fd in self._ready:
            self._epoll.modify(fd, events)

    def remove(self, fd: int) -> None:
        """Stop watching a file; to be called before it is closed. An unknown file is no error."""
        if self._ready.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def wait(self, timeout: float | None) -> None:
        """Wait ``timeout`` seconds at most (None: no limit) for events, and deliver them."""
        for fd, events in self._epoll.poll(-1 if timeout is None else timeout, 256):
            ready = self._ready.get(fd)
            if ready is not None:
                ready(events)


class Wake:
    """Wakes up a Watch when a signal arrives that this process has a handler for; none is lost.

    ``fd``: can be read then, where this process has such a pipe already.
    """

    def __init__(self, watch: Watch, fd: int = -1) -> None:
        self._signalled = False
        if fd < 0:
            fd, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        self.fd = fd
        watch.add(self.fd, self._woken)

    def _woken(self, _: int) -> None:
        try:
            os.read(self.fd, 4096)
        except BlockingIOError:
            pass
        self._signalled = True

    def was_signalled(self) -> bool:
        """Whether a signal has arrived since the last call."""
        signalled, self._signalled = self._signalled, False
        return signalled
