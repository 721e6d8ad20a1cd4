"""One lavad of a name: a lock on a file in the run folder, which also holds the name by which the masters' lease knows it.

The lock ends with its process, so whoever has it can take the lease of its predecessor at once. Two lavad that only have the
same host name (of a copied machine) have different files or different boots, and wait for each other's lease.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class RunLocked(Exception):
    """Another lavad of this name runs in the folder; one line."""


class RunLock:
    """Holds ``RUNDIR/NAME.lock``. Raises RunLocked, OSError."""

    def __init__(self, rundir: str, host: str, number: int) -> None:
        path = Path(rundir, f"lavad-{number}.lock" if number > 1 else "lavad.lock")
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise RunLocked(f"{path} is locked: lavad number {number} of {host} runs already") from None
        token = os.pread(self._file, 64, 0).decode("ascii", "replace")
        if len(token) != 32:
            token = secrets.token_hex(16)
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, token.encode(), 0)
        boot = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""
        self.holder = f"{host}/{number} {boot} {token}"
        """This lavad and its predecessors in the folder since the machine was booted, and no other."""

    def release(self) -> None:
        """Let another lavad of this name start."""
        os.close(self._file)
