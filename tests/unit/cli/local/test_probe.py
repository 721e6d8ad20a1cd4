"""One query to one socket."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cli.client import frames
from cli.local.probe import ask_once
from tests.support.full_socket import Connecting, FullSocket


def test_nobody_serves_there(tmp_path: Path) -> None:
    assert ask_once(tmp_path / "s", {"ask": "query"}) == []


def test_a_place_in_the_queue_of_a_socket_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A master whom many ask serves."""
    connecting = Connecting()
    with ThreadPoolExecutor(1) as pool, FullSocket(tmp_path / "s") as full:
        monkeypatch.setattr(socket, "socket", connecting.kind)
        answers = pool.submit(ask_once, tmp_path / "s", {"ask": "query"})
        connecting.waits()
        with full.next() as other:
            other.recv(1 << 16)
            other.sendall(frames.pack({"out": "x"}) + frames.pack({"exit": 0}))
        assert answers.result(30) == [{"out": "x"}, {"exit": 0}]
