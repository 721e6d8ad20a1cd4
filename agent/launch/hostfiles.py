"""Host and rank files of jobs, named by their content: jobs on the same hosts share one, written once."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections import OrderedDict
from collections.abc import Sequence

from agent.launch.launchers import slots_text
from proto.whole_file import replace_file

OLD = 7 * 86400
FRESH = 86400
"""Seconds until a file that is asked for is written again: one that a part was given is not old as long as the part is here."""
MOST_KNOWN = 4096


class HostFiles:
    """The folder of these files; every user may read them."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._written: OrderedDict[str, float] = OrderedDict()
        """Files and when they were written; one that is not in here, or was long ago, is written again."""
        os.makedirs(folder, mode=0o755, exist_ok=True)

    @property
    def folder(self) -> str:
        """Where they are."""
        return self._folder

    def period(self) -> int:
        """A number that changes when files that were given out before are to be asked for again."""
        return int(time.time() // FRESH)

    def of(self, slots: Sequence[str]) -> tuple[str, str]:
        """(LSB_DJOB_HOSTFILE, LSB_DJOB_RANKFILE) for a list with one host name a slot.

        The rank file names the launching host first, once more, as LSF's does.
        """
        hosts, stem = self._hosts(slots)
        first = f"{slots[0]}\n" if slots else ""
        return self._file(stem + ".hosts", hosts), self._file(stem + ".ranks", first + hosts)

    def slots_of(self, slots: Sequence[str]) -> str:
        """The file with ``host slots=N`` lines, as Open MPI reads it, beside those of ``of``."""
        return self._file(self._hosts(slots)[1] + ".slots", slots_text(slots))

    def colons_of(self, slots: Sequence[str]) -> str:
        """The file with ``host:N`` lines, as MPICH and Intel MPI read it."""
        return self._file(self._hosts(slots)[1] + ".colons", slots_text(slots).replace(" slots=", ":"))

    def affinity(self, lines: str) -> str:
        """LSB_AFFINITY_HOSTFILE: a file with one line a task."""
        return self._file(self._stem(lines) + ".affinity", lines)

    def empty(self) -> str:
        """A file with nothing in it, of which others are links."""
        return self._file(os.path.join(self._folder, "empty"), "")

    def _hosts(self, slots: Sequence[str]) -> tuple[str, str]:
        """The lines of a list, and the files' names but for what tells them apart."""
        lines = "".join(f"{host}\n" for host in slots)
        return lines, self._stem(lines)

    def _stem(self, text: str) -> str:
        return os.path.join(self._folder, hashlib.sha256(text.encode()).hexdigest()[:32])

    def _file(self, path: str, text: str) -> str:
        now = time.time()
        if now >= self._written.get(path, 0.0) + FRESH:
            replace_file(path, text)
            self._written[path] = now
            self._written.move_to_end(path)
            if len(self._written) > MOST_KNOWN:
                self._written.popitem(last=False)
        return path

    def old(self, oldest: float) -> list[str]:
        """What nobody has needed for a week; may run beside the rest. ``oldest``: since when the oldest part is here."""
        limit = min(oldest, time.time()) - OLD
        found: list[str] = []
        with contextlib.suppress(OSError):
            for entry in os.scandir(self._folder):
                with contextlib.suppress(FileNotFoundError):  # of a part that has ended meanwhile, or under its first name
                    if entry.stat(follow_symlinks=False).st_mtime < limit:
                        found.append(entry.path)
        return found

    def drop(self, paths: Sequence[str]) -> None:
        """Remove what was old and has not been written since."""
        for path in paths:
            if path not in self._written or time.time() >= self._written[path] + FRESH:
                with contextlib.suppress(OSError):
                    os.unlink(path)
