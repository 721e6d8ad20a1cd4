"""A daemon's log: standard output and error go to a file, and to a new file of that name on SIGHUP, for logrotate."""

from __future__ import annotations

import contextlib
import os
import signal

_VARIABLE = "LAVA_LOG"


def follow(path: str, inherited: bool = False) -> None:
    """Write to the file from now on; ``inherited``: child processes that call ``follow_parent`` do so too. Raises OSError."""
    _open(path)
    if inherited:
        os.environ[_VARIABLE] = path
    signal.signal(signal.SIGHUP, lambda *_: _open_again(path))


def follow_parent() -> None:
    """In a child process of a daemon: write where it writes, also after SIGHUP."""
    path = os.environ.get(_VARIABLE, "")
    signal.signal(signal.SIGHUP, (lambda *_: _open_again(path)) if path else signal.SIG_IGN)


def _open(path: str) -> None:
    # a link that somebody put there is not followed: root's daemons write here
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def _open_again(path: str) -> None:
    with contextlib.suppress(OSError):
        _open(path)
