"""The lock file beside a SQLite store. Rule: one process writes a store; the lock dies with its process."""

from __future__ import annotations

import fcntl
import os
import socket

from lavad.store.errors import StoreHeld, StoreRefused


class FileLock:
    """An exclusive lock on ``path``.lock, held until ``release``."""

    def __init__(self, path: str) -> None:
        self.path = f"{path}.lock"
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreRefused(f"store {path}: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._file, 200, 0).decode(errors="replace").strip()
            os.close(self._file)
            raise StoreHeld(f"store {path} is in use by lavad ({holder or 'holder unknown'})") from error
        self._sign()

    def _sign(self) -> None:
        """Say who holds it; only a courtesy, so a full disk does not matter."""
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        except OSError:
            pass

    def release(self) -> None:
        """Give the lock back; the file stays, as removing it would let two processes hold two files of one name."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
