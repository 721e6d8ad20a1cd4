"""The connection to a local socket."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lava_client import local
from lava_client.link import Closed
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


def test_who_closes_a_link_while_it_connects_does_not_wait_for_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is there only when the other thread has looked for one to shut down."""
    link = LocalLink({"LAVA_SOCKET": str(tmp_path / "s"), "LSF_ENVDIR": str(tmp_path)})
    connected = local._connected
    closing = threading.Thread(target=link.close)

    def closed_meanwhile(path: str) -> socket.socket | None:
        found = connected(path)
        closing.start()
        assert link._closed.wait(30)
        return found

    monkeypatch.setattr(local, "_connected", closed_meanwhile)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(link.ask, {"ask": "changes"})
            with pytest.raises(Closed):
                asked.result(30)
    closing.join(30)
    assert not closing.is_alive()
