"""A connection between two shepherds of a job on several hosts: frames over mutual TLS with the job's own key.

Rule: both ends present and require exactly the job's certificate; a peer without it is disconnected before a frame is read.
``ssl`` is imported only here and only when a job spans hosts.
"""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from agent.starter.protocol.codec import Json
from agent.starter.system.watch import READ, WRITE, Watch
from agent.starter.wire import frames

HANDSHAKE_SECONDS = 30.0
_CHUNK = 64 * 1024

F = TypeVar("F")
OnFrame = Callable[["Peer[F]", F], None]
OnChange = Callable[["Peer[F]", str], None]


class Reader(Protocol[F]):
    """Splits the received bytes into frames."""

    def feed(self, data: bytes) -> list[F]:
        """The frames completed by ``data``; ValueError when it is malformed."""


class Identity:
    """The certificate and key of a job (PEM), as TLS contexts for both ends."""

    def __init__(self, cert: str, key: str) -> None:
        self._der = ssl.PEM_cert_to_DER_cert(cert[cert.index("-----BEGIN CERTIFICATE") :])
        self.server = self._context(ssl.PROTOCOL_TLS_SERVER, cert, key)
        self.client = self._context(ssl.PROTOCOL_TLS_CLIENT, cert, key)

    def is_ours(self, der: bytes | None) -> bool:
        """Whether the certificate that the peer presented (DER) is the job's."""
        return der == self._der

    def _context(self, protocol: int, cert: str, key: str) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VerifyFlags(0x80000)  # X509_V_FLAG_PARTIAL_CHAIN: trust this certificate itself
        context.load_verify_locations(cadata=self._der)
        cert_fd, key_fd = memory_file(cert), memory_file(key)
        try:
            context.load_cert_chain(f"/proc/self/fd/{cert_fd}", f"/proc/self/fd/{key_fd}")
        finally:
            os.close(cert_fd)
            os.close(key_fd)
        return context


def memory_file(text: str) -> int:
    """A descriptor of a file in memory with this text, for what reads files only."""
    fd = os.memfd_create("lava", os.MFD_CLOEXEC)
    os.write(fd, text.encode())
    return fd


class Peer(Generic[F]):
    """One connection to another shepherd of the job.

    ``on_open`` is called after the TLS handshake, ``on_frame`` for each frame, ``on_close`` with the reason when the connection
    fails or the peer closes it.
    """

    def __init__(
        self,
        sock: socket.socket,
        identity: Identity,
        server: bool,
        watch: Watch,
        on_frame: OnFrame[F],
        on_open: OnChange[F],
        on_close: OnChange[F],
        reader: Reader[F],
    ) -> None:
        self.name = ""
        self.host_index: int | None = None
        """The index of the peer's host in the job; None until its HELLO has come."""
        self.open = False
        self.closed = False
        self.since = time.monotonic()
        self._identity = identity
        self._server = server
        self._watch = watch
        self._on_frame = on_frame
        self._on_open = on_open
        self._on_close = on_close
        self._reader = reader
        self._out = bytearray()
        self._plain: socket.socket | None = sock
        self._tls: ssl.SSLSocket | None = None
        self._fd = sock.fileno()
        self._want = READ | WRITE
        self._paused = False
        sock.setblocking(False)
        watch.add(self._fd, self._ready, self._want)

    @property
    def waiting(self) -> int:
        """Bytes not yet sent."""
        return len(self._out)

    def send(self, obj: Json) -> None:
        """Queue one JSON frame and send what the socket takes."""
        self.send_bytes(frames.pack(obj))

    def send_bytes(self, frame: bytes) -> None:
        """Queue one encoded frame and send what the socket takes."""
        if not self.closed:
            self._out += frame
            if self.open:
                self._write()

    def pause(self, paused: bool) -> None:
        """Stop or resume reading; a connection that the peer closes meanwhile is read to its end."""
        if paused is self._paused or self.closed:
            return
        self._paused = paused
        if self.open:
            self._listen_for(WRITE if self._out else 0)
            if not paused:
                self._read()

    def end(self, why: str) -> None:
        """Close the connection and call ``on_close`` with ``why``."""
        self._end(why)

    def close(self) -> None:
        """Close the connection without calling ``on_close``."""
        if self.closed:
            return
        self.closed = True
        self._watch.remove(self._fd)
        for sock in (self._tls, self._plain):
            if sock is not None:
                sock.close()

    def _end(self, why: str) -> None:
        if not self.closed:
            self.close()
            self._on_close(self, why)

    def _ready(self, events: int) -> None:
        try:
            if self._tls is None and not self._wrap():
                return
            if not self.open:
                self._shake_hands()
            if self.open:
                if events & ~(READ | WRITE):
                    self._paused = False
                if events & WRITE:
                    self._write()
                if not self.closed and events & ~WRITE:
                    self._read()
        except (OSError, ValueError) as e:
            self._end(getattr(e, "reason", None) or getattr(e, "strerror", None) or str(e))

    def _wrap(self) -> bool:
        assert self._plain is not None
        if error := self._plain.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._end(os.strerror(error))
            return False
        self._plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000)
        self._plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
        self._plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
        context = self._identity.server if self._server else self._identity.client
        try:
            self._tls = context.wrap_socket(self._plain, server_side=self._server, do_handshake_on_connect=False)
        except OSError as e:
            self._end(e.strerror or str(e))
            return False
        self._plain = None
        return True

    def _shake_hands(self) -> None:
        assert self._tls is not None
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._listen_for(READ)
            return
        except ssl.SSLWantWriteError:
            self._listen_for(READ | WRITE)
            return
        if not self._identity.is_ours(self._tls.getpeercert(binary_form=True)):
            self._end("not the certificate of this job")
            return
        self.open = True
        self._listen_for(READ)
        self._on_open(self, "")
        if not self.closed:
            self._write()
            self._read()

    def _listen_for(self, events: int) -> None:
        events = events & ~READ if self._paused else events | READ
        if events != self._want and not self.closed:
            self._want = events
            self._watch.change(self._fd, events)

    def _write(self) -> None:
        try:
            while self._out and self._tls is not None and not self.closed:
                sent = self._tls.send(bytes(self._out[:_CHUNK]))
                del self._out[:sent]
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError, BlockingIOError):
            pass
        except OSError as e:
            self._end(e.strerror or str(e))
            return
        self._listen_for(READ | WRITE if self._out else READ)

    def _read(self) -> None:
        while self._tls is not None and not self.closed and not self._paused:
            try:
                data = self._tls.recv(_CHUNK)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
                return
            if not data:
                self._end("closed by the other side")
                return
            for frame in self._reader.feed(data):
                self._on_frame(self, frame)


def listen(address: str, port: int = 0) -> socket.socket:
    """A listening socket on a port of ``address``, 0: a free one; OSError when this host does not have it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # its earlier connections are not all forgotten
        sock.bind((address, port))
        sock.listen(1024)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def connect(address: str, port: int) -> socket.socket:
    """A non-blocking socket that is connecting; its Peer notices success or failure. OSError when that fails at once."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        sock.connect((address, port))
    except BlockingIOError:
        pass
    except OSError:
        sock.close()
        raise
    return sock
