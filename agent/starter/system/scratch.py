"""Scratch folders of tasks: one for each task, the same when the task is restarted.

Rule: the caller runs as the user; a folder of another user, or one that others may write to, is not used.
"""

from __future__ import annotations

import os
import shutil
import stat


def make(path: str) -> str:
    """Make the folder and its parent; returns the reason why that fails, "" on success."""
    for folder in (os.path.dirname(path), path):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        except OSError as e:
            return e.strerror or str(e)
        try:
            found = os.lstat(folder)
        except OSError as e:
            return e.strerror or str(e)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            return f"{folder} is not a folder of the user's own"
    return ""


def make_own(path: str) -> str:
    """Make a folder that nobody else may enter, or keep the one of an earlier attempt: its path. OSError, ValueError.

    Where somebody else has put something there (in /tmp anybody can), it is another folder beside it, whose name nobody knows.
    """
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            path = f"{path}.{os.urandom(8).hex()}"  # tempfile would seed its random numbers again in every fork of the starter
            os.mkdir(path, 0o700)
    return path


def remove(path: str) -> None:
    """Remove the folder with everything in it; errors are ignored."""
    shutil.rmtree(path, ignore_errors=True)
