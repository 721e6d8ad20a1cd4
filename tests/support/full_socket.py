"""A local socket in whose queue there is no place left."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any


class FullSocket:
    """Listens; others wait in its queue until ``next`` accepts them."""

    def __init__(self, path: Path) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen(0)
        self._listening.settimeout(30)
        self._others: list[socket.socket] = []
        try:
            while True:
                other = socket.socket(socket.AF_UNIX)
                self._others.append(other)
                other.setblocking(False)
                other.connect(str(path))
        except BlockingIOError:
            self._others.pop().close()

    def __enter__(self) -> FullSocket:
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self._listening, *self._others):
            one.close()

    def next(self) -> socket.socket:
        """The connection behind those that were there from the beginning."""
        for _ in self._others:
            self._listening.accept()[0].close()
        return self._listening.accept()[0]


class Connecting:
    """``kind``: sockets that note how they connect."""

    def __init__(self) -> None:
        self._began = threading.Event()
        self._patience: list[float | None] = []
        noting = self

        class Kind(socket.socket):
            def connect(self, address: Any) -> None:
                noting._patience.append(self.gettimeout())
                noting._began.set()
                super().connect(address)

        self.kind = Kind

    def waits(self) -> None:
        """One connects, and would wait."""
        assert self._began.wait(30)
        assert self._patience == [None], "one with a time-out is refused at once by a full queue"
