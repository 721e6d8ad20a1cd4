"""The agent's socket for commands: frames go to the master with the caller that the kernel names."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.starter.wire.frames import FrameReader, frame, pack
from tests.support.daemons.agent_host import ME, AgentHost, running
from tests.support.daemons.fake_master import FakeMaster
from tests.support.wait import wait_until


@pytest.fixture
def host(tmp_path: Path, master: FakeMaster) -> Iterator[AgentHost]:
    one = AgentHost(tmp_path, master.address)
    with running(one, lambda: master.heartbeats):
        yield one


class Client:
    """A command's side."""

    def __init__(self, host: AgentHost) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(str(host.run / "agent-h1.sock"))
        self.reader = FrameReader()
        self.found: list[dict[str, Any]] = []

    def next(self) -> dict[str, Any] | None:
        while not self.found:
            data = self.sock.recv(65536)
            if not data:
                return None
            self.found += self.reader.feed(data)
        return self.found.pop(0)


def test_frames_go_to_the_master_and_answers_come_back(master: FakeMaster, host: AgentHost) -> None:
    master.answers = [b'{"out":"a"}', b'{"exit":0}']
    client = Client(host)
    for number in range(2):
        client.sock.sendall(frame(b'{"ask":"query","n":%d}' % number))
        assert [client.next(), client.next()] == [{"out": "a"}, {"exit": 0}]
    assert [(c.user, c.uid, c.frame) for c in master.commands] == [
        (ME, os.getuid(), b'{"ask":"query","n":0}'),
        (ME, os.getuid(), b'{"ask":"query","n":1}'),
    ]
    assert master.metadata["lava-host"] == "h1"
    assert not [name for name in master.metadata if "key" in name]


def test_without_a_master_the_client_is_told_to_wait(master: FakeMaster, host: AgentHost) -> None:
    client = Client(host)
    master.stop()
    wait_until(lambda: _ask(client) == {"later": True}, 30, "later")


def _ask(client: Client) -> dict[str, Any] | None:
    client.sock.sendall(pack({"ask": "query"}))
    return client.next()


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\x01\x00\x00\x01"])
def test_frames_that_are_too_large_end_the_connection(master: FakeMaster, host: AgentHost, data: bytes) -> None:
    client = Client(host)
    client.sock.sendall(data)
    assert client.next() == {"refused": "Bad request: the frame is too large", "exit": 255}
    assert client.next() is None
    master.answers = [b'{"exit":0}']
    assert _ask(Client(host)) == {"exit": 0}


def test_an_answer_that_breaks_off_ends_the_connection(master: FakeMaster, host: AgentHost) -> None:
    master.answers, master.breaks_off = [b'{"out":"a"}'], True
    client = Client(host)
    assert _ask(client) == {"out": "a"}
    assert client.next() is None
    master.answers = []
    assert _ask(Client(host)) == {"later": True}
