"""Where the user of an interactive part attaches: a socket of this machine, and one for other hosts under the job's own key.

Rule: whoever attaches knows the attempt's token, and is the part's user (SO_PEERCRED) or holds the job's certificate; one at a
time. No daemon is on the way: bytes go from the shepherd to ``bsub``, whatever becomes of agent and master meanwhile.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from agent.starter.protocol.codec import ProtocolError
from agent.starter.protocol.commands import Greeting, read_greeting
from agent.starter.system.watch import READ, WRITE, Watch
from agent.starter.wire import taskwire as wire
from agent.starter.wire.frames import same
from agent.starter.wire.pipe import receive

if TYPE_CHECKING:  # ``ssl`` is loaded only where other hosts have a way in
    from agent.starter.wire.link import Identity

MAX_UNAUTHENTICATED = 8


class AttachAddress(NamedTuple):
    """Where the user attaches."""

    ip: str = ""
    """"": other hosts have no way in."""
    port: int = 0
    name: str = ""
    """Of the socket of this machine."""


class Connection(Protocol):
    """A connection: ``agent.starter.wire.link.Peer``, or one of this machine."""

    closed: bool

    @property
    def waiting(self) -> int:
        """Bytes not yet sent."""

    def send_bytes(self, frame: bytes) -> None:
        """Send, now or when there is room."""

    def close(self) -> None:
        """Close without a word."""


Took = Callable[[Connection, wire.Frame], None]


class LocalConnection:
    """A connection of this machine."""

    def __init__(self, sock: socket.socket, watch: Watch, took: Took, lost: Callable[[Connection], None]) -> None:
        sock.setblocking(False)
        self.closed = False
        self._sock = sock
        self._watch = watch
        self._took = took
        self._lost = lost
        self._reader = wire.FrameReader()
        self._out = bytearray()
        watch.add(sock.fileno(), self._ready)

    @property
    def waiting(self) -> int:
        """Bytes not yet sent."""
        return len(self._out)

    def send_bytes(self, frame: bytes) -> None:
        """Send, now or when there is room."""
        if self.closed:
            return
        waiting = bool(self._out)
        self._out += frame
        if not waiting:
            self._flush()

    def _flush(self) -> None:
        try:
            sent = self._sock.send(self._out)
            del self._out[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._end()
            return
        self._watch.change(self._sock.fileno(), READ | WRITE if self._out else READ)

    def _ready(self, events: int) -> None:
        if events & WRITE:
            self._flush()
        if self.closed or not events & ~WRITE:
            return
        found, over = receive(self._sock, self._reader)
        for frame in found:
            if not self.closed:
                self._took(self, frame)
        if over:
            self._end()

    def _end(self) -> None:
        if not self.closed:
            self.close()
            self._lost(self)

    def close(self) -> None:
        """Close without a word."""
        if not self.closed:
            self.closed = True
            self._watch.remove(self._sock.fileno())
            self._sock.close()


class AttachEndpoint:
    """``came`` gets a line and what it said first, ``took`` its frames, ``left`` its end."""

    def __init__(
        self,
        token: bytes,
        watch: Watch,
        came: Callable[[Connection, Greeting], None],
        took: Callable[[wire.Frame], None],
        left: Callable[[], None],
    ) -> None:
        self._token = token
        self._watch = watch
        self._came = came
        self._took = took
        self._left = left
        self._listeners: list[socket.socket] = []
        self._unauthenticated: list[Connection] = []
        self._inside: Connection | None = None
        self._address = AttachAddress()

    def open(self, cert: str = "", key: str = "", bind: str = "") -> None:
        """Listen; OSError when that cannot be. ``cert``: for other hosts too, at the address ``bind``."""
        name = "lava-" + os.urandom(12).hex()
        near = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listeners.append(near)
        near.bind("\0" + name)
        near.listen(16)
        near.setblocking(False)
        self._address = AttachAddress(name=name)
        self._watch.add(near.fileno(), lambda _: self._accept_near(near))
        if cert:
            from agent.starter.wire import link

            identity = link.Identity(cert, key)
            far = link.listen(bind or "127.0.0.1")
            self._listeners.append(far)
            ip, port = far.getsockname()[:2]
            self._address = AttachAddress(ip, port, name)
            self._watch.add(far.fileno(), lambda _: self._accept_far(far, identity))

    def address(self) -> AttachAddress:
        """Where it listens."""
        return self._address

    def _accept_near(self, listener: socket.socket) -> None:
        sock = self._accept(listener)
        if sock is None:
            return
        who = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        if who[1] not in (os.getuid(), 0):
            sock.close()
            return
        self._unauthenticated.append(LocalConnection(sock, self._watch, self._heard, self._gone))

    def _accept_far(self, listener: socket.socket, identity: Identity) -> None:
        from agent.starter.wire.link import Peer

        if (sock := self._accept(listener)) is not None:
            peer = Peer(sock, identity, True, self._watch, self._heard, _ignore, self._gone, wire.FrameReader())
            self._unauthenticated.append(peer)

    def _accept(self, listener: socket.socket) -> socket.socket | None:
        try:
            sock, _ = listener.accept()
        except OSError:
            return None
        self._unauthenticated = [line for line in self._unauthenticated if not line.closed]
        while len(self._unauthenticated) >= MAX_UNAUTHENTICATED:
            self._unauthenticated.pop(0).close()
        return sock

    def _heard(self, line: Connection, frame: wire.Frame) -> None:
        if line is self._inside:
            self._took(frame)
            return
        said = _greeting(frame)
        if said is None or not self._token or not same(said.token.encode(errors="replace"), self._token):
            self._turn_away(line, b"not with the token of this job")
        elif self._inside is not None:
            self._turn_away(line, b"the job has a terminal already")
        else:
            self._inside = line
            self._unauthenticated.remove(line)
            self._came(line, said)

    def _turn_away(self, line: Connection, why: bytes) -> None:
        line.send_bytes(wire.pack(wire.Frame(wire.FAIL, 0, 0, 0, why)))
        line.close()

    def _gone(self, line: Connection, _: str = "") -> None:
        if line is self._inside:
            self._left()
        elif line in self._unauthenticated:
            self._unauthenticated.remove(line)

    def shut(self) -> None:
        """Nobody else comes in."""
        for listener in self._listeners:
            self._watch.remove(listener.fileno())
            listener.close()
        self._listeners.clear()
        for line in self._unauthenticated:
            line.close()
        self._unauthenticated.clear()

    def close(self) -> None:
        """Everything."""
        self.shut()
        if self._inside is not None:
            self._inside.close()


def _greeting(frame: wire.Frame) -> Greeting | None:
    try:
        return read_greeting(frame.body) if frame.kind == wire.HELLO else None
    except ProtocolError:
        return None


def _ignore(*_: object) -> None:
    pass
