"""Processes of the starter's that fork shepherds for it by native code (``part/native/fork.c``).

They are forked before the starter has anything, and stay as small, with few files: a fork of the starter copies the tables of all
its memory and files, and takes longer the more shepherds there are. One forks those that are to have Python; the other, for parts
that native code runs from start to end, has become a program that has none (``native/program.c``).

Rule: the shepherds are the starter's own children, as if it had forked them. Where there is no native code, a shepherd is to have
more than it gives, or anything goes wrong with such a process, the starter forks by itself.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import stat
import struct
import sys
import traceback
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from agent.starter.part import native_parts, shepherd
from agent.starter.supervisor.shepherd_handle import END, SOCK, ShepherdKey, reset_signals
from agent.starter.system import apart, kernel, rlimits
from agent.starter.system.stdio import append, one_line

MOST_GROUPS = 1024
"""As fork.c."""
AT_ONCE = 64
"""Requests that are sent before their answers are read: sockets have room for some hundreds, and then both sides would wait."""
PATIENCE = 2.0
"""Seconds for an answer."""
_MFD_EXEC = 0x10
_WAKE, _WOKEN, _CONTROL = END + 1, END + 2, END + 3
_MADE = struct.Struct("=qQ")
PYTHON = os.path.join(os.path.realpath(os.path.dirname(sys.executable)), os.path.basename(sys.executable))
GO_ON = os.path.join(os.path.dirname(os.path.realpath(__file__)), "go_on.py")
"""What a shepherd without Python runs by Python when it needs it: of this release, although the link to its folder may
lead to another by then."""
_FOR_PYTHON = ("LANG", "LC_", "LD_")
"""Beginnings of the variables that Python starts with. Others are the starter's alone: the user may read a new program's."""


class ToFork(NamedTuple):
    """A shepherd that is to be forked: what it is for, its socket, its end file, and the folder of its group ("": none)."""

    key: ShepherdKey
    sock: int
    end_file: int
    group: str


class Forked(NamedTuple):
    """A new process, when it was started (clock ticks since boot), and whether it is in its group."""

    pid: int
    start: int
    moved: bool


class Forker:
    """A process that forks, as the starter sees it; ``native``: shepherds without Python."""

    def __init__(self, sock: socket.socket, pid: int, native: bool) -> None:
        self._sock = sock
        self.native = native
        self.pid = pid
        """-1: it is gone."""

    def serves(self, key: ShepherdKey) -> bool:
        """Whether it forks such shepherds."""
        return self.pid > 0 and (key.native or not self.native) and not key.tls and len(key.groups) <= MOST_GROUPS

    def fork(self, asked: Sequence[ToFork]) -> list[Forked | OSError]:
        """Fork one for each, in this order. EOFError: it is gone, and which of them were forked is not known.

        A shepherd that nobody knows ends by itself as soon as its socket is closed.
        """
        found: list[Forked | OSError] = []
        try:
            for at in range(0, len(asked), AT_ONCE):
                some = asked[at : at + AT_ONCE]
                for key, sock, end_file, group in some:
                    groups = key.groups
                    request = struct.pack(f"=III{len(groups)}I", key.uid, key.gid, len(groups), *groups) + os.fsencode(group)
                    socket.send_fds(self._sock, [request], [sock, end_file])
                for _ in some:
                    pid, start = _MADE.unpack(self._sock.recv(_MADE.size))
                    found.append(Forked(pid, start, True) if pid > 0 else OSError(-pid, os.strerror(-pid)))
        except (OSError, struct.error) as e:
            self.close()
            raise EOFError(str(e)) from None
        return found

    def close(self, wait: bool = False) -> None:
        """End it, and ``wait`` for that."""
        self._sock.close()
        if self.pid > 0:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
                if wait:
                    os.waitpid(self.pid, 0)

    def reaped(self, pid: int) -> None:
        """A child of the starter has ended, perhaps this process."""
        if pid == self.pid:
            self.pid = -1
            self._sock.close()


def begin(host: str, oom_score: int) -> tuple[Forker, ...]:
    """Fork them, before the starter has anything; none where there is no native code, or no process to be had."""
    if native_parts.library() is None:
        return ()
    natives = (True, False) if native_parts.program() and _all_may_start_python() else (False,)
    return tuple(one for native in natives if (one := _begin(host, oom_score, native)) is not None)


def _begin(host: str, oom_score: int, native: bool) -> Forker | None:
    try:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(PATIENCE)
        pid = os.fork()
    except OSError:
        return None
    if pid == 0:
        _run(theirs.detach(), host, oom_score, native)
    theirs.close()
    return Forker(ours, pid, native)


def _all_may_start_python() -> bool:
    """Whether whoever a shepherd becomes may start Python, and read what it then needs."""
    if os.geteuid() != 0:
        return True
    try:
        return all(map(_all_may, (PYTHON, os.path.realpath(PYTHON), os.path.realpath(os.__file__), GO_ON)))
    except OSError:
        return False


def _all_may(path: str) -> bool:
    """Whether everybody may read a file, and enter the folders above it; OSError."""
    may, wanted = True, stat.S_IROTH
    while may:
        may = bool(os.stat(path).st_mode & wanted)
        if path == "/":
            break
        path, wanted = os.path.dirname(path), stat.S_IXOTH
    return may


def _run(control: int, host: str, oom_score: int, native: bool) -> NoReturn:
    """In the new process, and in the shepherds that it forks where they need Python."""
    code = 70
    title = f"lava-starter {host} (forks)"
    try:
        kernel.set_title(title)
        reset_signals()
        signal.signal(signal.SIGCHLD, lambda *_: None)
        if os.geteuid() == 0:
            apart.keyring_is_own()
        if native:
            _become_program(control, title, host, oom_score)
        _keep_only(control)
        gc.freeze()
        parts, handed = native_parts.forks(_CONTROL, SOCK, oom_score)
        shepherd.Shepherd(socket.socket(fileno=SOCK), END, host).go_on(parts, handed, _WAKE)
        code = 0
    except BaseException:
        sys.stderr.write(f"lava-shepherd {os.getpid()} failed: {one_line(traceback.format_exc())}\n")
    finally:
        os._exit(code)


def _become_program(control: int, title: str, host: str, oom_score: int) -> NoReturn:
    """OSError where the kernel does not start it from memory."""
    try:
        file = os.memfd_create("lava-starter", os.MFD_CLOEXEC | _MFD_EXEC)
    except OSError:  # before Linux 6.3, where each may be started
        file = os.memfd_create("lava-starter")
    append(file, native_parts.program())
    _keep_only(control, file)
    keyring = str(int(apart.has_own_keyring()))
    files, stack = str(rlimits.open_files()), str(rlimits.stack())
    for fd in range(SOCK, _CONTROL + 1):
        os.set_inheritable(fd, True)
    words = [
        title,
        str(_CONTROL),
        str(SOCK),
        str(oom_score),
        keyring,
        files,
        PYTHON,
        "-I",
        "-S",
        GO_ON,
        "--host",
        host,
        keyring,
        files,
        stack,
    ]
    os.execve(_CONTROL + 1, words, {name: value for name, value in os.environ.items() if name.startswith(_FOR_PYTHON)})


def _keep_only(control: int, *more: int) -> None:
    """The files are those of a shepherd, with others in their places until it has its own; behind them the socket, and more."""
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    files = (null, null, read, write, control, *more)
    base = max(*files, _CONTROL + len(more)) + 1
    for number, fd in enumerate(files, SOCK):
        os.dup2(fd, base + number, inheritable=False)
    for number in range(SOCK, SOCK + len(files)):
        os.dup2(base + number, number, inheritable=False)
    os.closerange(SOCK + len(files), 1 << 20)
    signal.set_wakeup_fd(_WOKEN, warn_on_full_buffer=False)
