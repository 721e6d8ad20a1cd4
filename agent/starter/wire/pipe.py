"""A stream socket that never blocks its owner: frames out in one send a turn, frames in as they come.

Rule: whoever does not read loses the connection at MAX_WAITING bytes; nobody else waits for them.
"""

from __future__ import annotations

import socket

from agent.starter.protocol.codec import Json
from agent.starter.system.watch import READ, WRITE, Watch
from agent.starter.wire import frames
from agent.starter.wire import taskwire as wire

MAX_WAITING = 256 << 20
CHUNK = 256 * 1024


class FramePipe:
    """Frames over a socket that ``watch`` watches; the owner reads in its call-back and calls ``flush`` once a turn."""

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
        """One object, at the next flush."""
        self._out += frames.pack(obj)

    def send_frame(self, frame: bytes) -> None:
        """A ready frame, at the next flush."""
        self._out += frame

    @property
    def waiting(self) -> int:
        """Bytes not yet taken by the kernel."""
        return len(self._out)

    def flush(self) -> bool:
        """Send what the socket takes now and the rest when it can; False when the peer is gone or does not read."""
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

    def read(self) -> list[Json] | None:
        """What came; None when the peer closed. FrameError when it sent nonsense."""
        try:
            data = self.sock.recv(CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            return None
        return self._reader.feed(data) if data else None

    def close(self) -> None:
        """Stop watching, and close."""
        if not self.closed:
            self.closed = True
            self._watch.remove(self.sock.fileno())
            self.sock.close()


def receive(sock: socket.socket, reader: wire.FrameReader) -> tuple[list[wire.Frame], bool]:
    """(the frames that have come, whether nothing more comes) of a socket that is ready; nonsense is its end."""
    try:
        data = sock.recv(CHUNK)
        return reader.feed(data), not data
    except BlockingIOError:
        return [], False
    except (OSError, frames.FrameError):
        return [], True
