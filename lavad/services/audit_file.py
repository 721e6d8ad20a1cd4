"""Where audit entries go: a file, one JSON object a line, or syslog. A thread of its own writes, so that a full or slow disk
holds up nothing: entries wait in memory up to a limit, and those beyond it are counted."""

from __future__ import annotations

import logging
import logging.handlers
import os
import queue
import threading

import msgspec

log = logging.getLogger(__name__)

WAITING = 20_000
"""Entries that wait for the disk at most."""
LARGEST, KEPT = 64 << 20, 10
"""Bytes after which the file becomes FILE.1, and how many of those are kept."""
PAUSE = 1.0
AT_ONCE = 500
SYSLOG = "syslog"
_encode = msgspec.json.Encoder(enc_hook=str).encode


class AuditFile:
    """``target``: a path, or ``syslog``."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._entries: queue.Queue[dict[str, object] | None] = queue.Queue(WAITING)
        self._lost = 0
        self._descriptor = -1
        self._failing = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def put(self, entry: dict[str, object]) -> None:
        """Write an entry soon; never waits."""
        try:
            self._entries.put_nowait(entry)
        except queue.Full:
            self._lost += 1

    def close(self, seconds: float = 2.0) -> None:
        """Write what waits, for so many seconds at most."""
        self._closing.set()
        try:
            self._entries.put_nowait(None)
        except queue.Full:
            pass
        self._thread.join(seconds)

    def _run(self) -> None:
        send = self._to_syslog if self._target == SYSLOG else self._to_file
        ended = False
        while not ended:
            found = [self._entries.get()]
            while len(found) < AT_ONCE and not self._entries.empty():
                found.append(self._entries.get_nowait())
            ended = None in found
            lines = [_encode(entry) + b"\n" for entry in found if entry is not None]
            if self._lost:
                lost, self._lost = self._lost, 0
                lines.append(_encode({"lost_entries": lost}) + b"\n")
            if lines:
                send(lines)
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def _to_file(self, lines: list[bytes]) -> None:
        """Write all of it, however long that takes: a line that was begun is ended when there is room again."""
        left = b"".join(lines)
        while left:
            try:
                self._open()
                left = left[os.write(self._descriptor, left) :]
                self._failing = False
            except OSError as error:
                if not self._failing:
                    log.error("audit file %s: %s; entries wait", self._target, error.strerror or error)
                self._failing = True
                if self._closing.wait(PAUSE):
                    return
        if os.fstat(self._descriptor).st_size > LARGEST:
            self._rotate()

    def _open(self) -> None:
        """The file of this name: also after somebody has moved it away."""
        if self._descriptor >= 0:
            mine = os.fstat(self._descriptor)
            try:
                there = os.stat(self._target)
            except FileNotFoundError:
                there = None
            if there is not None and (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino):
                return
            os.close(self._descriptor)
            self._descriptor = -1
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(self._target, flags, 0o600)

    def _rotate(self) -> None:
        try:
            for number in range(KEPT - 1, 0, -1):
                if os.path.exists(f"{self._target}.{number}"):
                    os.replace(f"{self._target}.{number}", f"{self._target}.{number + 1}")
            os.replace(self._target, f"{self._target}.1")
        except OSError as error:
            log.error("audit file %s is not moved away: %s", self._target, error.strerror or error)

    def _to_syslog(self, lines: list[bytes]) -> None:
        try:
            handler = logging.handlers.SysLogHandler("/dev/log", logging.handlers.SysLogHandler.LOG_AUTHPRIV)
        except OSError as error:
            if not self._failing:
                log.error("audit by syslog: %s; entries are lost until it is there", error.strerror or error)
            self._failing = True
            return
        self._failing = False
        for line in lines:
            text = f"lavad-audit: {line.decode().rstrip()}"
            handler.emit(logging.LogRecord("audit", logging.INFO, "", 0, text, None, None))
        handler.close()
