"""A local socket in whose queue there is no place left."""

from __future__ import annotations

import socket
from pathlib import Path


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
