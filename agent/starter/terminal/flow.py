"""The byte streams between a process on this host and a user elsewhere: standard input in, outputs out.

Rule: flow control by credit: each side sends only as many bytes as the other has granted. Buffers are bounded, and a reader
that stops reading stops the writer.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from agent.starter.system.stdio import write_all
from agent.starter.system.watch import WRITE, Watch
from agent.starter.wire import taskwire as wire

SendFrame = Callable[[int, bytes], None]
"""Sends a frame (kind, body) to the user."""
UNLIMITED = 1 << 62
HIGH, LOW = 256 * 1024, 64 * 1024
"""Bytes buffered of a stream at which the writer must pause, and at which it may continue."""


class Flow:
    """The streams of one process.

    ``send`` sends a frame to the user; ``changed`` is called when an output has ended or credit was granted; ``credit``: bytes of
    each output that may be sent at once.
    """

    def __init__(self, watch: Watch, send: SendFrame, changed: Callable[[], None], credit: int = wire.WINDOW) -> None:
        self.send = send
        self._watch = watch
        self._changed = changed
        self._input = -1
        self._end_mark = b""
        self._to_write = bytearray()
        self._input_ended = False
        self._stream_of: dict[int, int] = {}  # descriptor -> stream
        self._copy_to: dict[int, int] = {}  # descriptor -> a file to which the output is copied
        self._credit = {wire.OUT: credit, wire.ERR: credit}
        self._buffered = {wire.OUT: bytearray(), wire.ERR: bytearray()}

    def set_input(self, fd: int, end_mark: bytes = b"") -> None:
        """Write stream IN to ``fd``, and ``end_mark`` when the stream ends; takes over ``fd`` and closes it then."""
        os.set_blocking(fd, False)
        self._input, self._end_mark = fd, end_mark

    def grant_input(self) -> None:
        """Grant the first credit for standard input, if the process has one."""
        if self._input >= 0:
            self.send(wire.CREDIT, wire.credit(wire.IN, wire.WINDOW))

    def add_output(self, fd: int, stream: int, copy_to: int = -1) -> None:
        """Send what can be read from ``fd`` as a stream, and copy it to ``copy_to`` if given; takes over both files."""
        os.set_blocking(fd, False)
        if copy_to >= 0:
            self._copy_to[fd] = copy_to
        self._stream_of[fd] = stream
        self._watch.add(fd, lambda _: self._ready(fd))

    # -- from the user -------------------------------------------------------------------------------------------------

    def on_frame(self, frame: wire.Frame) -> None:
        """A frame from the user: DATA or CREDIT."""
        if frame.kind == wire.DATA:
            self._write_input(frame.body[1:])
        elif frame.kind == wire.CREDIT:
            self._grant(*wire.read_credit(frame.body))

    def _write_input(self, content: bytes) -> None:
        if not content:
            self._input_ended = True
            self._to_write += self._end_mark
        elif self._input < 0:
            self.send(wire.CREDIT, wire.credit(wire.IN, len(content)))
            return
        else:
            self._to_write += content
        self._write()

    def _write(self, _: int = 0) -> None:
        if self._input < 0:
            return
        written = 0
        try:
            while self._to_write:
                count = os.write(self._input, self._to_write[: wire.CHUNK])
                written += count
                del self._to_write[:count]
        except BlockingIOError:
            pass
        except OSError:
            # The task does not read any more: further input is accepted and dropped.
            written += len(self._to_write)
            self.close_input()
        if written:
            self.send(wire.CREDIT, wire.credit(wire.IN, written))
        if self._input < 0:
            return
        self._watch.remove(self._input)
        if self._to_write:
            self._watch.add(self._input, self._write, WRITE)
        elif self._input_ended:
            self.close_input()

    def close_input(self) -> None:
        """Close the process's standard input; input that was not written is dropped."""
        if self._input >= 0:
            self._watch.remove(self._input)
            os.close(self._input)
            self._input = -1
        self._to_write.clear()

    def grant_outputs(self) -> None:
        """The user has attached: the first credit for the outputs."""
        for stream in self._credit:
            self._grant(stream, wire.WINDOW)

    def _grant(self, stream: int, count: int) -> None:
        if stream in self._credit:
            self._credit[stream] += count
            self._send_buffered(stream)
            self._resume()
            self._changed()

    # -- to the user ---------------------------------------------------------------------------------------------------

    def put(self, stream: int, content: bytes) -> None:
        """Queue output that the caller has read; it is sent as credit allows. The caller must pause while ``is_full``."""
        self._buffered[stream] += content
        self._send_buffered(stream)

    @property
    def is_full(self) -> bool:
        """Whether a caller of ``put`` must pause."""
        return any(len(buffer) > HIGH for buffer in self._buffered.values())

    @property
    def has_room(self) -> bool:
        """Whether a caller of ``put`` that paused may continue."""
        return all(len(buffer) <= LOW for buffer in self._buffered.values())

    def _send_buffered(self, stream: int) -> None:
        buffer = self._buffered[stream]
        while buffer and self._credit[stream] > 0:
            content = bytes(buffer[: min(self._credit[stream], wire.CHUNK)])
            del buffer[: len(content)]
            self._credit[stream] -= len(content)
            self.send(wire.DATA, wire.data(stream, content))

    def lift_limits(self) -> None:
        """The user is gone: read the outputs without limit, so that the process is not blocked."""
        self._credit = {wire.OUT: UNLIMITED, wire.ERR: UNLIMITED}
        self._resume()

    def _resume(self) -> None:
        for fd, stream in list(self._stream_of.items()):
            if self._credit[stream] > 0:
                self._watch.remove(fd)
                self._watch.add(fd, lambda _, fd=fd: self._ready(fd))  # type: ignore[misc]

    def _ready(self, fd: int) -> None:
        self._read(fd)
        self._changed()

    def _read(self, fd: int) -> bool:
        """Read once; True when there may be more."""
        stream = self._stream_of.get(fd)
        if stream is None:
            return False
        credit = self._credit[stream]
        if credit <= 0:
            self._watch.remove(fd)
            return False
        try:
            content = os.read(fd, min(credit, wire.CHUNK))
        except BlockingIOError:
            return False
        except OSError:
            content = b""
        if not content:
            self._close_output(fd)
            return False
        self._credit[stream] -= len(content)
        if fd in self._copy_to:
            write_all(self._copy_to[fd], content)
        self.send(wire.DATA, wire.data(stream, content))
        return True

    def drain(self) -> None:
        """Read what is in the outputs now, as far as credit allows."""
        for fd in list(self._stream_of):
            while self._read(fd):
                pass

    @property
    def is_waiting(self) -> bool:
        """Whether an output cannot be read for lack of credit."""
        return any(self._credit[stream] <= 0 for stream in self._stream_of.values())

    @property
    def is_drained(self) -> bool:
        """Whether every output has ended and was sent."""
        return not self._stream_of and not any(self._buffered.values())

    def close_outputs(self) -> None:
        """Close the outputs; what is unread is lost."""
        for fd in list(self._stream_of):
            self._close_output(fd)

    def _close_output(self, fd: int) -> None:
        del self._stream_of[fd]
        self._watch.remove(fd)
        os.close(fd)
        if (copy_to := self._copy_to.pop(fd, -1)) >= 0:
            os.close(copy_to)

    def close(self) -> None:
        """Close all streams."""
        self.close_outputs()
        self.close_input()
