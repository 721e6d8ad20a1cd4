"""LAVA_TIME_LEFT_FILE: a file for each part that says when it must end, for programs that do not ask by a command.

Rule: one line with the end in seconds of the epoch; empty where there is none. It is replaced whole, when the end changes.
"""

from __future__ import annotations

import contextlib
import os
import time

from agent.launch.hostfiles import HostFiles, replace_file

VARIABLE = "LAVA_TIME_LEFT_FILE"
MOVED = 1.0
"""Seconds by which the end must have moved for the file to be written again."""


def path_of(folder: str, uid: str) -> str:
    """The file of a part. ``folder``: where its host files are."""
    return os.path.join(folder, f"{uid}.end")


class TimeLeft:
    """The files of all parts."""

    def __init__(self, files: HostFiles) -> None:
        self._files = files
        self._folder = files.folder
        self._told: dict[str, float] = {}
        """Uid to the end in its file (CLOCK_BOOTTIME); a part without an end has none here."""

    def begin(self, uid: str, ends: float | None) -> None:
        """Before a part starts: it finds its file.

        Those of parts without an end are links of one empty file: a new file is dearer than all else that a start needs.
        """
        path = path_of(self._folder, uid)
        if ends is not None:
            self._told[uid] = ends
        elif _linked(self._files.empty(), path):
            return
        write(path, ends)

    def tell(self, uid: str, ends: float | None) -> None:
        """The part must end at ``ends`` (CLOCK_BOOTTIME); None: it need not."""
        told = self._told.get(uid)
        if ends is None and told is None:
            return
        if ends is not None and told is not None and abs(ends - told) < MOVED:
            return
        if ends is None:
            del self._told[uid]
        else:
            self._told[uid] = ends
        write(path_of(self._folder, uid), ends)

    def over(self, uid: str) -> None:
        """The part is over: its file goes."""
        self._told.pop(uid, None)
        with contextlib.suppress(OSError):
            os.unlink(path_of(self._folder, uid))


def _linked(file: str, path: str) -> bool:
    """Give a file one more name; False where the file system or the name does not allow it."""
    try:
        os.link(file, path)
    except OSError:
        return False
    return True


def write(path: str, ends: float | None) -> None:
    """Write the file anew; ``ends`` as in ``tell``."""
    replace_file(path, "" if ends is None else f"{time.time() + ends - time.clock_gettime(time.CLOCK_BOOTTIME):.0f}\n")
