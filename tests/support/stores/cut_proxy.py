"""A proxy before a PostgreSQL socket that cuts the line of an ask: before it, within it, or when it was carried out."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

When = Literal["before", "within", "after", "held"]
"""What has reached the server when the line to the client is cut: nothing, half of it, all, whose answer is lost; ``held``:
nothing, but the server gets it later, when told to.
"""


_SYNC = b"S\0\0\0\4"
"""What an ask ends with, which may come in several parts."""


class CutProxy:
    """Listens as ``folder``/.s.PGSQL.5432; cuts the line of the next ask once ``cut`` says so."""

    def __init__(self, folder: Path, target: str) -> None:
        self._when: When | None = None
        self._meanwhile: Callable[[], object] = lambda: None
        self._shut = False
        self.lines = 0
        """Open lines to the server."""
        self._released, self._late = threading.Event(), threading.Event()
        self._target = target
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, when: When, meanwhile: Callable[[], object] = lambda: None) -> None:
        """At the next ask. ``meanwhile`` is done before the client knows."""
        self._meanwhile, self._when = meanwhile, when

    def shut(self) -> None:
        """Let nobody in from now on."""
        self._shut = True

    def release(self) -> None:
        """Let the server carry out what is held; returns when it has answered."""
        self._released.set()
        assert self._late.wait(30)

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            if self._shut:
                return
            server.connect(self._target)
            self.lines += 1
            try:
                self._pass_on(client, server)
            except ConnectionError:
                pass
            finally:
                client.close()
                self.lines -= 1

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        while True:
            ready, _, _ = select.select([client, server], [], [])
            if client in ready:
                asked = client.recv(65536)
                if not asked:
                    return
                when, self._when = self._when, None
                if when is not None:
                    while not asked.endswith(_SYNC) and (more := client.recv(65536)):
                        asked += more
                    self._end(when, asked, client, server)
                    return
                server.sendall(asked)
            if server in ready:
                answered = server.recv(65536)
                if not answered:
                    return
                client.sendall(answered)

    def _end(self, when: When, asked: bytes, client: socket.socket, server: socket.socket) -> None:
        if when in ("within", "after"):
            server.sendall(asked if when == "after" else asked[: len(asked) // 2])
        if when == "after":
            server.recv(65536)
        self._meanwhile()
        client.close()
        if when == "held":
            assert self._released.wait(30)
            server.sendall(asked)
            server.recv(65536)
            self._late.set()
