"""Folders of a job's own that another user has put, before the job came, where anybody can put one, as in /tmp.

Rule: what is in them is that user's: links in the place of the job's files, checkpoints that are programs. A folder that others
may write to within one that not everybody may write to is the site's or a group's affair.
"""

from __future__ import annotations

import os
import stat


def find_foreign(path: str) -> str:
    """The folder, or one on the way to it that everybody may write to, of which this is so; "": there is none. OSError."""
    path = os.path.abspath(path)
    if _is_public(os.stat(os.path.dirname(path))) and not _is_ours(os.lstat(path)):
        return path
    at, public, names = "/", False, os.path.realpath(path).split("/")[1:]
    for number, name in enumerate(names, 1):
        at = os.path.join(at, name)
        found = os.lstat(at)
        if public and not _is_ours(found) and (number == len(names) or _is_public(found)):
            return at
        public = _is_public(found)
    return ""


def _is_public(found: os.stat_result) -> bool:
    return bool(found.st_mode & stat.S_IWOTH)


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid in (0, os.getuid())


def why_foreign(path: str) -> str:
    """Why such a folder is not used, in a line; "" where it may be. OSError."""
    found = find_foreign(path)
    return f"{found} is another user's, in a folder where anybody may put one" if found else ""
