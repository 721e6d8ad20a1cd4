"""A user at a terminal: a command in a session of its own on a pseudo-terminal, its keys and its screen."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.support.wait import SLOW


class Screen:
    """One shell command at a terminal; use it in a ``with``."""

    def __init__(self, command: str, environ: Mapping[str, str], cwd: Path, rows: int = 30, columns: int = 90) -> None:
        self._master, theirs = pty.openpty()
        self.resize(rows, columns)
        self.found = termios.tcgetattr(theirs)
        self._theirs = theirs
        self.text = ""
        self.process = subprocess.Popen(
            # no preexec_fn, which would run Python in a fork of this process and its threads
            ["setsid", "--ctty", "/bin/sh", "-c", f"exec {command}"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            env={**environ, "TERM": "xterm"},
        )

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in (self._master, self._theirs):
            os.close(fd)

    def resize(self, rows: int, columns: int) -> None:
        """As if the window were drawn to another size."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def wait(self, text: str, timeout: float = 20) -> str:
        """Wait until the screen shows a text; what came before and with it is taken off the screen."""
        deadline = time.monotonic() + timeout * SLOW
        while text not in self.text:
            self._read(deadline - time.monotonic(), f"{text!r}")
        before, found, self.text = self.text.partition(text)
        return before + found

    def wait_end(self, timeout: float = 20) -> int:
        """Wait for the end of the command: its exit code."""
        deadline = time.monotonic() + timeout * SLOW
        while self.process.poll() is None:
            self._read(min(0.05, deadline - time.monotonic()), "its end", patient=time.monotonic() < deadline)
        while select.select([self._master], [], [], 0)[0]:
            self._read(0, "the rest")
        return self.process.returncode

    def wait_stopped(self, timeout: float = 20) -> None:
        """Wait until the command is stopped, as a shell does."""
        deadline = time.monotonic() + timeout * SLOW
        while os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOHANG) is None:
            self._read(min(0.05, deadline - time.monotonic()), "its stop", patient=time.monotonic() < deadline)

    def go_on(self) -> None:
        """As ``fg`` does."""
        os.kill(self.process.pid, signal.SIGCONT)

    @property
    def as_found(self) -> bool:
        """Whether the terminal's modes are those of the beginning."""
        return termios.tcgetattr(self._theirs) == self.found

    def _read(self, seconds: float, what: str, patient: bool = False) -> None:
        ready, _, _ = select.select([self._master], [], [], max(0.0, seconds))
        if ready:
            self.text += os.read(self._master, 65536).decode("utf-8", "replace")
        elif not patient:
            raise AssertionError(f"waited for {what}; the screen shows {self.text!r}")
