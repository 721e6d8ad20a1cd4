"""The user's end of an interactive part: a pseudo-terminal or three pipes for its processes, a connection to ``bsub``.

Rule: the processes start when the user has attached, all they wrote goes out before their end is told, and a user who
leaves is a terminal that hangs up. What the user does is queued in ``events``; whoever runs the part takes it from there.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios
import time
from typing import NamedTuple

from agent.starter.process.prepare import Files
from agent.starter.process.spec import Spec
from agent.starter.protocol.commands import Greeting
from agent.starter.protocol.part import InteractiveSpec
from agent.starter.system.stdio import Refused
from agent.starter.system.watch import Watch
from agent.starter.terminal.attach_endpoint import AttachEndpoint, Connection
from agent.starter.terminal.flow import Flow
from agent.starter.wire import taskwire as wire

COME_SECONDS = 120.0
VEOF = b"\x04"


class Attached(NamedTuple):
    """The user is there: what waits for them may start."""


class Signalled(NamedTuple):
    """The user sends a signal."""

    sig: int


class Left(NamedTuple):
    """The user has hung up, or never came."""


class OutputPaused(NamedTuple):
    """Output of ranks must wait (``paused``) for a user who does not read, or may go on."""

    paused: bool


UserEvent = Attached | Signalled | Left | OutputPaused


class Terminal:
    """The terminal of one part."""

    def __init__(self, spec: Spec, asked: InteractiveSpec, watch: Watch) -> None:
        self.over = False
        self.events: list[UserEvent] = []
        """What the user has done that nobody has taken yet."""
        self.tty = -1
        """The side of a pseudo-terminal that is the processes', -1 without one."""
        self._asked = asked
        self._spec = spec
        self._endpoint = AttachEndpoint(spec.token, watch, self._came, self._took, self._left)
        self._connection: Connection | None = None
        self._flow = Flow(watch, self._say, self._changed, room=0)
        self._here = False
        self._wanted_tty = False
        self._master = -1
        self._come_by: float | None = None
        self._code: int | None = None
        self._size: tuple[int, ...] = ()
        self._close_by: float | None = None
        self._paused = False

    def open(self) -> None:
        """Listen; Refused when that cannot be."""
        asked = self._asked
        try:
            self._endpoint.open(asked.cert, asked.key, asked.bind)
        except (OSError, ValueError) as e:
            raise Refused("bad", f"terminal of {self._spec.title}: {getattr(e, 'strerror', None) or e}") from None

    def address(self) -> str:
        """Where the user attaches: ``ip port name``; ``- 0 name`` where other hosts have no way in."""
        ip, port, name = self._endpoint.address()
        return f"{ip or '-'} {port} {name}"

    def go(self) -> bool:
        """The part may start: whether the user is there. If not, the event Attached or Left follows."""
        if not self._here:
            self._come_by = time.monotonic() + COME_SECONDS
        return self._here

    # -- the processes' files ------------------------------------------------------------------------------------------

    def lend(self, files: Files, gang: bool) -> None:
        """Connect the processes' streams that have no file to the user. A gang reads its processes' pipes itself."""
        if not gang:
            self._lend_copies(files)
        if self._wanted_tty and not gang:
            self._lend_terminal(files)
            return
        if self._asked.stdin:
            read_end, ours = os.pipe2(os.O_CLOEXEC)
            self._flow.take_input(ours)
            _replace(files, "stdin", read_end)
        for name, stream in (("stdout", wire.OUT), ("stderr", wire.ERR)):
            if getattr(self._asked, name) and not gang:
                ours, write_end = os.pipe2(os.O_CLOEXEC)
                self._flow.add_output(ours, stream)
                _replace(files, name, write_end)

    def _lend_copies(self, files: Files) -> None:
        """``-tty``: what goes to a file is shown too."""
        for name, stream in (("stdout", wire.OUT), ("stderr", wire.ERR)):
            if self._asked.tee and not getattr(self._asked, name):
                ours, write_end = os.pipe2(os.O_CLOEXEC)
                self._flow.add_output(ours, stream, also=os.dup(getattr(files, name)))
                _replace(files, name, write_end)

    def _lend_terminal(self, files: Files) -> None:
        self._master, self.tty = os.openpty()
        if len(self._size) == 2 and all(0 <= n < 65536 for n in self._size):
            self._resize(*self._size)
        self._flow.take_input(os.dup(self._master), VEOF)
        self._flow.add_output(os.dup(self._master), wire.OUT)
        for name in ("stdin", "stdout", "stderr"):
            if getattr(self._asked, name):
                _replace(files, name, os.dup(self.tty))

    def takes(self, stream: int) -> bool:
        """Whether what a gang's processes write to a stream goes to the user instead of a file."""
        return self._asked.stderr if stream == wire.ERR else self._asked.stdout

    @property
    def tees(self) -> bool:
        """Whether what goes to a file is shown too."""
        return self._asked.tee

    def put(self, stream: int, lines: bytes) -> None:
        """What a gang's processes wrote."""
        self._flow.put(stream, lines)
        if self._flow.full and not self._paused:
            self._paused = True
            self.events.append(OutputPaused(True))

    def started(self) -> None:
        """The processes run."""
        self._say(wire.STARTED, b"\1" if self.tty >= 0 else b"\0")
        self._flow.grant_input()

    # -- the user ------------------------------------------------------------------------------------------------------

    def _say(self, kind: int, body: bytes) -> None:
        if self._connection is not None:
            self._connection.send_bytes(wire.pack(wire.Frame(kind, 0, 0, 0, body)))

    def _came(self, connection: Connection, said: Greeting) -> None:
        self._connection = connection
        self._here = True
        self._come_by = None
        self._endpoint.shut()
        self._wanted_tty = said.tty
        if said.term and "\0" not in said.term:
            self._spec.env["TERM"] = os.fsencode(f"TERM={said.term}")
        self._size = said.size
        self._flow.grant_outputs()
        self.events.append(Attached())

    def _resize(self, rows: int, columns: int) -> None:
        if self._master >= 0:
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _took(self, frame: wire.Frame) -> None:
        if frame.kind == wire.DATA:
            suspends = self._suspends(frame.body[1:])
            self._flow.take(frame)
            if suspends:
                self._suspend()
        elif frame.kind == wire.CREDIT:
            self._flow.take(frame)
        elif frame.kind == wire.SIGNAL and frame.body and 0 < frame.body[0] <= 64:
            self.events.append(Signalled(frame.body[0]))
        elif frame.kind == wire.SIZE and len(frame.body) == 4:
            self._resize(*struct.unpack("!HH", frame.body))

    def _left(self) -> None:
        self._connection = None
        self._flow.open_room()
        self._flow.close_input()
        if self._code is None:
            self.events.append(Left())
        self._changed()

    def _suspends(self, keys: bytes) -> bool:
        """Whether one of these keys is the suspend key (VSUSP) and no shell reads the terminal.

        The processes of a part are orphans for the kernel, which does not let this key stop them.
        """
        if self._master < 0 or self._asked.shell:
            return False
        modes = termios.tcgetattr(self._master)
        key = modes[6][termios.VSUSP]
        return bool(modes[3] & termios.ISIG) and key != b"\0" and key in keys

    def _suspend(self) -> None:
        try:
            front = os.tcgetpgrp(self._master)
            os.killpg(front, signal.SIGSTOP)
        except OSError:
            return
        self._say(wire.STOPPED, b"")

    # -- end -----------------------------------------------------------------------------------------------------------

    def ended(self, status: int) -> None:
        """The part has ended with this wait status; the user is told after all output."""
        code = os.waitstatus_to_exitcode(status)
        self._code = 128 - code if code < 0 else code
        self._flow.close_input()

    def gone(self) -> None:
        """Nothing of the part is left: what is still in its pipes is all there is."""
        if self.tty >= 0:
            os.close(self.tty)
            self.tty = -1
        self._endpoint.shut()
        if self._connection is None or self._code is None:
            self.close()
        else:
            self._changed()

    def _changed(self) -> None:
        flow = self._flow
        if self._paused and flow.low:
            self._paused = False
            self.events.append(OutputPaused(False))
        if self.tty < 0 and self._code is not None and flow.dry and not self.over:
            self._say(wire.EXIT, wire.exit_body(self._code))
            self.over = True
            self._close_by = time.monotonic() + COME_SECONDS

    @property
    def done(self) -> bool:
        """Whether the user has hung up."""
        return self._connection is None or self._connection.closed

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic)."""
        return self._come_by if self._close_by is None else self._close_by

    def on_time(self) -> None:
        """Give up a user who did not attach in time, or does not hang up after the end."""
        now = time.monotonic()
        if self._come_by is not None and now >= self._come_by:
            self._come_by = None
            self.events.append(Left())
        if self._close_by is not None and now >= self._close_by:
            self._close_by = None
            if self._connection is not None and not self._connection.waiting:
                self.close()

    def close(self) -> None:
        """Everything."""
        self.over = True
        self._flow.close()
        for fd in (self.tty, self._master):
            if fd >= 0:
                os.close(fd)
        self.tty = self._master = -1
        self._endpoint.close()
        self._connection = None


def _replace(files: Files, name: str, fd: int) -> None:
    """Put a file in the place of another, which is closed unless it has a second place."""
    was = getattr(files, name)
    setattr(files, name, fd)
    if was >= 0 and was not in (files.stdin, files.stdout, files.stderr):
        os.close(was)
