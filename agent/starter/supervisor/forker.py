"""A process of the starter's that forks shepherds for it by native code (``part/native/fork.c``).

It is forked before the starter has anything, and stays as small, with few files: a fork of the starter copies the tables of all
its memory and files, and takes longer the more shepherds there are.

Rule: the shepherds are the starter's own children, as if it had forked them. Where there is no native code, a shepherd is to have
more than it gives, or anything goes wrong with this process, the starter forks by itself.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from agent.starter.part import native_parts, shepherd
from agent.starter.supervisor.shepherd_handle import END, SOCK, ShepherdKey, reset_signals
from agent.starter.system import apart, kernel
from agent.starter.system.stdio import one_line

MOST_GROUPS = 1024
"""As fork.c."""
PATIENCE = 2.0
"""Seconds for an answer."""
_WAKE, _WOKEN, _CONTROL = END + 1, END + 2, END + 3
_MADE = struct.Struct("=qQ")


class ToFork(NamedTuple):
    """A shepherd that is to be forked: what it is for, its socket and its end file."""

    key: ShepherdKey
    sock: int
    end_file: int


class Forked(NamedTuple):
    """A new process, and when it was started (clock ticks since boot)."""

    pid: int
    start: int


class Forker:
    """The process that forks, as the starter sees it."""

    def __init__(self, sock: socket.socket, pid: int) -> None:
        self._sock = sock
        self.pid = pid
        """-1: it is gone."""

    def serves(self, key: ShepherdKey) -> bool:
        """Whether it forks such shepherds."""
        return self.pid > 0 and not key.tls and len(key.groups) <= MOST_GROUPS

    def fork(self, asked: Sequence[ToFork]) -> list[Forked | OSError]:
        """Fork one for each, in this order. EOFError: it is gone, and which of them were forked is not known.

        A shepherd that nobody knows ends by itself as soon as its socket is closed.
        """
        found: list[Forked | OSError] = []
        try:
            for key, sock, end_file in asked:
                groups = key.groups
                request = struct.pack(f"=III{len(groups)}I", key.uid, key.gid, len(groups), *groups)
                socket.send_fds(self._sock, [request], [sock, end_file])
            for _ in asked:
                pid, start = _MADE.unpack(self._sock.recv(_MADE.size))
                found.append(Forked(pid, start) if pid > 0 else OSError(-pid, os.strerror(-pid)))
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
            with contextlib.suppress(OSError):
                os.waitpid(self.pid, 0)

    def reaped(self, pid: int) -> None:
        """A child of the starter has ended, perhaps this process."""
        if pid == self.pid:
            self.pid = -1
            self._sock.close()


def begin(host: str, oom_score: int) -> Forker | None:
    """Fork it, before the starter has anything; None where there is no native code, or no process to be had."""
    if not native_parts.is_loaded():
        return None
    try:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(PATIENCE)
        pid = os.fork()
    except OSError:
        return None
    if pid == 0:
        _run(theirs.detach(), host, oom_score)
    theirs.close()
    return Forker(ours, pid)


def _run(control: int, host: str, oom_score: int) -> NoReturn:
    """In the new process, and in the shepherds that it forks where they need Python."""
    code = 70
    try:
        kernel.set_title(f"lava-starter {host} (forks)")
        reset_signals()
        signal.signal(signal.SIGCHLD, lambda *_: None)
        _keep_only(control)
        if os.geteuid() == 0:
            apart.keyring_is_own()
        gc.freeze()
        native, handed = native_parts.forks(_CONTROL, SOCK, oom_score)
        shepherd.Shepherd(socket.socket(fileno=SOCK), END, host).go_on(native, handed, _WAKE)
        code = 0
    except BaseException:
        sys.stderr.write(f"lava-shepherd {os.getpid()} failed: {one_line(traceback.format_exc())}\n")
    finally:
        os._exit(code)


def _keep_only(control: int) -> None:
    """The files are those of a shepherd, with others in their places until it has its own, and the socket behind them."""
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    base = max(control, null, read, write, _CONTROL) + 1
    for number, fd in enumerate((null, null, read, write, control), SOCK):
        os.dup2(fd, base + number, inheritable=False)
    for number in range(SOCK, _CONTROL + 1):
        os.dup2(base + number, number, inheritable=False)
    os.closerange(_CONTROL + 1, 1 << 20)
    signal.set_wakeup_fd(_WOKEN, warn_on_full_buffer=False)
