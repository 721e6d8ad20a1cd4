"""A non-blocking stream socket for frames: queued frames go out in one send per turn of the loop.

Rule: a peer that does not read is disconnected when MAX_WAITING bytes are queued for it.
"""

from __future__ import annotations

import socket

from agent.starter.protocol.codec import Json
from agent.starter.system.watch import READ, WRITE, Watch
from agent.starter.wire import frames
from agent.starter.wire import taskwire as wire

MAX_WAITING = 256 << 20
CHUNK = 64 * 1024
"""Bytes read at once. More would be memory of its own from the kernel for each read, mapped and unmapped again."""


class FramePipe:
    """Frames over a socket. The owner adds it to ``watch``, calls ``read`` when it is ready, and ``flush`` once per turn."""

    __slots__ = ("_out", "_reader", "_watch", "_writing", "closed", "sock")

    def __init__(self, sock: socket.socket, watch: Watch, limit: int = frames.MAX_FRAME) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.closed = False
        self._watch = watch
        self._reader = frames.FrameReader(limit)
        self._out = bytearray()
        self._writing = False

    def send(self, obj: object) -> None:
        """Queue an object as a JSON frame for the next flush."""
        self._out += frames.pack(obj)

    def send_frame(self, frame: bytes) -> None:
        """Queue an encoded frame for the next flush."""
        self._out += frame

    @property
    def waiting(self) -> int:
        """Bytes not yet accepted by the kernel."""
        return len(self._out)

    def flush(self) -> bool:
        """Send what the socket accepts; the rest goes out at later flushes. False when the peer is gone or does not read."""
        if self.closed or not self._out:
            return not self.closed
        try:
            sent = self.sock.send(self._out)
        except BlockingIOError:
            sent = 0
        except OSError:
            return False
        del self._out[:sent]
        if bool(self._out) is not self._writing:
            self._writing = bool(self._out)
            self._watch.change(self.sock.fileno(), READ | WRITE if self._writing else READ)
        return len(self._out) <= MAX_WAITING

    @property
    def is_between_frames(self) -> bool:
        """Whether no frame is in part received or to be sent."""
        return not self._out and self._reader.is_between_frames

    def feed(self, data: bytes) -> list[Json]:
        """The frames in what was received by other code. FrameError as ``read``."""
        return self._reader.feed(data)

    def read(self) -> list[Json] | None:
        """The frames received; None when the peer has closed the connection. FrameError when the data is malformed."""
        found = self.read_bodies()
        return None if found is None else [frames.parsed(body) for body in found]

    def read_bodies(self) -> list[bytes] | None:
        """The same as they are written."""
        try:
            data = self.sock.recv(CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            return None
        return self._reader.bodies(data) if data else None

    def close(self) -> None:
        """Remove the socket from the watch and close it."""
        if not self.closed:
            self.closed = True
            self._watch.remove(self.sock.fileno())
            self.sock.close()


def receive(sock: socket.socket, reader: wire.FrameReader) -> tuple[list[wire.Frame], bool]:
    """(frames received, whether the connection is over) of a socket that is ready; malformed data ends the connection."""
    try:
        data = sock.recv(CHUNK)
        return reader.feed(data), not data
    except BlockingIOError:
        return [], False
    except (OSError, frames.FrameError):
        return [], True
