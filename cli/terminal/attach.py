"""The user's end of an interactive job: connects this terminal, or the three standard files, to the job on its host.

Rule: bytes go straight to the job's shepherd, through no daemon. Whatever happens, the terminal's settings are restored.
"""

from __future__ import annotations

import os
import signal
import termios
from socket import AF_INET, AF_INET6, AF_UNIX, IPPROTO_TCP, SO_KEEPALIVE, SO_PEERCRED, SOL_SOCKET, socket
from struct import pack, unpack

from cli.client.context import Context, Fail
from cli.client.frames import encode
from cli.terminal import taskframes as wire
from cli.terminal.tasklink import TaskLink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from cli.client.frames import Frame
    from cli.terminal.tasklink import Link
    from cli.terminal.x11 import Screen
    from proto.answers import Answer


CONNECT_SECONDS = 20.0
_TO_JOB = (signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)
_LEAVING = (signal.SIGTERM, signal.SIGHUP)
_NOTICED = (*_TO_JOB, *_LEAVING, signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)


class Attached(TaskLink):
    """A connection to an interactive job.

    ``tty``: the job gets a terminal; ``apart``: its stderr is separate from its stdout; ``screen``: where its windows are shown,
    None: nowhere.
    """

    def __init__(self, context: Context, link: Link, tty: bool, apart: bool, screen: Screen | None = None) -> None:
        self._found: list[Any] | None = None
        self._context = context
        super().__init__(link, True, lambda text: context.err(f"bsub: {text}\n"), _NOTICED)
        self._tty = tty
        if not apart:
            self._fd_of[wire.ERR] = 1
        self._live.add(0)
        self.lost = False
        self._raw = False
        self._clients = None
        if screen is not None:
            from cli.terminal.x11 import Clients

            self._clients = Clients(screen, self._queue, self._complain)

    def _queue(self, frame: bytes) -> None:
        self._out += frame

    def greet(self, token: str) -> None:
        """Authenticate by the job's token, and send this terminal's size and type."""
        said: Frame = {"token": token, "tty": self._tty, "term": self._context.environ.get("TERM", "")}
        if self._tty and (size := _size()):
            said["size"] = list(size)
        if self._clients:
            said["x11"] = True
        self._out += wire.pack(wire.HELLO, 0, encode(said).encode("ascii"))

    def code(self) -> int | None:
        """Pass bytes and signals until the job ends; its exit code, None when the connection broke."""
        try:
            self.run()
        finally:
            self._restore()
            if self._clients:
                self._clients.close()
        return self._codes.get(0)

    # -- from the job --------------------------------------------------------------------------------------------------

    def _took(self, kind: int, number: int, body: bytes) -> None:
        if kind == wire.STARTED:
            self._raw = body[:1] == b"\1" and os.isatty(0)
            self._make_raw()
        elif kind == wire.STOPPED:
            self._suspend()
        elif number and self._clients:
            self._clients.took(kind, number, body)
        else:
            super()._took(kind, number, body)

    def _watched(self) -> dict[int, int]:
        return super()._watched() | (self._clients.watched() if self._clients else {})

    def _ready(self, fd: int, events: int) -> None:
        if self._clients:
            self._clients.ready(fd, events)

    def _broken(self) -> None:
        """Nothing is printed: the master says why."""

    # -- signals -------------------------------------------------------------------------------------------------------

    def _pass_signals(self) -> None:
        for number in os.read(self._woken, 4096):
            if number in _TO_JOB:
                self._signal(number)
            elif number in _LEAVING:
                self._give_up(128 + number)
            elif number == signal.SIGTSTP:
                # the job's process group is orphaned for the kernel, which then delivers no SIGTSTP
                self._signal(signal.SIGSTOP)
                self._suspend()
            elif number == signal.SIGCONT:
                self._make_raw()
                self._tell_size()
            elif number == signal.SIGWINCH:
                self._tell_size()

    def _signal(self, number: int) -> None:
        if self._live:
            self._out += wire.pack(wire.SIGNAL, 0, bytes((number,)))

    def _tell_size(self) -> None:
        if self._tty and self._live and (size := _size()):
            self._out += wire.pack(wire.SIZE, 0, pack("!HH", *size))

    def _suspend(self) -> None:
        """Stop as the job has stopped; when this process is continued, so is the job."""
        self._restore()
        self._send()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, lambda *_: None)
        self._make_raw()
        self._tell_size()
        self._signal(signal.SIGCONT)

    # -- this terminal -------------------------------------------------------------------------------------------------

    def _make_raw(self) -> None:
        """Put the terminal into raw mode: every key goes to the job."""
        if not self._raw:
            return
        import tty

        try:
            if self._found is None:
                self._found = termios.tcgetattr(0)
            tty.setraw(0, termios.TCSADRAIN)
        except termios.error:
            self._raw = False

    def _restore(self) -> None:
        if self._found is not None:
            try:
                termios.tcsetattr(0, termios.TCSADRAIN, self._found)
            except termios.error:
                pass

    def _give_up(self, code: int) -> NoReturn:
        self._restore()
        os._exit(code)


def connect(found: Answer) -> Link | None:
    """A connection to the endpoint that the master named; None where nobody accepts."""
    ip, port, name = str(found["door"]).split(" ")
    if found.get("near"):
        near = socket(AF_UNIX)
        try:
            near.connect("\0" + name)
            if unpack("3i", near.getsockopt(SOL_SOCKET, SO_PEERCRED, 12))[1] in (os.getuid(), 0):
                return near
        except OSError:
            pass
        near.close()
    if not int(port):
        return None
    far = socket(AF_INET6 if ":" in ip else AF_INET)
    try:
        far.settimeout(CONNECT_SECONDS)
        far.connect((ip, int(port)))
        far.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1)
        far.setsockopt(IPPROTO_TCP, 1, 1)
        return Secured(far, str(found["cert"]), str(found["key"]))
    except OSError as error:
        far.close()
        raise Fail(f"{found['host']}: no way to the job's terminal: {error.strerror or error}") from None


class Secured:
    """A socket with TLS under the job's key pair, which both ends hold; used like a plain non-blocking socket."""

    def __init__(self, link: socket, cert: str, key: str) -> None:
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_flags |= ssl.VerifyFlags(0x80000)  # X509_V_FLAG_PARTIAL_CHAIN
        own = ssl.PEM_cert_to_DER_cert(cert)
        context.load_verify_locations(cadata=own)
        held = os.memfd_create("lava", os.MFD_CLOEXEC)
        try:
            os.write(held, (key + cert).encode())
            context.load_cert_chain(f"/proc/self/fd/{held}")
        finally:
            os.close(held)
        self._later = (ssl.SSLWantReadError, ssl.SSLWantWriteError)
        self._over = ssl.SSLError
        self._link = context.wrap_socket(link)
        if self._link.getpeercert(binary_form=True) != own:
            raise OSError(0, "not the certificate of this job")

    def fileno(self) -> int:
        """The descriptor to poll."""
        return self._link.fileno()

    def setblocking(self, blocking: bool) -> None:
        """As of a socket."""
        self._link.setblocking(blocking)

    def send(self, data: bytearray) -> int:
        """As of a socket; after BlockingIOError the same bytes have to be sent again."""
        sent = 0
        try:
            while sent < len(data):
                sent += self._link.send(bytes(data[sent : sent + 16384]))
        except self._later:
            if not sent:
                raise BlockingIOError from None
        return sent

    def recv(self, size: int) -> bytes:
        """Everything received so far: poll does not see what TLS has buffered."""
        parts: list[bytes] = []
        try:
            while part := self._link.recv(size):
                parts.append(part)
        except self._later:
            if not parts:
                raise BlockingIOError from None
        except self._over:
            pass
        return b"".join(parts)

    def close(self) -> None:
        """As of a socket."""
        self._link.close()


def _size() -> tuple[int, int] | None:
    for fd in (0, 1, 2):
        try:
            columns, rows = os.get_terminal_size(fd)
        except OSError:
            continue
        if rows and columns:
            return rows, columns
    return None
