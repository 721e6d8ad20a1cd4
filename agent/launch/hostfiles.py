"""Host and rank files of jobs, named by their content: jobs on the same hosts share one, written once."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence

from agent.launch.launchers import slots_text

OLD = 7 * 86400


class HostFiles:
    """The folder of these files; every user may read them."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._known: dict[tuple[str, ...], tuple[str, str]] = {}
        self._written: set[str] = set()
        os.makedirs(folder, mode=0o755, exist_ok=True)

    @property
    def folder(self) -> str:
        """Where they are."""
        return self._folder

    def of(self, slots: Sequence[str]) -> tuple[str, str]:
        """(LSB_DJOB_HOSTFILE, LSB_DJOB_RANKFILE) for a list with one host name a slot.

        The rank file names the launching host first, once more, as LSF's does.
        """
        key = tuple(slots)
        found = self._known.get(key)
        if found is None:
            hosts = "".join(f"{host}\n" for host in key)
            stem = os.path.join(self._folder, hashlib.sha256(hosts.encode()).hexdigest()[:32])
            found = (stem + ".hosts", stem + ".ranks")
            replace_file(found[0], hosts)
            replace_file(found[1], f"{key[0]}\n{hosts}" if key else "")
            self._known[key] = found
        return found

    def slots_of(self, slots: Sequence[str]) -> str:
        """The file with ``host slots=N`` lines, as Open MPI reads it, beside those of ``of``."""
        return self._beside(slots, ".slots", slots_text)

    def colons_of(self, slots: Sequence[str]) -> str:
        """The file with ``host:N`` lines, as MPICH and Intel MPI read it."""
        return self._beside(slots, ".colons", lambda slots: slots_text(slots).replace(" slots=", ":"))

    def _beside(self, slots: Sequence[str], ending: str, text: Callable[[Sequence[str]], str]) -> str:
        path = self.of(slots)[0].removesuffix(".hosts") + ending
        if path not in self._written:
            replace_file(path, text(slots))
            self._written.add(path)
        return path

    def affinity(self, lines: str) -> str:
        """LSB_AFFINITY_HOSTFILE: a file with one line a task."""
        path = os.path.join(self._folder, hashlib.sha256(lines.encode()).hexdigest()[:32] + ".affinity")
        if path not in self._written:
            replace_file(path, lines)
            self._written.add(path)
        return path

    def drop_old(self, in_use: frozenset[str], now: float | None = None) -> None:
        """Remove files that nobody has needed for a week."""
        limit = (time.time() if now is None else now) - OLD
        for entry in os.scandir(self._folder):
            if entry.path not in in_use and entry.stat(follow_symlinks=False).st_mtime < limit:
                os.unlink(entry.path)


def replace_file(path: str, text: str, mode: int = 0o644) -> None:
    """Write a file so that nobody ever sees a part of it."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        os.fchmod(file.fileno(), mode)
    os.replace(temporary, path)
