"""Output that no file was named for, and job files that were left: removed when they are old.

Rule: the folder of a user is the user's: nothing in it is followed, and only what has the name of such a file is removed.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import stat
from collections.abc import Container, Iterable

from agent.core.kept_output import Finished

HOSTS = ".hosts"
BLOCK = 512
"""Bytes of a block as ``stat`` counts them."""
_OURS = re.compile(r"[0-9]+(\.[0-9]+)?\.(out|err)|[0-9]+\.[0-9]+(\.[0-9]+)?\.[0-9]+\.[0-9]+\.shell")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
            with contextlib.suppress(OSError):  # of a server that is away: the other folders may be elsewhere
                removed += sum(_remove(fd, name, before) for name in os.listdir(fd) if os.path.join(path, name) not in in_use)
        finally:
            os.close(fd)
    return removed


def in_use_anywhere(folder: str, host: str, mine: Iterable[str], before: float) -> set[str]:
    """What jobs of this host (``mine``) and of others that keep output in the same folder use: full paths here.

    Each host leaves its list there. One that was last written ``before`` a time is of a host that is gone, and goes.
    """
    names = os.path.join(folder, HOSTS)
    used = set(mine)
    new = os.path.join(folder, f"{HOSTS}.{host}.new")
    with contextlib.suppress(OSError):
        os.makedirs(names, mode=0o755, exist_ok=True)
        with open(new, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(f"{os.path.relpath(path, folder)}\n" for path in sorted(used))
        os.replace(new, os.path.join(names, host))
    with contextlib.suppress(OSError), os.scandir(names) as others:
        for other in others:
            with contextlib.suppress(OSError), open(other.path, encoding="utf-8", errors="surrogateescape") as file:
                if other.stat().st_mtime >= before:
                    used |= {os.path.join(folder, line.rstrip("\n")) for line in file}
                else:
                    os.unlink(other.path)
    return used


def is_shared(folder: str, host: str) -> bool:
    """Whether other hosts keep output there, too: what seems to be left of finished jobs may be what theirs write now.

    Each host leaves its name there.
    """
    names = os.path.join(folder, HOSTS)
    with contextlib.suppress(OSError):
        os.makedirs(names, mode=0o755, exist_ok=True)
        os.close(os.open(os.path.join(names, host), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
    try:
        return any(name != host for name in os.listdir(names))
    except OSError:
        return True


def left(folder: str) -> list[Finished]:
    """What finished and running jobs have in the folders of their users now, as ``clean`` would remove it."""
    found: list[Finished] = []
    with contextlib.suppress(OSError):
        for user in os.scandir(folder):
            if not user.is_dir(follow_symlinks=False):
                continue
            with contextlib.suppress(OSError), os.scandir(user.path) as files:
                for file in files:
                    if _OURS.fullmatch(file.name) and (size := size_of(file.path)):
                        found.append(Finished(user.name, file.name, size, file.stat(follow_symlinks=False).st_mtime))
    return found


def size_of(path: str) -> int:
    """Bytes that a file takes on its disk; 0 where there is none, or where something else stands there."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return 0
    return found.st_blocks * BLOCK if stat.S_ISREG(found.st_mode) else 0


def remove(folder: str, file: Finished) -> bool:
    """Remove one file that a finished job left."""
    try:
        fd = os.open(os.path.join(folder, file.user), _FOLDER)
    except OSError:
        return False
    try:
        return _remove(fd, file.name, math.inf)
    finally:
        os.close(fd)


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
