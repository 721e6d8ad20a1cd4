"""A query that may take long, in a fork of the query process: it sees the cluster as it was at the fork, and holds up no other.

Rule: it ends at its time limit, when its memory grows too far, when its reader goes away, and with its parent. It is never far
ahead of its reader, so that what is not read does not pile up.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable

from lavad.replica import protocol as feed
from lavad.replica.spawn import DEATH_SIGNAL

AHEAD = 16
"""Frames of an answer that its reader has not taken yet."""
MOST_MEMORY = 512 << 20
"""Bytes by which a query may grow."""
Render = Callable[[feed.Ask, Callable[[feed.Answer], None]], None]


class Pace:
    """How far an answer is ahead of its reader."""

    def __init__(self) -> None:
        self._ahead = 0
        self.held_since = math.inf
        """Since when it cannot go on before its reader takes more."""

    @property
    def is_ready(self) -> bool:
        """Whether its reader has taken enough for it to go on."""
        return self._ahead < AHEAD

    def sent(self, count: int) -> None:
        """So many frames have gone to its reader."""
        self._ahead += count
        if not self.is_ready:
            self.held_since = min(self.held_since, time.monotonic())

    def taken(self, count: int) -> None:
        """The reader has taken so many frames."""
        self._ahead -= count
        if self.is_ready:
            self.held_since = math.inf


class LongQuery:
    """The parent's side of one."""

    def __init__(self, ask: feed.Ask, render: Render, limit: float) -> None:
        self.ask = ask
        self.deadline = time.monotonic() + limit
        self.socket, theirs = socket.socketpair()
        gc.freeze()  # a collection in the child would copy every page
        self.pid = os.fork()
        if not self.pid:
            self.socket.close()
            _run(ask, render, theirs)
        gc.unfreeze()
        theirs.close()
        self.socket.setblocking(False)
        self._buffer = bytearray()
        self.pace = Pace()

    def read(self) -> tuple[list[bytes], bool]:
        """(the whole frames that have come, whether it has ended)."""
        ended = False
        try:
            piece = self.socket.recv(1 << 20)
            self._buffer += piece
            ended = not piece
        except BlockingIOError:
            pass
        except OSError:
            ended = True
        frames: list[bytes] = []
        size = feed.HEAD.size
        while len(self._buffer) >= size and len(self._buffer) >= (end := size + feed.HEAD.unpack(self._buffer[:size])[0]):
            frames.append(bytes(self._buffer[:end]))
            del self._buffer[:end]
        self.pace.sent(len(frames))
        return frames, ended

    def taken(self, count: int) -> None:
        """The reader has taken so many frames."""
        self.pace.taken(count)
        try:
            self.socket.send(b"." * count)
        except OSError:
            pass  # it has ended, which its end of the socket tells

    def end(self) -> None:
        """End the process."""
        os.kill(self.pid, signal.SIGKILL)
        self.gone()

    def gone(self) -> bool:
        """The process has closed its end: whether it has sent its whole answer."""
        self.socket.close()
        return os.waitpid(self.pid, 0)[1] == 0


def _run(ask: feed.Ask, render: Render, link: socket.socket) -> None:
    """The child's whole life."""
    status = 1
    try:
        ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + MOST_MEMORY, now + MOST_MEMORY))
        ahead = 0

        def send(answer: feed.Answer) -> None:
            nonlocal ahead
            while ahead >= AHEAD:
                taken = link.recv(64)
                if not taken:
                    os._exit(0)  # the query was dropped
                ahead -= len(taken)
            link.sendall(feed.frame(answer))
            ahead += 1

        render(ask, send)
        status = 0
    except BaseException as error:
        print(f"query {ask.query.command} {ask.query.options}: {error!r}", file=sys.stderr, flush=True)  # noqa: T201
    finally:
        os._exit(status)
