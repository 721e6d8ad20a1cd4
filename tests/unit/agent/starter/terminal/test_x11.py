"""A forwarded X11 display on the job's host: who is let in, what goes on, and how much of it."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.starter.system.watch import Watch
from agent.starter.terminal import x11
from agent.starter.terminal.x11 import Display
from agent.starter.wire import taskwire as wire
from tests.support.wait import wait_until

COOKIE = b"MIT-MAGIC-COOKIE-1"


class Screen:
    """A display, and what it sends to the user."""

    def __init__(self, folder: Path) -> None:
        self.watch = Watch()
        self.sent: list[tuple[int, int, bytes]] = []
        self.display = Display(self.watch, lambda kind, number, body: self.sent.append((kind, number, body)))
        self.env = self.display.open(str(folder))
        self.port = x11.PORT + int(self.env["DISPLAY"].partition(":")[2].partition(".")[0])
        self.cookie = Path(self.env["XAUTHORITY"]).read_bytes()[-x11.COOKIE_BYTES :]

    def connect(self) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self.port))
        sock.setblocking(False)
        return sock

    def turn(self) -> bool:
        self.watch.wait(0.02)
        return True

    def until(self, kind: int, count: int = 1) -> list[tuple[int, int, bytes]]:
        wait_until(lambda: self.turn() and len(self.of(kind)) >= count, 10, lambda: str(self.sent))
        return self.of(kind)

    def of(self, kind: int) -> list[tuple[int, int, bytes]]:
        return [one for one in self.sent if one[0] == kind]

    def is_closed(self, sock: socket.socket) -> bool:
        self.turn()
        try:
            return sock.recv(100) == b""
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    one = Screen(tmp_path)
    yield one
    one.display.close()


def setup(cookie: bytes, order: str = "<", name: bytes = COOKIE) -> bytes:
    first = b"B" if order == ">" else b"l"
    padded = [text + bytes(-len(text) % 4) for text in (name, cookie)]
    return first + b"\0" + struct.pack(f"{order}HHHHH", 11, 0, len(name), len(cookie), 0) + b"".join(padded)


def test_where_programs_find_it(screen: Screen) -> None:
    path = Path(screen.env["XAUTHORITY"])
    assert path.stat().st_mode & 0o777 == 0o600
    number = screen.port - x11.PORT
    entry = struct.pack("!HHH", 0xFFFF, 0, len(str(number))) + str(number).encode() + struct.pack("!H", len(COOKIE)) + COOKIE
    assert path.read_bytes() == entry + struct.pack("!H", 16) + screen.cookie
    screen.display.close()
    assert not path.exists()
    with pytest.raises(ConnectionRefusedError):
        screen.connect()


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_client_with_the_cookie_goes_on_without_it(screen: Screen, order: str) -> None:
    with screen.connect() as client:
        whole = setup(screen.cookie, order) + b"first request"
        for at in range(0, len(whole), 7):  # in pieces of any size
            client.send(whole[at : at + 7])
            screen.turn()
        screen.until(wire.X_OPEN)
        wait_until(lambda: screen.turn() and b"".join(one[2] for one in screen.of(wire.X_DATA)).endswith(b"request"), 10, "data")
    assert b"".join(one[2] for one in screen.of(wire.X_DATA)) == setup(b"", order, b"") + b"first request"
    assert screen.until(wire.X_CLOSE) == [(wire.X_CLOSE, 1, b"")]


@pytest.mark.parametrize(
    "first",
    [
        setup(bytes(16)),
        setup(b""),
        setup(b"", name=b""),
        setup(b"x" * 16, name=b"XDM-AUTHORIZATION-1"),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"l\0" + struct.pack("<HHHHH", 11, 0, 60000, 60000, 0),
    ],
)
def test_nobody_else_is_let_in(screen: Screen, first: bytes) -> None:
    with screen.connect() as client:
        client.send(first)
        wait_until(lambda: screen.is_closed(client), 10, "closed")
    assert screen.sent == [], "the user hears nothing of it"


def test_those_that_say_nothing_make_room_for_others(screen: Screen) -> None:
    silent = [screen.connect() for _ in range(x11.MAX_UNKNOWN + 3)]
    wait_until(lambda: sum(screen.is_closed(one) for one in silent) >= 3, 10, "the oldest closed")
    with screen.connect() as client:
        client.send(setup(screen.cookie))
        screen.until(wire.X_OPEN)
    for one in silent:
        one.close()


def test_both_ways_and_no_more_than_was_granted(screen: Screen) -> None:
    with screen.connect() as client:
        client.send(setup(screen.cookie))
        screen.until(wire.X_OPEN)

        def send() -> bool:
            try:
                client.send(bytes(1 << 16))
            except BlockingIOError:
                return screen.turn() and False
            return screen.turn()

        def came() -> int:
            return sum(len(body) for _, _, body in screen.of(wire.X_DATA))

        wait_until(lambda: (send() and False) or came() >= wire.X_WINDOW, 20, lambda: str(came()))
        for _ in range(5):
            screen.turn()
        assert came() == wire.X_WINDOW
        screen.display.on_frame(wire.Frame(wire.X_CREDIT, 0, 0, 1, wire.x_credit(1000)))
        wait_until(lambda: screen.turn() and came() == wire.X_WINDOW + 1000, 10, lambda: str(came()))
        screen.display.on_frame(wire.Frame(wire.X_DATA, 0, 0, 1, b"event"))
        assert screen.until(wire.X_CREDIT)[0] == (wire.X_CREDIT, 1, wire.x_credit(5))
        assert client.recv(100) == b"event"
        screen.display.on_frame(wire.Frame(wire.X_DATA, 0, 0, 1, b"last"))
        screen.display.on_frame(wire.Frame(wire.X_CLOSE, 0, 0, 1))
        wait_until(lambda: screen.is_closed(client) or client.fileno() < 0, 10, "closed")
    assert screen.of(wire.X_CLOSE) == [], "who closed it need not be told"


def test_what_is_said_of_unknown_clients_is_ignored(screen: Screen) -> None:
    for kind in (wire.X_DATA, wire.X_CREDIT, wire.X_CLOSE, 99):
        screen.display.on_frame(wire.Frame(kind, 0, 0, 7, b"x"))
    assert screen.sent == []


def test_each_job_has_a_display_of_its_own(screen: Screen, tmp_path: Path) -> None:
    other = Screen(tmp_path)
    assert other.port != screen.port
    assert other.cookie != screen.cookie
    with other.connect() as client:
        client.send(setup(screen.cookie))
        wait_until(lambda: other.is_closed(client), 10, "closed")
    other.display.close()
    assert os.listdir(tmp_path) == [os.path.basename(screen.env["XAUTHORITY"])]
