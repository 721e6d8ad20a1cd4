"""The user's end of X11 forwarding (``bsub -XF``): each client of the job's display is connected to the display of this session.

Rule: the cookie of the user's display is put in here, and never leaves this host. ``agent/starter/terminal/x11.py`` is
the other end.
"""

from __future__ import annotations

import select
from socket import AF_UNIX, IPPROTO_TCP, TCP_NODELAY, create_connection, socket
from struct import pack

from cli.client.context import Fail
from cli.terminal import taskframes as wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PORT = 6000
WINDOW = 512 * 1024
CHUNK = 32 * 1024
CONNECT_SECONDS = 20.0
SOCKETS = "/tmp/.X11-unix/X"


class Screen:
    """The display that DISPLAY names: how it is reached, and its cookie."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Raises Fail where there is none."""
        self.name = environ.get("DISPLAY", "")
        if not self.name:
            raise Fail("-XF: DISPLAY is not set: there is no display that could be forwarded to")
        self._environ = environ
        self._host, colon, rest = self.name.rpartition(":")
        number = rest.partition(".")[0]
        if not colon or not number.isascii() or not number.isdigit() or len(number) > 5:
            raise Fail(f"-XF: DISPLAY={self.name} does not name a display")
        self._number = int(number)
        self._cookie: tuple[bytes, bytes] | None = None

    def connect(self) -> socket:
        """A connection. Raises OSError."""
        if self._host in ("", "unix") or self._host.endswith("/unix"):
            try:
                return _to(f"{SOCKETS}{self._number}")
            except OSError:
                return _to(f"\0{SOCKETS}{self._number}")
        link = create_connection((self._host.strip("[]"), PORT + self._number), CONNECT_SECONDS)
        link.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        link.setblocking(False)
        return link

    def cookie(self) -> tuple[bytes, bytes]:
        """(The name of its authorization, the data), as xauth knows them; empty where it knows none."""
        if self._cookie is None:
            self._cookie = _cookie(f"unix:{self._number}" if self._host == "localhost" else self.name, self._environ)
        return self._cookie


def _to(path: str) -> socket:
    link = socket(AF_UNIX)
    try:
        link.connect(path)
        link.setblocking(False)
    except OSError:
        link.close()
        raise
    return link


def _cookie(name: str, environ: Mapping[str, str]) -> tuple[bytes, bytes]:
    import subprocess

    try:
        asked = subprocess.run(
            ["xauth", "list", name], env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, timeout=CONNECT_SECONDS
        )
        words = asked.stdout.decode("ascii").splitlines()[0].split()
        return words[1].encode(), bytes.fromhex(words[2])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return b"", b""


def with_cookie(head: bytes, name: bytes, data: bytes) -> bytes:
    """The first bytes of a client, in whose setup there is no authorization, with one (X protocol, "Connection Setup")."""
    lengths = pack(">HH" if head[:1] == b"B" else "<HH", len(name), len(data))
    return head[:6] + lengths + head[10:12] + _padded(name) + _padded(data) + head[12:]


def _padded(text: bytes) -> bytes:
    return text + bytes(-len(text) % 4)


class _Client:
    def __init__(self, link: socket) -> None:
        self.link = link
        self.out = bytearray()
        self.room = WINDOW
        self.begun = self.over = False


class Clients:
    """Those of the job's display. ``queue`` queues a frame to the job; ``complain`` prints a line."""

    def __init__(self, screen: Screen, queue: Callable[[bytes], None], complain: Callable[[str], None]) -> None:
        self._screen = screen
        self._queue = queue
        self._complain = complain
        self._told = False
        self._clients: dict[int, _Client] = {}
        self._number_of: dict[int, int] = {}

    def watched(self) -> dict[int, int]:
        """What to poll: descriptor to events."""
        found = {}
        for client in self._clients.values():
            reads = select.POLLIN if client.room > 0 and not client.over else 0
            if events := reads | (select.POLLOUT if client.out else 0):
                found[client.link.fileno()] = events
        return found

    def ready(self, fd: int, events: int) -> None:
        """One of ``watched`` has events; another file is no error."""
        number = self._number_of.get(fd)
        if number is None:
            return
        client = self._clients[number]
        if events & select.POLLOUT:
            self._write(number, client)
        if events & ~select.POLLOUT and number in self._clients:
            self._read(number, client)

    def took(self, kind: int, number: int, body: bytes) -> None:
        """A frame about a client."""
        client = self._clients.get(number)
        if kind == wire.X_OPEN:
            self._open(number)
        elif client is None:
            return
        elif kind == wire.X_DATA:
            if not client.begun:
                body = with_cookie(body, *self._screen.cookie())
                client.begun = True
            client.out += body
            self._write(number, client)
        elif kind == wire.X_CREDIT:
            client.room += wire.read_x_credit(body)
        elif kind == wire.X_CLOSE:
            client.over = True
            self._write(number, client)

    def _open(self, number: int) -> None:
        try:
            link = self._screen.connect()
        except OSError as error:
            if not self._told:
                self._told = True
                self._complain(f"display {self._screen.name}: {error.strerror or error}")
            self._queue(wire.pack(wire.X_CLOSE, number))
            return
        self._clients[number] = _Client(link)
        self._number_of[link.fileno()] = number

    def _write(self, number: int, client: _Client) -> None:
        try:
            sent = client.link.send(client.out) if client.out else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            self._drop(number, client)
            return
        del client.out[:sent]
        if client.over and not client.out:
            self._drop(number, client)
        elif sent and not client.over:
            self._queue(wire.x_credit(number, sent))

    def _read(self, number: int, client: _Client) -> None:
        try:
            data = client.link.recv(min(client.room, CHUNK)) if client.room > 0 else b""
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(number, client)
            return
        client.room -= len(data)
        self._queue(wire.pack(wire.X_DATA, number, data))

    def _drop(self, number: int, client: _Client) -> None:
        del self._clients[number]
        del self._number_of[client.link.fileno()]
        client.link.close()
        if not client.over:
            self._queue(wire.pack(wire.X_CLOSE, number))

    def close(self) -> None:
        """The job has ended."""
        for client in self._clients.values():
            client.link.close()
        self._clients.clear()
        self._number_of.clear()
