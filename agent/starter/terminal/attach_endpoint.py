"""Where the user of an interactive part attaches: a Unix socket for this host, and a TLS socket for other hosts.

Rule: a client must know the attempt's token and must run as the part's user (SO_PEERCRED) or hold the job's certificate; one
client at a time. No daemon is in between: bytes go from the shepherd to ``bsub``, even while agent and master are down.
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

if TYPE_CHECKING:  # ``ssl`` is loaded only where other hosts may attach
    from agent.starter.wire.link import Identity

MAX_UNAUTHENTICATED = 8


class AttachAddress(NamedTuple):
    """Where the user attaches; without ``ip``, only from this host."""

    ip: str = ""
    port: int = 0
    name: str = ""
    """The abstract name of the Unix socket."""


class Connection(Protocol):
    """A connection to ``bsub``: ``agent.starter.wire.link.Peer`` from another host, or ``LocalConnection``."""

    closed: bool

    @property
    def waiting(self) -> int:
        """Bytes not yet sent."""

    def send_bytes(self, frame: bytes) -> None:
        """Queue an encoded frame and send what the socket takes."""

    def close(self) -> None:
        """Close the connection without a call-back."""


OnFrame = Callable[[Connection, wire.Frame], None]


class LocalConnection:
    """A connection from this host, over the Unix socket."""

    def __init__(self, sock: socket.socket, watch: Watch, on_frame: OnFrame, on_close: Callable[[Connection], None]) -> None:
        sock.setblocking(False)
        self.closed = False
        self._sock = sock
        self._watch = watch
        self._on_frame = on_frame
        self._on_close = on_close
        self._reader = wire.FrameReader()
        self._out = bytearray()
        watch.add(sock.fileno(), self._ready)

    @property
    def waiting(self) -> int:
        """Bytes not yet sent."""
        return len(self._out)

    def send_bytes(self, frame: bytes) -> None:
        """Queue an encoded frame and send what the socket takes."""
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
                self._on_frame(self, frame)
        if over:
            self._end()

    def _end(self) -> None:
        if not self.closed:
            self.close()
            self._on_close(self)

    def close(self) -> None:
        """Close the connection without a call-back."""
        if not self.closed:
            self.closed = True
            self._watch.remove(self._sock.fileno())
            self._sock.close()


class AttachEndpoint:
    """Listens and authenticates clients.

    ``on_attach`` gets the connection of an accepted client and its greeting, ``on_frame`` its further frames; ``on_detach`` is
    called when it closes the connection.
    """

    def __init__(
        self,
        token: bytes,
        watch: Watch,
        on_attach: Callable[[Connection, Greeting], None],
        on_frame: Callable[[wire.Frame], None],
        on_detach: Callable[[], None],
    ) -> None:
        self._token = token
        self._watch = watch
        self._on_attach = on_attach
        self._on_frame = on_frame
        self._on_detach = on_detach
        self._listeners: list[socket.socket] = []
        self._unauthenticated: list[Connection] = []
        self._attached: Connection | None = None
        self._address = AttachAddress()

    def open(self, cert: str = "", key: str = "", bind: str = "") -> None:
        """Listen; OSError when that fails. With ``cert`` and ``key`` (PEM), for other hosts too, at the address ``bind``."""
        name = "lava-" + os.urandom(12).hex()
        local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listeners.append(local)
        local.bind("\0" + name)
        local.listen(16)
        local.setblocking(False)
        self._address = AttachAddress(name=name)
        self._watch.add(local.fileno(), lambda _: self._accept_local(local))
        if cert:
            from agent.starter.wire import link

            identity = link.Identity(cert, key)
            remote = link.listen(bind or "127.0.0.1")
            self._listeners.append(remote)
            ip, port = remote.getsockname()[:2]
            self._address = AttachAddress(ip, port, name)
            self._watch.add(remote.fileno(), lambda _: self._accept_remote(remote, identity))

    def address(self) -> AttachAddress:
        """Where the user can attach."""
        return self._address

    def _accept_local(self, listener: socket.socket) -> None:
        sock = self._accept(listener)
        if sock is None:
            return
        credentials = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        if credentials[1] not in (os.getuid(), 0):
            sock.close()
            return
        self._unauthenticated.append(LocalConnection(sock, self._watch, self._read_frame, self._on_connection_closed))

    def _accept_remote(self, listener: socket.socket, identity: Identity) -> None:
        from agent.starter.wire.link import Peer

        if (sock := self._accept(listener)) is not None:
            peer = Peer(
                sock, identity, True, self._watch, self._read_frame, _ignore, self._on_connection_closed, wire.FrameReader()
            )
            self._unauthenticated.append(peer)

    def _accept(self, listener: socket.socket) -> socket.socket | None:
        try:
            sock, _ = listener.accept()
        except OSError:
            return None
        self._unauthenticated = [connection for connection in self._unauthenticated if not connection.closed]
        while len(self._unauthenticated) >= MAX_UNAUTHENTICATED:
            self._unauthenticated.pop(0).close()
        return sock

    def _read_frame(self, connection: Connection, frame: wire.Frame) -> None:
        if connection is self._attached:
            self._on_frame(frame)
            return
        greeting = _greeting(frame)
        if greeting is None or not self._token or not same(greeting.token.encode(errors="replace"), self._token):
            self._reject(connection, b"not with the token of this job")
        elif self._attached is not None:
            self._reject(connection, b"the job has a terminal already")
        else:
            self._attached = connection
            self._unauthenticated.remove(connection)
            self._on_attach(connection, greeting)

    def _reject(self, connection: Connection, why: bytes) -> None:
        connection.send_bytes(wire.pack(wire.Frame(wire.FAIL, 0, 0, 0, why)))
        connection.close()

    def _on_connection_closed(self, connection: Connection, _: str = "") -> None:
        if connection is self._attached:
            self._on_detach()
        elif connection in self._unauthenticated:
            self._unauthenticated.remove(connection)

    def stop_listening(self) -> None:
        """Accept no further client."""
        for listener in self._listeners:
            self._watch.remove(listener.fileno())
            listener.close()
        self._listeners.clear()
        for connection in self._unauthenticated:
            connection.close()
        self._unauthenticated.clear()

    def close(self) -> None:
        """Close all sockets."""
        self.stop_listening()
        if self._attached is not None:
            self._attached.close()


def _greeting(frame: wire.Frame) -> Greeting | None:
    try:
        return read_greeting(frame.body) if frame.kind == wire.HELLO else None
    except ProtocolError:
        return None


def _ignore(*_: object) -> None:
    pass
