"""The connection to a local socket."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lava_client.local import LocalLink
from tests.support.full_socket import Connecting, FullSocket

ANSWER = b'{"ok":{"job":7}}'


def test_a_place_in_the_queue_of_a_socket_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others in front, however many, are no master that is away: not for one that waits for none, either."""
    connecting = Connecting()
    link = LocalLink({"LAVA_SOCKET": str(tmp_path / "s"), "LSF_ENVDIR": str(tmp_path)}, timeout=0.0)
    with ThreadPoolExecutor(1) as pool, FullSocket(tmp_path / "s") as full:
        monkeypatch.setattr(socket, "socket", connecting.kind)
        answer = pool.submit(link.ask, {"ask": "kill"})
        connecting.waits()
        with full.next() as other:
            other.recv(1 << 16)
            other.sendall(len(ANSWER).to_bytes(4, "big") + ANSWER)
        assert answer.result(30) == {"job": 7}
    link.close()
