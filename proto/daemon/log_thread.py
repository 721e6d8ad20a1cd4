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
    """Writes to a stream."""

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

    def emit(self, record: logging.LogRecord) -> None:
        """Have it written; returns once it is, or once the log hangs."""
        line = self.format(record)
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, daemon=True, name="log")
                self._thread.start()
            if len(self._waiting) < MOST:
                self._waiting.append(line)
            else:
                self._left_out += 1
            self._changed.notify_all()
            self._wait()

    def flush(self) -> None:
        """Wait for what waits to be written, unless the log hangs."""
        with self._changed:
            self._wait()

    def _wait(self) -> None:
        if not self._hangs:
            self._hangs = not self._changed.wait_for(lambda: not self._waiting, PATIENCE)

    def _write(self) -> None:
        changed = self._changed
        while True:
            with changed:
                changed.wait_for(lambda: bool(self._waiting))
                line = self._waiting[0]
            with contextlib.suppress(OSError, ValueError):  # a full disk takes the line, and nothing else
                self._stream.write(f"{line}\n")
                self._stream.flush()
            with changed:
                self._waiting.popleft()
                if not self._waiting:
                    self._hangs = False
                    if self._left_out:
                        text = f"{self._left_out} lines were left out while the log could not be written"
                        self._waiting.append(
                            self.format(logging.makeLogRecord({"msg": text, "name": "log", "levelname": "WARNING"}))
                        )
                        self._left_out = 0
                changed.notify_all()
