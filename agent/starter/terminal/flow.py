"""The byte streams between a process here and a user on another host: standard input in, outputs out.

Rule: an output is read only while the reader has granted room, input is taken only so far as it was granted; so what
lies in between never grows, and a reader who stops stops the writer.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from agent.starter.system.stdio import write_all
from agent.starter.system.watch import WRITE, Watch
from agent.starter.wire import taskwire as wire

# (kind, body): a frame to the one who asked
Say = Callable[[int, bytes], None]
ENDLESS = 1 << 62
HIGH, LOW = 256 * 1024, 64 * 1024


class Flow:
    """``say`` sends a frame; ``changed`` is called when an output has ended or there is room again."""

    def __init__(self, watch: Watch, say: Say, changed: Callable[[], None], room: int = wire.WINDOW) -> None:
        self.say = say
        self._watch = watch
        self._changed = changed
        self._input = -1
        self._last_word = b""
        self._to_write = bytearray()
        self._input_ended = False
        self._of: dict[int, int] = {}  # descriptor -> stream
        self._also: dict[int, int] = {}  # descriptor -> a file that gets the same
        self._room = {wire.OUT: room, wire.ERR: room}
        self._held = {wire.OUT: bytearray(), wire.ERR: bytearray()}

    def take_input(self, fd: int, last_word: bytes = b"") -> None:
        """What comes for stream IN is written to ``fd``, which is ours now; at its end ``last_word``, then it is closed."""
        os.set_blocking(fd, False)
        self._input, self._last_word = fd, last_word

    def grant_input(self) -> None:
        """The first room for standard input, if there is any."""
        if self._input >= 0:
            self.say(wire.CREDIT, wire.credit(wire.IN, wire.WINDOW))

    def add_output(self, fd: int, stream: int, also: int = -1) -> None:
        """What can be read from ``fd``, which is ours now, goes out as a stream, and into the file ``also``, ours too."""
        os.set_blocking(fd, False)
        if also >= 0:
            self._also[fd] = also
        self._of[fd] = stream
        self._watch.add(fd, lambda _: self._ready(fd))

    # -- from the user -------------------------------------------------------------------------------------------------

    def take(self, frame: wire.Frame) -> None:
        """DATA or CREDIT."""
        if frame.kind == wire.DATA:
            self._feed(frame.body[1:])
        elif frame.kind == wire.CREDIT:
            self._grant(*wire.read_credit(frame.body))

    def _feed(self, content: bytes) -> None:
        if not content:
            self._input_ended = True
            self._to_write += self._last_word
        elif self._input < 0:
            self.say(wire.CREDIT, wire.credit(wire.IN, len(content)))
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
            # The task reads no more: what still comes is taken and dropped.
            written += len(self._to_write)
            self.close_input()
        if written:
            self.say(wire.CREDIT, wire.credit(wire.IN, written))
        if self._input < 0:
            return
        self._watch.remove(self._input)
        if self._to_write:
            self._watch.add(self._input, self._write, WRITE)
        elif self._input_ended:
            self.close_input()

    def close_input(self) -> None:
        """Nothing more is written."""
        if self._input >= 0:
            self._watch.remove(self._input)
            os.close(self._input)
            self._input = -1
        self._to_write.clear()

    def grant_outputs(self) -> None:
        """The reader has come: the first room for the outputs."""
        for stream in self._room:
            self._grant(stream, wire.WINDOW)

    def _grant(self, stream: int, count: int) -> None:
        if stream in self._room:
            self._room[stream] += count
            self._send_held(stream)
            self._resume()
            self._changed()

    # -- to the user ---------------------------------------------------------------------------------------------------

    def put(self, stream: int, content: bytes) -> None:
        """Output that somebody else has read: it goes out as there is room, ``full`` says when to wait."""
        self._held[stream] += content
        self._send_held(stream)

    @property
    def full(self) -> bool:
        """Whether what was put should wait; no longer so when ``changed`` was called."""
        return any(len(held) > HIGH for held in self._held.values())

    @property
    def low(self) -> bool:
        """Whether what was put may go on."""
        return all(len(held) <= LOW for held in self._held.values())

    def _send_held(self, stream: int) -> None:
        held = self._held[stream]
        while held and self._room[stream] > 0:
            content = bytes(held[: min(self._room[stream], wire.CHUNK)])
            del held[: len(content)]
            self._room[stream] -= len(content)
            self.say(wire.DATA, wire.data(stream, content))

    def open_room(self) -> None:
        """No reader is left: let the outputs flow without limit."""
        self._room = {wire.OUT: ENDLESS, wire.ERR: ENDLESS}
        self._resume()

    def _resume(self) -> None:
        for fd, stream in list(self._of.items()):
            if self._room[stream] > 0:
                self._watch.remove(fd)
                self._watch.add(fd, lambda _, fd=fd: self._ready(fd))  # type: ignore[misc]

    def _ready(self, fd: int) -> None:
        self._read(fd)
        self._changed()

    def _read(self, fd: int) -> bool:
        """True when there may be more."""
        stream = self._of.get(fd)
        if stream is None:
            return False
        room = self._room[stream]
        if room <= 0:
            self._watch.remove(fd)
            return False
        try:
            content = os.read(fd, min(room, wire.CHUNK))
        except BlockingIOError:
            return False
        except OSError:
            content = b""
        if not content:
            self._close_output(fd)
            return False
        self._room[stream] -= len(content)
        if fd in self._also:
            write_all(self._also[fd], content)
        self.say(wire.DATA, wire.data(stream, content))
        return True

    def drain(self) -> None:
        """Read what is there, so far as there is room."""
        for fd in list(self._of):
            while self._read(fd):
                pass

    @property
    def waits(self) -> bool:
        """Whether an output waits for room."""
        return any(self._room[stream] <= 0 for stream in self._of.values())

    @property
    def dry(self) -> bool:
        """Whether every output has ended and is sent."""
        return not self._of and not any(self._held.values())

    def close_outputs(self) -> None:
        """What is still in them is lost."""
        for fd in list(self._of):
            self._close_output(fd)

    def _close_output(self, fd: int) -> None:
        del self._of[fd]
        self._watch.remove(fd)
        os.close(fd)
        if (also := self._also.pop(fd, -1)) >= 0:
            os.close(also)

    def close(self) -> None:
        """Everything."""
        self.close_outputs()
        self.close_input()
