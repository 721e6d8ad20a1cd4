"""One connection from a command to the tasks that a shepherd started for it: bytes, signals and exit codes.

Rule: standard library only, and little of it. A stream is read no faster than its reader takes it.
"""

from __future__ import annotations

import os
import select
import signal

from cli.client.context import LSF_FAILED
from cli.client.frames import encode
from cli.terminal import taskframes as wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn, Protocol

    from cli.client.frames import Frame

    class Link(Protocol):
        """A socket, or one with TLS on top."""

        def fileno(self) -> int: ...

        def setblocking(self, blocking: bool, /) -> None: ...

        def send(self, data: bytearray, /) -> int: ...

        def recv(self, size: int, /) -> bytes: ...

        def close(self) -> None: ...


PASSED_ON = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGXCPU,
)
PIECE = 4096
"""Bytes that a descriptor takes without blocking when poll calls it writable."""


class TaskLink:
    """The tasks of one command. ``complain`` prints a line; ``passed_on``: signals that the tasks get."""

    def __init__(
        self, link: Link, with_input: bool, complain: Callable[[str], None], passed_on: tuple[int, ...] = PASSED_ON
    ) -> None:
        self._link = link
        self._complain = complain
        self._passed_on = passed_on
        self._fd_of = {1: 1, 2: 2}
        self._link.setblocking(False)
        self._out = bytearray()
        self._came = bytearray()
        self._room: dict[int, int] = {}  # task -> bytes of standard input it takes now
        self._left: dict[int, bytearray] = {1: bytearray(), 2: bytearray()}
        self._owed: dict[int, list[tuple[int, int, int]]] = {1: [], 2: []}  # task, stream, bytes
        self._live: set[int] = set()
        self._with_input = with_input
        self._codes: dict[int, int] = {}
        self._woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in passed_on:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _noted)
        self._whole = {fd: _is_file(fd) for fd in (1, 2)}

    def start(self, number: int, asked: Frame) -> None:
        """Ask for a task by a number of this command's."""
        self._live.add(number)
        self._codes[number] = LSF_FAILED
        self._out += wire.pack(wire.START, number, encode(asked).encode("ascii"))

    def hello(self, token: str) -> None:
        """Authenticate by the job's token."""
        self._out += wire.pack(wire.HELLO, 0, token.encode())

    def run(self) -> int:
        """Serve until every task has ended and all output is written; the first exit code that is not 0, in task order."""
        while self._live or any(self._left.values()):
            self._turn()
        return next((code for _, code in sorted(self._codes.items()) if code), 0)

    def _turn(self) -> None:
        poll = select.poll()
        for fd, events in self._watched().items():
            poll.register(fd, events)
        for fd, events in poll.poll():
            if fd == self._woken:
                self._pass_signals()
            elif fd == 0:
                self._read_input()
            elif fd in self._left:
                self._write(fd)
            elif fd != self._link.fileno():
                self._ready(fd, events)
            elif events & select.POLLOUT:
                self._send()
            if fd == self._link.fileno() and events & ~select.POLLOUT:
                self._receive()

    def _watched(self) -> dict[int, int]:
        """What to poll: descriptor to events."""
        watched = {self._woken: select.POLLIN}
        if self._live:
            watched[self._link.fileno()] = select.POLLIN | (select.POLLOUT if self._out else 0)
        if self._with_input and self._input_room() > 0:
            watched[0] = select.POLLIN
        return watched | {fd: select.POLLOUT for fd, waiting in self._left.items() if waiting}

    def _ready(self, fd: int, events: int) -> None:
        """A descriptor has events that a subclass watches."""

    def _pass_signals(self) -> None:
        for number in os.read(self._woken, 4096):
            if number in self._passed_on:
                for task in self._live:
                    self._out += wire.pack(wire.SIGNAL, task, bytes((number,)))

    # -- standard input: every task gets all of it -------------------------------------------------------------------

    def _input_room(self) -> int:
        """How many bytes of standard input every task can take now."""
        return min((self._room.get(task, 0) for task in self._live), default=0) if not self._out else 0

    def _read_input(self) -> None:
        room = self._input_room()
        if room <= 0:
            # a signal has been queued since poll was asked
            return
        try:
            content = os.read(0, min(room, 32 * 1024))
        except OSError:
            content = b""
        if not content:
            self._with_input = False
        for task in self._live:
            self._room[task] = self._room.get(task, 0) - len(content)
            self._out += wire.pack(wire.DATA, task, b"\0" + content)

    # -- the shepherd ------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        try:
            sent = self._link.send(self._out)
        except BlockingIOError:
            return
        except OSError:
            # the reason is still to be read from the socket
            self._out.clear()
            return
        del self._out[:sent]

    def _receive(self) -> None:
        try:
            data = self._link.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._came += data
        for kind, number, body in wire.take(self._came):
            self._took(kind, number, body)
        if not data and self._live:
            self._live.clear()
            self._broken()

    def _took(self, kind: int, number: int, body: bytes) -> None:
        if kind == wire.DATA:
            fd = self._fd_of.get(body[0], 0)
            if fd in self._left:
                self._left[fd] += body[1:]
                self._owed[fd].append((number, body[0], len(body) - 1))
        elif kind == wire.CREDIT:
            self._room[number] = self._room.get(number, 0) + wire.read_credit(body)
        elif kind == wire.EXIT:
            self._codes[number] = wire.read_exit(body)
            self._live.discard(number)
        elif kind == wire.FAIL:
            self._complain(body.decode("utf-8", "surrogateescape"))
            if number:
                self._live.discard(number)
            else:
                self._live.clear()

    def _broken(self) -> None:
        self._complain("the connection to the job's shepherd is lost")

    def _write(self, fd: int) -> None:
        waiting = self._left[fd]
        try:
            written = os.write(fd, waiting if self._whole[fd] else waiting[:PIECE])
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._give_up(141)
        except OSError as error:
            self._complain(f"standard {'output' if fd == 1 else 'error'}: {error.strerror}")
            self._give_up(LSF_FAILED)
        del waiting[:written]
        owed = self._owed[fd]
        while written and owed:
            task, stream, count = owed[0]
            now = min(count, written)
            written -= now
            if now == count:
                owed.pop(0)
            else:
                owed[0] = (task, stream, count - now)
            self._out += wire.credit(task, stream, now)

    def _give_up(self, code: int) -> NoReturn:
        os._exit(code)


def _noted(*_: object) -> None:
    """The handler does nothing: the signal's number is in the wake-up pipe."""


def _is_file(fd: int) -> bool:
    from stat import S_ISREG

    try:
        return S_ISREG(os.fstat(fd).st_mode)
    except OSError:
        return False
