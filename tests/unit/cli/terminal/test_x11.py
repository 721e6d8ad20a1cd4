"""The user's end of X11 forwarding: the display of the session, its cookie, and the connections to it."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.client.context import Fail
from cli.terminal import taskframes as wire
from cli.terminal.x11 import WINDOW, Clients, Screen, with_cookie
from tests.support.wait import wait_until

BARE = b"l\0" + struct.pack("<HHHHH", 11, 0, 0, 0, 0)


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """Where a display listens; its number is the port less 6000."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found


def xauth(folder: Path, lines: str) -> dict[str, str]:
    """Variables with which xauth knows these lines of the display that it is asked for."""
    program = folder / "xauth"
    program.write_text(f'#!/bin/sh\n[ "$1" = list ] && echo "$2" >> {folder}/asked\ncat <<END\n{lines}\nEND\n')
    program.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


class Session:
    def __init__(self, environ: dict[str, str]) -> None:
        self.frames = bytearray()
        self.said: list[str] = []
        self.clients = Clients(Screen(environ), self._queue, self.said.append)

    def _queue(self, frame: bytes) -> None:
        self.frames += frame

    def turn(self) -> bool:
        poll = select.poll()
        for fd, events in self.clients.watched().items():
            poll.register(fd, events)
        for fd, events in poll.poll(20):
            self.clients.ready(fd, events)
        return True

    def took(self) -> list[tuple[int, int, bytes]]:
        return wire.take(self.frames)


@pytest.mark.parametrize("name", ["", "here", ":", ":x", "host:-1", ":1234567", ":1a.0"])
def test_a_display_that_is_none(name: str) -> None:
    with pytest.raises(Fail) as told:
        Screen({"DISPLAY": name})
    assert told.value.text.startswith("-XF: DISPLAY")


@pytest.mark.parametrize(
    ("name", "asked"), [(":5", ":5"), ("localhost:10.0", "unix:10"), ("far:3.1", "far:3.1"), ("unix:0", "unix:0")]
)
def test_xauth_is_asked_as_ssh_asks_it(tmp_path: Path, name: str, asked: str) -> None:
    env = xauth(tmp_path, "h/unix:5  MIT-MAGIC-COOKIE-1  0badcafe")
    screen = Screen({"DISPLAY": name} | env)
    assert screen.cookie() == (b"MIT-MAGIC-COOKIE-1", bytes.fromhex("0badcafe"))
    assert screen.cookie()
    assert (tmp_path / "asked").read_text() == f"{asked}\n", "once"


@pytest.mark.parametrize("lines", ["", "h/unix:5 MIT-MAGIC-COOKIE-1", "h/unix:5 MIT-MAGIC-COOKIE-1 xyz", "\xff"])
def test_a_display_without_a_cookie(tmp_path: Path, lines: str) -> None:
    assert Screen({"DISPLAY": ":5"} | xauth(tmp_path, lines)).cookie() == (b"", b"")
    assert Screen({"DISPLAY": ":5", "PATH": str(tmp_path / "none")}).cookie() == (b"", b"")


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_cookie_is_put_into_the_setup(order: str) -> None:
    first = b"B\0" if order == ">" else b"l\0"
    head = first + struct.pack(f"{order}HHHHH", 11, 0, 0, 0, 7)
    found = with_cookie(head + b"request", b"NAME5", b"abc")
    assert found == first + struct.pack(f"{order}HHHHH", 11, 0, 5, 3, 7) + b"NAME5\0\0\0" + b"abc\0" + b"request"


def test_a_client_is_connected_and_passed_on(tmp_path: Path, server: socket.socket) -> None:
    name = f"127.0.0.1:{server.getsockname()[1] - 6000}.0"
    session = Session({"DISPLAY": name} | xauth(tmp_path, f"{name} MIT-MAGIC-COOKIE-1 00ff"))
    session.clients.took(wire.X_OPEN, 3, b"")
    with server.accept()[0] as display:
        session.clients.took(wire.X_DATA, 3, BARE)
        wanted = with_cookie(BARE, b"MIT-MAGIC-COOKIE-1", b"\x00\xff")
        assert display.recv(1000) == wanted
        assert session.took() == [(wire.X_CREDIT, 3, struct.pack("!I", len(wanted)))]
        session.clients.took(wire.X_DATA, 3, b"more")
        assert display.recv(1000) == b"more"
        session.took()
        display.send(b"reply")
        wait_until(lambda: session.turn() and bool(session.frames), 10, "the reply")
        assert session.took() == [(wire.X_DATA, 3, b"reply")]
        assert list(session.clients.watched().values()) == [select.POLLIN]
    wait_until(lambda: session.turn() and bool(session.frames), 10, "the end")
    assert session.took() == [(wire.X_CLOSE, 3, b"")]
    assert session.clients.watched() == {}


def test_a_display_sends_no_more_than_was_granted(tmp_path: Path, server: socket.socket) -> None:
    session = Session({"DISPLAY": f"127.0.0.1:{server.getsockname()[1] - 6000}", "PATH": str(tmp_path)})
    session.clients.took(wire.X_OPEN, 1, b"")
    came = 0
    with server.accept()[0] as display:
        display.setblocking(False)

        def send() -> int:
            nonlocal came
            try:
                display.send(bytes(1 << 16))
            except BlockingIOError:
                pass
            session.turn()
            came += sum(len(body) for _, _, body in session.took())
            return came

        wait_until(lambda: send() >= WINDOW, 20, lambda: str(came))
        assert came == WINDOW
        assert session.clients.watched() == {}
        session.clients.took(wire.X_CREDIT, 1, struct.pack("!I", 100))
        wait_until(lambda: send() == WINDOW + 100, 20, lambda: str(came))
        session.clients.took(wire.X_CLOSE, 1, b"")
        assert session.took() == [], "who closed it need not be told"


def test_a_display_that_cannot_be_reached_is_told_once(tmp_path: Path, server: socket.socket) -> None:
    name = f"127.0.0.1:{server.getsockname()[1] - 6000}"
    server.close()
    session = Session({"DISPLAY": name, "PATH": str(tmp_path)})
    for number in (1, 2):
        session.clients.took(wire.X_OPEN, number, b"")
    assert session.said == [f"display {name}: Connection refused"]
    assert session.took() == [(wire.X_CLOSE, 1, b""), (wire.X_CLOSE, 2, b"")]
    session.clients.took(wire.X_DATA, 1, BARE)
    assert session.took() == []
