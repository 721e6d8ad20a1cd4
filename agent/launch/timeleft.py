"""LAVA_TIME_LEFT_FILE: a file for each part that says when it must end, for programs that do not ask by a command.

Rule: one line with the end in seconds of the epoch; empty where there is none. It is replaced whole, when the end changes. A file
of a part that is over, which was empty all the time, is given to the next one: making and removing a name is expensive. Making a
file is more so, most of all where many were removed (ext4 passes over their inodes for minutes): parts with the same end, as
those that one bkill ends, have hard links to one file.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Mapping

from agent.launch.hostfiles import HostFiles
from proto.whole_file import replace_file

VARIABLE = "LAVA_TIME_LEFT_FILE"
MOVED = 1.0
"""Seconds by which the end must have moved for the file to be written again."""
MOST_SPARE = 256
log = logging.getLogger("lava-agent")


def path_of(folder: str, uid: str) -> str:
    """A new file for a part. ``folder``: where its host files are."""
    return f"{folder}/{uid}.end"


class TimeLeft:
    """The files of all parts."""

    def __init__(self, files: HostFiles) -> None:
        self._files = files
        self._folder = files.folder
        self._told: dict[str, float] = {}
        """Uid to the end in its file (CLOCK_BOOTTIME); a part without an end has none here."""
        self._paths: dict[str, str] = {}
        """Uid to its file."""
        self._empty: set[str] = set()
        """Parts whose file is a link of the empty one, made in this period."""
        self._spare: list[str] = []
        """Such files of parts that are over."""
        self._newest = "", ""
        """What was written last, and the file, which still says that; "": none."""
        self._period = files.period()

    def adopt(self, paths: Mapping[str, str]) -> None:
        """After a restart of the agent: the files of parts, by uid; "": that of the uid, by an older agent."""
        self._paths |= {uid: path or path_of(self._folder, uid) for uid, path in paths.items()}

    def path(self, uid: str) -> str:
        """The file of a part that is here."""
        return self._paths.get(uid, "")

    def begin(self, uid: str, ends: float | None) -> str:
        """Before a part starts: the path of its file, which is there.

        Those of parts without an end are links of one empty file: a new file is dearer than all else that a start needs.
        """
        self._drop_old()
        if ends is None and self._spare:
            path = self._spare.pop()
            self._empty.add(uid)
        else:
            path = path_of(self._folder, uid)
            if ends is not None:
                self._told[uid] = ends
                self._write(path, _line(ends))
            elif _linked(self._files.empty(), path):
                self._empty.add(uid)
            else:
                self._write(path, _line(ends))
        self._paths[uid] = path
        return path

    def _drop_old(self) -> None:
        """Old files are removed some day (``HostFiles.old``): those of former periods are given to nobody."""
        if self._period != self._files.period():
            self._period = self._files.period()
            self._empty.clear()
            for path in self._spare:
                _remove(path)
            self._spare.clear()

    def tell(self, uid: str, ends: float | None) -> None:
        """The part must end at ``ends`` (CLOCK_BOOTTIME); None: it need not."""
        told, path = self._told.get(uid), self._paths.get(uid)
        if path is None or (ends is None and told is None):
            return
        if ends is not None and told is not None and abs(ends - told) < MOVED:
            return
        self._empty.discard(uid)
        try:
            self._write(path, _line(ends))
        except OSError as error:
            # a full disk keeps this from the job, and nothing else: what ends it goes on
            log.warning("%s is not written: %s", path, error.strerror)
            return
        if ends is None:
            del self._told[uid]
        else:
            self._told[uid] = ends

    def _write(self, path: str, line: str) -> None:
        """Write a file again."""
        (newest, like), temporary = self._newest, path + ".link"
        if line == newest and path != like and _linked(like, temporary):
            os.replace(temporary, path)
        else:
            replace_file(path, line)
        self._newest = line, path

    def over(self, uid: str) -> None:
        """The part is over: its file goes, or waits for the next part. One that has none, or none any more, changes nothing."""
        self._told.pop(uid, None)
        path = self._paths.pop(uid, None)
        if path is None:
            return
        if path == self._newest[1]:
            self._newest = "", ""
        if uid in self._empty:
            self._empty.remove(uid)
            if len(self._spare) < MOST_SPARE:
                self._spare.append(path)
                return
        _remove(path)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _linked(file: str, path: str) -> bool:
    """Give a file one more name; False where the file system or the name does not allow it."""
    try:
        os.link(file, path)
    except OSError:
        return False
    return True


def _line(ends: float | None) -> str:
    """What the file says; ``ends`` as in ``tell``."""
    return "" if ends is None else f"{time.time() + ends - time.clock_gettime(time.CLOCK_BOOTTIME):.0f}\n"
