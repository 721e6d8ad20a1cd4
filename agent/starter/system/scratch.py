"""Scratch folders of tasks: a folder of the user's own for each task, the same again when the task starts again.

Rule: the caller is the user; a folder that is somebody else's, or that others may write to, is not used.
"""

from __future__ import annotations

import os
import shutil
import stat


def make(path: str) -> str:
    """Make the folder, and the one around it; why it cannot be, "" when it is there."""
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
    """Make one folder that nobody else may enter; what an earlier attempt left in it stays. Why not, "" when it is there."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            return f"{path} is not a folder of the user's own"
    except (OSError, ValueError) as e:
        return f"{path}: {getattr(e, 'strerror', None) or e}"
    return ""


def remove(path: str) -> None:
    """Remove it with all in it."""
    shutil.rmtree(path, ignore_errors=True)
