"""Files: a part's input and output, whole lines from many ranks in one file, and files that are only appended to.

Rule: only whole lines of ranks are written, so that lines are never mixed; the last line of an ended rank is completed.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
from types import FrameType

from agent.starter.protocol.part import OutputFile
from agent.starter.system.foreign_folder import why_foreign

MAX_LINE = 64 * 1024
LONGEST_LINE = 16_384
"""Characters of a line of the log."""


AWAY = frozenset(
    getattr(errno, name)
    for name in ("EIO", "ESTALE", "ENOTCONN", "ETIMEDOUT", "EHOSTDOWN", "EHOSTUNREACH", "ECONNREFUSED", "ENODEV", "EREMOTEIO")
)
"""Errors of a file system that this host cannot reach: nobody's job would find its files here."""


PATIENCE = 60.0
"""Seconds for which a named pipe's other end is waited for: a job that waits there has not begun, and no limit of its acts."""


class Refused(Exception):
    """The part cannot be started: a code of the protocol, and one line for the user."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def open_input(path: str | None) -> int:
    """Open the file that becomes standard input, /dev/null without a path; Refused when that fails."""
    try:
        return _open(path or "/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError) as e:
        raise Refused(code_of(e, "input"), f"input file {path}: {_why(e)}") from None


def spooled_input(data: bytes) -> int:
    """Standard input with the contents ``data``, as an anonymous file; Refused when that fails."""
    fd = os.memfd_create("input", os.MFD_CLOEXEC)
    try:
        write_all(fd, data)
        os.lseek(fd, 0, os.SEEK_SET)
    except (OSError, ValueError) as e:
        os.close(fd)
        raise Refused("input", f"input: {_why(e)}") from None
    return fd


def open_output(file: OutputFile | None) -> int:
    """Open the file that becomes standard output or error, /dev/null without a path; Refused when that fails."""
    if file is None or not file.path:
        return os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
    path = file.path
    # O_APPEND always: standard output and error, or several attempts, may share the file.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY
    if not file.append:
        flags |= os.O_TRUNC
    try:
        if file.mkdir:
            make_folder_of(path)
        return _open(path, flags)
    except (OSError, ValueError) as e:
        raise Refused(code_of(e, "output"), f"output file {path}: {_why(e)}") from None


def make_folder_of(path: str) -> None:
    """Make a file's folder where there is none. OSError; ValueError where another user has put it there before."""
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, exist_ok=True)
    if why := why_foreign(folder):
        raise ValueError(why)


def _open(path: str, flags: int) -> int:
    """As os.open, but for PATIENCE at most; in the main thread only."""
    if not _is_pipe(path):
        return os.open(path, flags, 0o666)
    former = signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        return os.open(path, flags, 0o666)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False  # to open it says why


def _give_up(_: int, __: FrameType | None) -> None:
    raise OSError(errno.ETIME, f"nobody opened the other end of this pipe within {PATIENCE:g} s")


def is_discarded(file: OutputFile | None) -> bool:
    """Whether nobody sees what is written there."""
    return file is None or file.path in ("", os.devnull)


def code_of(e: Exception, code: str) -> str:
    """``code``, or ``files`` where the host cannot reach the file system."""
    return "files" if isinstance(e, OSError) and e.errno in AWAY else code


def _why(e: Exception) -> str:
    return (e.strerror or str(e)) if isinstance(e, OSError) else str(e)


def write_all(fd: int, data: bytes) -> None:
    """Write everything; on an error (a full disk) the rest is dropped."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        pass


def append(fd: int, data: bytes) -> None:
    """Append all of ``data``, or nothing and raise OSError: half an entry would make the next one unreadable too."""
    written = os.write(fd, data)
    if written < len(data):
        os.ftruncate(fd, os.fstat(fd).st_size - written)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Lines:
    """Splits one stream of one rank into whole lines, each with the rank's label in front."""

    def __init__(self, label: bytes = b"") -> None:
        self._label = label
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """The lines that ``data`` completes; a line over MAX_LINE bytes is split."""
        data = self._rest + data
        cut = data.rfind(b"\n") + 1
        if len(data) - cut > MAX_LINE:
            cut = len(data)
        self._rest = data[cut:]
        return self._labelled(data[:cut])

    def end(self) -> bytes:
        """The last line when the stream ends, completed by a newline; b"" if there is none."""
        rest, self._rest = self._rest, b""
        return self._labelled(rest + b"\n") if rest else b""

    def _labelled(self, data: bytes) -> bytes:
        if not self._label or not data:
            return data
        lines = data.split(b"\n")
        last = lines.pop()
        text = b"".join(self._label + line + b"\n" for line in lines)
        return text + self._label + last + b"\n" if last else text


def one_line(text: str) -> str:
    """A text for the log, with plain characters only. As ``proto.daemon.logs.escaped``, which is not imported here."""
    text = text[:LONGEST_LINE]
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)
