"""A daemon's log: standard output and error go to a file, and to a new file of that name on SIGHUP, for logrotate.

Rule: the new file is opened by a thread of its own, as its file system may hang; the daemon goes on with the old one meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import signal
from _thread import start_new_thread  # of threading.Thread a signal's handler might wait for a lock that it interrupts

_VARIABLE = "LAVA_LOG"


def follow(path: str, inherited: bool = False) -> None:
    """Write to the file from now on; ``inherited``: child processes that call ``follow_parent`` do so too. Raises OSError."""
    _open(path)
    if inherited:
        os.environ[_VARIABLE] = path
    signal.signal(signal.SIGHUP, _Reopening(path).asked)


def follow_parent() -> None:
    """In a child process of a daemon: write where it writes, also after SIGHUP."""
    path = os.environ.get(_VARIABLE, "")
    signal.signal(signal.SIGHUP, _Reopening(path).asked if path else signal.SIG_IGN)


class _Reopening:
    """Opens the file again each time that it is asked to; once for all that ask while it waits for the file."""

    def __init__(self, path: str) -> None:
        self._path = path
        os.register_at_fork(after_in_child=self._begin)
        self._begin()

    def _begin(self) -> None:
        self._asked = self._busy = False

    def asked(self, *_: object) -> None:
        """SIGHUP."""
        self._asked = True
        if not self._busy:
            self._busy = True
            try:
                start_new_thread(self._work, ())
            except RuntimeError:  # the host has no room for another thread now: at the next signal
                self._busy = False

    def _work(self) -> None:
        while self._asked:
            self._asked = False
            with contextlib.suppress(OSError):
                _open(self._path)
            if not self._asked:
                self._busy = False  # a signal from here on begins another thread, or is seen by the loop


def _open(path: str) -> None:
    # a link that somebody put there is not followed: root's daemons write here
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
