"""Processes of the master: starts replicas with a socket pair, and sets the names that ``ps`` shows."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

from proto.daemon import logfile

CHILD_FD = 3
_PR_SET_NAME = 15
DEATH_SIGNAL = 1
SCHEDULER, QUERY = "lavad.processes.scheduler", "lavad.processes.query"
AHEAD = (QUERY, SCHEDULER)
"""What lavad starts before it is master, in this order."""


SEND_WITHIN = 30.0
"""Seconds in which a process takes what it starts from, which it need not have made a cluster of."""


class Spawned(NamedTuple):
    """A process, our end of its socket pair, and what it is still to be sent first; b"": it was sent; None: there is none."""

    process: subprocess.Popen[bytes]
    link: socket.socket
    seed: bytes | None = None

    def send_seed(self) -> bool:
        """Send what it is still to be sent first; False: there is none, or the process did not take it, and is ended."""
        if not self.seed:
            return self.seed is not None
        self.link.settimeout(SEND_WITHIN)
        try:
            self.link.sendall(self.seed)
        except OSError:
            self.process.kill()
            return False
        return True


_ahead: dict[str, Spawned] = {}


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


def seed_ahead(made: Callable[[], bytes]) -> None:
    """Send what they start from to the processes that wait: to the first now, to each other once it is asked for."""
    if not _ahead:
        return
    frame = made()
    for module, one in _ahead.items():
        now = one._replace(seed=frame)
        if module == AHEAD[0]:
            now = now._replace(seed=b"" if now.send_seed() else None)
        _ahead[module] = now


def is_seeded(module: str) -> bool:
    """Whether a process of this module waits that was sent what it starts from."""
    return module in _ahead and _ahead[module].seed is not None


def end_ahead() -> None:
    """End the processes that nobody asked for."""
    while _ahead:
        process, link, _ = _ahead.popitem()[1]
        link.close()
        process.kill()
        process.wait()


def spawn(module: str, log: BinaryIO | None) -> Spawned:
    """Start ``python -m module``, a socket pair's end as descriptor 3, or take one that waits; returns the other end."""
    return _ahead.pop(module, None) or _start(module, log)


def _start(module: str, log: BinaryIO | None) -> Spawned:
    ours, theirs = socket.socketpair()
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = f"import os, sys; os.dup2({theirs.fileno()}, {CHILD_FD}); sys.path.insert(0, {root!r}); "
    code += f"from {module} import main; sys.exit(main())"
    with theirs:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", code], pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        except OSError:
            ours.close()
            raise
    return Spawned(process, ours)
