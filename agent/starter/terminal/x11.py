"""X11 forwarding of an interactive part (``bsub -XF``): a display on this host whose clients are shown on the user's.

Rule: a client must send the cookie that was made for this part alone; what it sends goes on without it, and ``bsub`` puts in the
one of the user's display, which never comes here. The first bytes of a connection are as in the X protocol's "Connection Setup".
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable

from agent.starter.system.watch import READ, WRITE, Watch
from agent.starter.wire import taskwire as wire
from agent.starter.wire.frames import same

FIRST, LAST = 10, 999
"""Numbers of displays; below are those of real screens."""
PORT = 6000
MAX_CLIENTS = 128
MAX_UNKNOWN = 8
"""Clients that have not shown the cookie yet; the oldest makes room for another."""
COOKIE = b"MIT-MAGIC-COOKIE-1"
COOKIE_BYTES = 16
LONGEST_SETUP = 1024
_ANY_FAMILY = 0xFFFF

Send = Callable[[int, int, bytes], None]
"""Sends a frame to the user: kind, number of the client, body."""


class Display:
    """A display at 127.0.0.1."""

    def __init__(self, watch: Watch, send: Send) -> None:
        self._watch = watch
        self._send = send
        self._listener: socket.socket | None = None
        self._cookie = os.urandom(COOKIE_BYTES)
        self._path = ""
        self._last = 0
        self._clients: dict[int, _Client] = {}

    def open(self, folder: str = "/tmp") -> dict[str, str]:
        """Listen: the variables by which processes find the display. OSError when that fails."""
        self._listener, number = _listen()
        self._path = os.path.join(folder, f"lava-x11-{os.urandom(8).hex()}")
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, authority(number, self._cookie))
        finally:
            os.close(fd)
        self._watch.add(self._listener.fileno(), self._accept)
        return {"DISPLAY": f"127.0.0.1:{number}.0", "XAUTHORITY": self._path}

    def _accept(self, _: int) -> None:
        assert self._listener is not None
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        unknown = [client for client in self._clients.values() if not client.known]
        if len(unknown) >= MAX_UNKNOWN:
            self._drop(unknown[0])
        if len(self._clients) >= MAX_CLIENTS:
            sock.close()
            return
        self._last += 1
        client = self._clients[self._last] = _Client(self._last, sock)
        self._watch.add(sock.fileno(), lambda events: self._ready(client, events))

    def _ready(self, client: _Client, events: int) -> None:
        if events & WRITE:
            self._write(client)
        if events & ~WRITE and client.sock.fileno() >= 0:
            self._read(client)

    def _read(self, client: _Client) -> None:
        try:
            data = client.sock.recv(min(wire.CHUNK, client.room if client.known else LONGEST_SETUP))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(client)
        elif client.known:
            self._pass_on(client, data)
        else:
            client.head += data
            self._look_at(client)

    def _look_at(self, client: _Client) -> None:
        """Its first bytes: it goes on with the cookie, or not at all."""
        size = setup_size(client.head)
        if size > LONGEST_SETUP or (size and len(client.head) >= size and not same(cookie_of(client.head), self._cookie)):
            self._drop(client)
        elif size and len(client.head) >= size:
            client.known = True
            self._send(wire.X_OPEN, client.number, b"")
            self._pass_on(client, without_cookie(client.head))

    def _pass_on(self, client: _Client, data: bytes) -> None:
        client.room -= len(data)
        self._send(wire.X_DATA, client.number, data)
        self._wait(client)

    def on_frame(self, frame: wire.Frame) -> None:
        """A frame from the user about a client."""
        client = self._clients.get(frame.number)
        if client is None or not client.known:
            return
        if frame.kind == wire.X_DATA:
            client.out += frame.body
            self._write(client)
        elif frame.kind == wire.X_CREDIT:
            client.room += wire.read_x_credit(frame.body)
            self._wait(client)
        elif frame.kind == wire.X_CLOSE:
            client.known, client.over = False, True
            self._write(client)

    def _write(self, client: _Client) -> None:
        try:
            sent = client.sock.send(client.out) if client.out else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            self._drop(client)
            return
        del client.out[:sent]
        if client.over and not client.out:
            self._drop(client)
            return
        if sent and not client.over:
            self._send(wire.X_CREDIT, client.number, wire.x_credit(sent))
        self._wait(client)

    def _wait(self, client: _Client) -> None:
        reads = not client.over and (client.room > 0 or not client.known)
        self._watch.change(client.sock.fileno(), (READ if reads else 0) | (WRITE if client.out else 0))

    def _drop(self, client: _Client) -> None:
        if self._clients.pop(client.number, None) is None:
            return
        self._watch.remove(client.sock.fileno())
        client.sock.close()
        if client.known:
            self._send(wire.X_CLOSE, client.number, b"")

    def close(self) -> None:
        """The display is gone, and with it its clients' connections."""
        if self._listener is not None:
            self._watch.remove(self._listener.fileno())
            self._listener.close()
            self._listener = None
        for client in list(self._clients.values()):
            client.known = False  # there is nobody to tell
            self._drop(client)
        if self._path:
            try:
                os.unlink(self._path)
            except OSError:
                pass
            self._path = ""


class _Client:
    """A program that is connected to the display."""

    def __init__(self, number: int, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = number
        self.sock = sock
        self.known = False
        """It has shown the cookie."""
        self.over = False
        """The user's display has closed its connection."""
        self.head = bytearray()
        self.out = bytearray()
        self.room = wire.X_WINDOW
        """Bytes that may still be sent to the user."""


def _listen() -> tuple[socket.socket, int]:
    """(A listener on the first free display, its number). OSError when there is none."""
    for number in range(FIRST, LAST + 1):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # its last clients may still be in TIME_WAIT
        try:
            sock.bind(("127.0.0.1", PORT + number))
            sock.listen(16)
        except OSError:
            sock.close()
            continue
        sock.setblocking(False)
        return sock, number
    raise OSError(0, f"no display from {FIRST} to {LAST} is free")


def authority(number: int, cookie: bytes) -> bytes:
    """A file as of xauth (Xau(3)) with one entry: the cookie of a display, whatever host name it is asked by."""
    fields = (b"", str(number).encode(), COOKIE, cookie)
    return struct.pack("!H", _ANY_FAMILY) + b"".join(struct.pack("!H", len(field)) + field for field in fields)


def _lengths(head: bytes | bytearray) -> tuple[int, int]:
    """Of the name and of the data of the authorization that a client sends first."""
    return struct.unpack_from(">HH" if head[:1] == b"B" else "<HH", head, 6)


def _padded(size: int) -> int:
    return (size + 3) & ~3


def setup_size(head: bytes | bytearray) -> int:
    """Bytes of the setup that begins so; 0: not known yet. What is no setup is longer than any is."""
    if len(head) < 12:
        return 0
    if head[:1] not in (b"B", b"l"):
        return LONGEST_SETUP + 1
    name, data = _lengths(head)
    return 12 + _padded(name) + _padded(data)


def cookie_of(head: bytes | bytearray) -> bytes:
    """The cookie in a whole setup; b"" if it has none."""
    name, data = _lengths(head)
    at = 12 + _padded(name)
    return bytes(head[at : at + data]) if bytes(head[12 : 12 + name]) == COOKIE else b""


def without_cookie(head: bytes | bytearray) -> bytes:
    """What a client has sent, with a setup that has no authorization."""
    return bytes(head[:6]) + bytes(4) + bytes(head[10:12]) + bytes(head[setup_size(head) :])
