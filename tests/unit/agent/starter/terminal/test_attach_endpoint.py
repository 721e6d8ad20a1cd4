"""The door of an interactive part and what flows through it: who is let in, what nonsense does, bytes under any grants."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.starter.system.watch import Watch
from agent.starter.terminal.attach_endpoint import AttachEndpoint
from agent.starter.terminal.flow import Flow
from agent.starter.wire import taskwire as wire
from tests.support.examples import examples

TOKEN = b"secret"


class Visit:
    """A door, and what happened at it."""

    def __init__(self) -> None:
        self.watch = Watch()
        self.heard: list[str] = []
        came, left = lambda line, said: self.heard.append("came"), lambda: self.heard.append("left")
        self.door = AttachEndpoint(TOKEN, self.watch, came, self._took, left)
        self.door.open()

    def _took(self, frame: wire.Frame) -> None:
        self.heard.append(f"took {frame.kind}")

    def knock(self) -> socket.socket:
        link = socket.socket(socket.AF_UNIX)
        link.connect("\0" + self.door.address().name)
        link.setblocking(False)
        return link

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline, self.heard
            self.watch.wait(0.05)

    def answer(self, link: socket.socket) -> bytes:
        """What is said until the door closes it."""
        found = bytearray()

        def over() -> bool:
            try:
                data = link.recv(4096)
            except BlockingIOError:
                return False
            except ConnectionError:
                return True
            found.extend(data)
            return not data

        self.until(over)
        return bytes(found)


@pytest.fixture
def visit() -> Iterator[Visit]:
    found = Visit()
    yield found
    found.door.close()


def hello(token: str = TOKEN.decode()) -> bytes:
    return wire.pack(wire.Frame(wire.HELLO, 0, 0, 0, json.dumps({"token": token}).encode()))


@pytest.mark.parametrize(
    "said",
    [
        hello("wrong"),
        hello(""),
        wire.pack(wire.Frame(wire.HELLO, 0, 0, 0, b"no json")),
        wire.pack(wire.Frame(wire.HELLO, 0, 0, 0, b"[]")),
        wire.pack(wire.Frame(wire.DATA, 0, 0, 0, b"\0keys")),
        wire.pack(wire.Frame(wire.SIGNAL, 0, 0, 0, b"\x09")),
    ],
)
def test_a_stranger_is_told_why_and_turned_away(visit: Visit, said: bytes) -> None:
    link = visit.knock()
    link.sendall(said)
    assert b"not with the token of this job" in visit.answer(link)
    assert visit.heard == []


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\0\0\0\0" * 8])
def test_nonsense_closes_the_line(visit: Visit, said: bytes) -> None:
    link = visit.knock()
    link.sendall(said)
    visit.answer(link)
    assert visit.heard == []


def test_one_at_a_time(visit: Visit) -> None:
    first, second = visit.knock(), visit.knock()
    first.sendall(hello() + wire.pack(wire.Frame(wire.SIZE, 0, 0, 0, b"\0\1\0\1")))
    visit.until(lambda: visit.heard == ["came", f"took {wire.SIZE}"])
    second.sendall(hello())
    assert b"the job has a terminal already" in visit.answer(second)
    first.close()
    visit.until(lambda: visit.heard[-1] == "left")


def test_many_strangers_hold_up_nobody(visit: Visit) -> None:
    idle = [visit.knock() for _ in range(12)]
    visit.until(lambda: _closed(idle[0]))
    link = visit.knock()
    link.sendall(hello())
    visit.until(lambda: visit.heard == ["came"])


def _closed(link: socket.socket) -> bool:
    try:
        return not link.recv(1)
    except BlockingIOError:
        return False


@settings(max_examples=examples(30))
@given(st.lists(st.integers(1, 40_000), min_size=1, max_size=8), st.integers(0, 300_000))
def test_bytes_come_whole_and_in_order_under_any_grants(grants: list[int], size: int) -> None:
    watch = Watch()
    came: list[bytes] = []
    most = [0]
    room = [0]

    def say(kind: int, body: bytes) -> None:
        if kind == wire.DATA:
            came.append(body[1:])
            room[0] -= len(body) - 1
            most[0] = min(most[0], room[0])

    flow = Flow(watch, say, lambda: None, credit=0)
    content = os.urandom(size)
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    flow.add_output(read_end, wire.OUT)
    sent, turn = 0, 0
    while not flow.is_drained:
        if write_end >= 0 and sent < size:
            try:
                sent += os.write(write_end, content[sent : sent + 65536])
            except BlockingIOError:
                pass
        if write_end >= 0 and sent == size:
            os.close(write_end)
            write_end = -1
        grant = grants[turn % len(grants)]
        turn += 1
        room[0] += grant
        flow.on_frame(wire.Frame(wire.CREDIT, 0, 0, 0, wire.credit(wire.OUT, grant)))
        watch.wait(0)
    assert b"".join(came) == content
    assert most[0] == 0
    flow.close()
