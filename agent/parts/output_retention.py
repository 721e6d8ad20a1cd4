"""Output that no file was named for, and job files that were left: removed when they are old.

Rule: the folder of a user is the user's: nothing in it is followed, and only what has the name of such a file is removed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Container

DAYS = 7.0
_OURS = re.compile(r"[0-9]+(\.[0-9]+)?\.(out|err)|[0-9]+\.[0-9]+(\.[0-9]+)?\.[0-9]+\.[0-9]+\.shell")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def days(setting: str) -> float:
    """LAVA_OUTPUT_DAYS: for how long output is kept; 0 is for good."""
    try:
        return max(0.0, float(setting))
    except ValueError:
        return DAYS


def clean(folder: str, before: float, in_use: Container[str]) -> int:
    """Remove what was last written before a time and is not ``in_use`` (full paths); how many files went."""
    removed = 0
    try:
        users = [entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return 0
    for user in users:
        path = os.path.join(folder, user)
        try:
            fd = os.open(path, _FOLDER)
        except OSError:
            continue
        try:
            removed += sum(_remove(fd, name, before) for name in os.listdir(fd) if os.path.join(path, name) not in in_use)
        finally:
            os.close(fd)
    return removed


def _remove(folder: int, name: str, before: float) -> bool:
    if not _OURS.fullmatch(name):
        return False
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode) or found.st_mtime >= before:
            return False
        os.unlink(name, dir_fd=folder)
    except OSError:
        return False
    return True
