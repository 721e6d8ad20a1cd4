"""Processes of the master: starts replicas with a socket pair, and sets the names that ``ps`` shows."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
from typing import BinaryIO

from proto import logfile

CHILD_FD = 3
_PR_SET_NAME = 15
DEATH_SIGNAL = 1
SCHEDULER, QUERY = "lavad.processes.scheduler", "lavad.processes.query"
AHEAD = (QUERY, SCHEDULER)
"""What lavad starts before it is master, in this order."""
_ahead: dict[str, tuple[subprocess.Popen[bytes], socket.socket]] = {}


def set_title(name: str) -> None:
    """The name of this process in ``ps`` and ``top`` (at most 15 bytes)."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def child_socket() -> socket.socket:
    """A replica's end of its socket pair. It ends with its master."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    logfile.follow_parent()
    return socket.socket(fileno=CHILD_FD)


def spawn_ahead(module: str, log: BinaryIO | None) -> None:
    """Start a process that the next ``spawn`` of its module returns: what it imports takes as long as a master's start."""
    _ahead[module] = _start(module, log)


def end_ahead() -> None:
    """End the processes that nobody asked for."""
    while _ahead:
        process, link = _ahead.popitem()[1]
        link.close()
        process.kill()
        process.wait()


def spawn(module: str, log: BinaryIO | None) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start ``python -m module``, a socket pair's end as descriptor 3, or take one that waits; returns the other end."""
    return _ahead.pop(module, None) or _start(module, log)


def _start(module: str, log: BinaryIO | None) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = f"import os, sys; os.dup2({theirs.fileno()}, {CHILD_FD}); sys.path.insert(0, {root!r}); "
    code += f"from {module} import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", code], pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stdout=log, stderr=log
    )
    theirs.close()
    return process, ours
