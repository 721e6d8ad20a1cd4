"""The terminal of an interactive part: a pseudo-terminal or three pipes for its processes, and a connection to ``bsub``.

Rule: the processes start when the user has attached; all their output is sent before their exit code; a user who
disconnects is a terminal that hangs up. What the user does is queued in ``events``, for the part to take.
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
from agent.starter.terminal.x11 import Display
from agent.starter.wire import taskwire as wire

ATTACH_SECONDS = 120.0
VEOF = b"\x04"


class Attached(NamedTuple):
    """The user has attached: the processes may start."""


class Signalled(NamedTuple):
    """The user sends a signal."""

    sig: int


class Left(NamedTuple):
    """The user has disconnected, or did not attach in time."""


class OutputPaused(NamedTuple):
    """The user does not read: the ranks' output must wait (``paused``), or may continue."""

    paused: bool


UserEvent = Attached | Signalled | Left | OutputPaused


class Terminal:
    """The terminal of one part."""

    def __init__(self, spec: Spec, asked: InteractiveSpec, watch: Watch) -> None:
        self.over = False
        self.events: list[UserEvent] = []
        """What the user has done and the part has not handled yet."""
        self.tty = -1
        """The processes' side of the pseudo-terminal, -1 if there is none."""
        self._asked = asked
        self._spec = spec
        self._endpoint = AttachEndpoint(spec.token, watch, self._on_attach, self._on_frame, self._on_detach)
        self._connection: Connection | None = None
        self._flow = Flow(watch, self._send, self._changed, credit=0)
        self._display = Display(watch, self._send_of)
        self._is_attached = False
        self._wants_tty = False
        self._master = -1
        self._attach_by: float | None = None
        self._code: int | None = None
        self._size: tuple[int, ...] = ()
        self._close_by: float | None = None
        self._paused = False

    def open(self) -> None:
        """Listen for the user; Refused when that fails."""
        asked = self._asked
        try:
            self._endpoint.open(asked.cert, asked.key, asked.bind)
        except (OSError, ValueError) as e:
            raise Refused("bad", f"terminal of {self._spec.title}: {getattr(e, 'strerror', None) or e}") from None

    def address(self) -> str:
        """Where the user attaches: ``ip port name``; ``- 0 name`` when only from this host."""
        ip, port, name = self._endpoint.address()
        return f"{ip or '-'} {port} {name}"

    def wait_for_user(self) -> bool:
        """Whether the user has attached; if not, the event Attached or Left follows within ATTACH_SECONDS."""
        if not self._is_attached:
            self._attach_by = time.monotonic() + ATTACH_SECONDS
        return self._is_attached

    # -- the processes' files ------------------------------------------------------------------------------------------

    def connect_files(self, files: Files, gang: bool) -> None:
        """Connect the processes' streams that have no file to the user. The output of a gang comes through ``put`` instead."""
        if not gang:
            self._tee_files(files)
        if self._wants_tty and not gang:
            self._connect_pty(files)
            return
        if self._asked.stdin:
            read_end, ours = os.pipe2(os.O_CLOEXEC)
            self._flow.set_input(ours)
            _replace(files, "stdin", read_end)
        for name, stream in (("stdout", wire.OUT), ("stderr", wire.ERR)):
            if getattr(self._asked, name) and not gang:
                ours, write_end = os.pipe2(os.O_CLOEXEC)
                self._flow.add_output(ours, stream)
                _replace(files, name, write_end)

    def _tee_files(self, files: Files) -> None:
        """``-tty``: output that goes to a file is sent to the user too."""
        for name, stream in (("stdout", wire.OUT), ("stderr", wire.ERR)):
            if self._asked.tee and not getattr(self._asked, name):
                ours, write_end = os.pipe2(os.O_CLOEXEC)
                self._flow.add_output(ours, stream, copy_to=os.dup(getattr(files, name)))
                _replace(files, name, write_end)

    def _connect_pty(self, files: Files) -> None:
        self._master, self.tty = os.openpty()
        if len(self._size) == 2 and all(0 <= n < 65536 for n in self._size):
            self._resize(*self._size)
        self._flow.set_input(os.dup(self._master), VEOF)
        self._flow.add_output(os.dup(self._master), wire.OUT)
        for name in ("stdin", "stdout", "stderr"):
            if getattr(self._asked, name):
                _replace(files, name, os.dup(self.tty))

    def is_for_user(self, stream: int) -> bool:
        """Whether a stream of a gang's processes goes to the user instead of a file."""
        return self._asked.stderr if stream == wire.ERR else self._asked.stdout

    @property
    def tees(self) -> bool:
        """Whether output that goes to a file is sent to the user too."""
        return self._asked.tee

    def put(self, stream: int, lines: bytes) -> None:
        """Send output of a gang's processes to the user; the event OutputPaused follows when there is too much."""
        self._flow.put(stream, lines)
        if self._flow.is_full and not self._paused:
            self._paused = True
            self.events.append(OutputPaused(True))

    def started(self) -> None:
        """The processes run: tell the user so, and accept input."""
        self._send(wire.STARTED, b"\1" if self.tty >= 0 else b"\0")
        self._flow.grant_input()

    # -- the user ------------------------------------------------------------------------------------------------------

    def _send(self, kind: int, body: bytes) -> None:
        self._send_of(kind, 0, body)

    def _send_of(self, kind: int, number: int, body: bytes) -> None:
        """Of a client of the X11 display; 0: of the terminal."""
        if self._connection is not None:
            self._connection.send_bytes(wire.pack(wire.Frame(kind, 0, 0, number, body)))

    def _on_attach(self, connection: Connection, greeting: Greeting) -> None:
        self._connection = connection
        self._is_attached = True
        self._attach_by = None
        self._endpoint.stop_listening()
        self._wants_tty = greeting.tty
        if greeting.term and "\0" not in greeting.term:
            self._spec.env["TERM"] = os.fsencode(f"TERM={greeting.term}")
        self._size = greeting.size
        self._flow.grant_outputs()
        if greeting.x11:
            self._open_display()
        self.events.append(Attached())

    def _open_display(self) -> None:
        try:
            found = self._display.open()
        except OSError as e:
            self._flow.put(wire.ERR, f"lava: no X11 display for the job: {e.strerror}\n".encode())
            return
        self._spec.env.update((name, os.fsencode(f"{name}={value}")) for name, value in found.items())

    def _resize(self, rows: int, columns: int) -> None:
        if self._master >= 0:
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _on_frame(self, frame: wire.Frame) -> None:
        if frame.kind == wire.DATA:
            suspends = self._suspends(frame.body[1:])
            self._flow.on_frame(frame)
            if suspends:
                self._suspend()
        elif frame.kind == wire.CREDIT:
            self._flow.on_frame(frame)
        elif frame.kind == wire.SIGNAL and frame.body and 0 < frame.body[0] <= 64:
            self.events.append(Signalled(frame.body[0]))
        elif frame.kind == wire.SIZE and len(frame.body) == 4:
            self._resize(*struct.unpack("!HH", frame.body))
        elif frame.number:
            self._display.on_frame(frame)

    def _on_detach(self) -> None:
        self._connection = None
        self._display.close()
        self._flow.lift_limits()
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
        self._send(wire.STOPPED, b"")

    # -- end -----------------------------------------------------------------------------------------------------------

    def ended(self, status: int) -> None:
        """The part has ended with this wait status; the user gets its exit code after all output."""
        code = os.waitstatus_to_exitcode(status)
        self._code = 128 - code if code < 0 else code
        self._flow.close_input()

    def gone(self) -> None:
        """No process of the part is left, so that no further output will be written."""
        if self.tty >= 0:
            os.close(self.tty)
            self.tty = -1
        self._endpoint.stop_listening()
        self._display.close()
        if self._connection is None or self._code is None:
            self.close()
        else:
            self._changed()

    def _changed(self) -> None:
        flow = self._flow
        if self._paused and flow.has_room:
            self._paused = False
            self.events.append(OutputPaused(False))
        if self.tty < 0 and self._code is not None and flow.is_drained and not self.over:
            self._send(wire.EXIT, wire.exit_body(self._code))
            self.over = True
            self._close_by = time.monotonic() + ATTACH_SECONDS

    @property
    def done(self) -> bool:
        """Whether the user's connection is closed."""
        return self._connection is None or self._connection.closed

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic)."""
        return self._attach_by if self._close_by is None else self._close_by

    def on_time(self) -> None:
        """Give up a user who did not attach in time, or does not disconnect after the end."""
        now = time.monotonic()
        if self._attach_by is not None and now >= self._attach_by:
            self._attach_by = None
            self.events.append(Left())
        if self._close_by is not None and now >= self._close_by:
            self._close_by = None
            if self._connection is not None and not self._connection.waiting:
                self.close()

    def close(self) -> None:
        """Close all files and sockets."""
        self.over = True
        self._display.close()
        self._flow.close()
        for fd in (self.tty, self._master):
            if fd >= 0:
                os.close(fd)
        self.tty = self._master = -1
        self._endpoint.close()
        self._connection = None


def _replace(files: Files, name: str, fd: int) -> None:
    """Replace a file; the former one is closed unless it is used for another stream too."""
    was = getattr(files, name)
    setattr(files, name, fd)
    if was >= 0 and was not in (files.stdin, files.stdout, files.stderr):
        os.close(was)
