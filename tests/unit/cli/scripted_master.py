"""A master on a real socket that says what a test tells it to say."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

Frame = dict[str, Any]
DROP: list[Frame] = []
"""The plan of one ask: read it and close the connection without a word."""
CUT: Frame = {"cut": True}
"""In a plan: close the connection here."""


class ScriptedMaster:
    """Answers the n-th ask (over all connections) with the n-th plan; the last plan serves all later asks.

    Connections are served one after the other, so that a plan is for the ask that it was written for, or ``at_once``.
    """

    def __init__(self, path: Path, *plans: list[Frame] | Callable[[Frame], list[Frame]], at_once: bool = False) -> None:
        self._at_once = at_once
        self.asks: list[Frame] = []
        self.connections = 0
        self._plans = list(plans)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(256)
        self._link: socket.socket | None = None
        """The connection that is served now, which its other side may keep open."""
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> ScriptedMaster:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        if (link := self._link) is not None:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            if self._at_once:
                threading.Thread(target=self._serve_one, args=(link,), daemon=True).start()
            else:
                self._link = link
                self._serve_one(link)
                self._link = None

    def _serve_one(self, link: socket.socket) -> None:
        with link, contextlib.suppress(ConnectionResetError):  # of who has gone, and has not read all
            self._talk(link)

    def _talk(self, link: socket.socket) -> None:
        while (frame := _read(link)) is not None:
            plan = self._plans[min(len(self.asks), len(self._plans) - 1)]
            self.asks.append(frame)
            answers = plan(frame) if callable(plan) else plan
            for answer in answers:
                if answer is CUT:
                    return
                data = json.dumps(answer).encode()
                try:
                    link.sendall(len(data).to_bytes(4, "big") + data)
                except OSError:
                    return
            if not answers:
                return


def _read(link: socket.socket) -> Frame | None:
    size = int.from_bytes(_exactly(link, 4), "big")
    frame = json.loads(_exactly(link, size) or "null")
    return frame if isinstance(frame, dict) else None


def _exactly(link: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = link.recv(size - len(data))
        if not part:
            return b""
        data += part
    return data
