"""A log whose disk may hang: a thread of its own writes the lines, and who logs waits for each of them PATIENCE at most.

Rule: while the log takes its lines, each is written before who logs goes on, in their order. While it hangs nobody waits, MOST
lines are kept, and those beyond are counted.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections import deque
from typing import TextIO

PATIENCE = 1.0
"""Seconds that a line may take before the log counts as one that hangs."""
MOST = 10_000


class LogThread(logging.Handler):
    """Writes to a stream. It has no lock beside ``_changed``: its thread, too, may log, wherever it collects garbage."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        os.register_at_fork(after_in_child=self._begin)
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[str] = deque()
        self._left_out = 0
        self._hangs = False
        self._thread: threading.Thread | None = None

    def createLock(self) -> None:
        """None."""
        self.lock = None

    def handle(self, record: logging.LogRecord) -> bool:
        """As a handler does, without its lock."""
        if wanted := bool(self.filter(record)):
            self.emit(record)
        return wanted

    def emit(self, record: logging.LogRecord) -> None:
        """Have it written; returns once it is, or once the log hangs. One that cannot be formatted is a line that says so."""
        try:
            line = self.format(record)
        except Exception as error:  # of an argument's own text, too: who logs has to go on
            line = self.format(_about(f"a line of {record.pathname}:{record.lineno} cannot be formatted: {error!r}"))
        with self._changed:
            if not self._has_thread():
                self._put(line)
                return
            if len(self._waiting) < MOST:
                self._waiting.append(line)
            else:
                self._left_out += 1
            self._changed.notify_all()
            if not self._hangs:
                self._wait()

    def flush(self) -> None:
        """Wait for what waits to be written, PATIENCE at most."""
        with self._changed:
            self._wait()

    def _has_thread(self) -> bool:
        """Begin it where it is not there; False: the host has no room for another thread now, or Python is ending."""
        if self._thread is None:
            thread = threading.Thread(target=self._write, daemon=True, name="log")
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread
        return True

    def _wait(self) -> None:
        if threading.current_thread() is not self._thread:
            self._hangs = not self._changed.wait_for(lambda: not self._waiting, PATIENCE)

    def _put(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # a full disk takes the line, and nothing else
            self._stream.write(f"{line}\n")
            self._stream.flush()

    def _write(self) -> None:
        changed = self._changed
        while True:
            with changed:
                changed.wait_for(lambda: bool(self._waiting))
                line = self._waiting[0]
            self._put(line)
            with changed:
                self._waiting.popleft()
                if not self._waiting:
                    self._hangs = False
                    if self._left_out:
                        text = f"{self._left_out} lines were left out while the log could not be written"
                        self._waiting.append(self.format(_about(text)))
                        self._left_out = 0
                changed.notify_all()


def _about(text: str) -> logging.LogRecord:
    """A line about the log itself."""
    return logging.makeLogRecord({"msg": text, "name": "log", "levelname": "WARNING"})
