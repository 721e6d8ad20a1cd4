"""The connection to a local socket."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lava_client.local import LocalLink
from tests.unit.cli.full_socket import FullSocket

ANSWER = b'{"ok":{"job":7}}'


def test_a_place_in_the_queue_of_a_socket_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others in front, however many, are no master that is away: not for one that waits for none, either."""
    began = threading.Event()
    patience: list[float | None] = []

    class Begins(socket.socket):
        def connect(self, address: Any) -> None:
            patience.append(self.gettimeout())
            began.set()
            super().connect(address)

    link = LocalLink({"LAVA_SOCKET": str(tmp_path / "s"), "LSF_ENVDIR": str(tmp_path)}, timeout=0.0)
    with ThreadPoolExecutor(1) as pool, FullSocket(tmp_path / "s") as full:
        monkeypatch.setattr(socket, "socket", Begins)
        answer = pool.submit(link.ask, {"ask": "kill"})
        assert began.wait(30)
        assert patience == [None], "one with a time-out is refused at once by a full queue"
        with full.next() as other:
            other.recv(1 << 16)
            other.sendall(len(ANSWER).to_bytes(4, "big") + ANSWER)
        assert answer.result(30) == {"job": 7}
    link.close()
