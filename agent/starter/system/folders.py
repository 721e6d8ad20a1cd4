"""Folders that a daemon trusts: those that nobody else can put anything into.

Rule: root's daemons use root's folders only. A folder of another account is that account's way to root: it can put links,
sockets and journals there.
"""

from __future__ import annotations

import os
import stat


class NotOwn(Exception):
    """Why a folder is not to be trusted, in one line."""


def make_own(path: str, mode: int = 0o755) -> None:
    """Make the folder where there is none. Raises NotOwn where others may write to it, OSError where it cannot be made."""
    os.makedirs(path, mode=mode, exist_ok=True)
    found = os.stat(path)
    if found.st_uid not in (0, os.geteuid()):
        raise NotOwn(
            f"{path} belongs to user {found.st_uid}, who could give this daemon's account anything: it must be root's"
            " (docs/operations.md says how folders of an older version are moved)"
        )
    if stat.S_IMODE(found.st_mode) & 0o022:
        raise NotOwn(f"{path} has mode {stat.S_IMODE(found.st_mode):04o}: others than its owner may write to it")


def make_own_in(above: str, name: str) -> str:
    """A folder of this daemon alone in another one, where nobody can put another in its place; its path. As ``make_own``."""
    os.makedirs(above, exist_ok=True)
    found = os.stat(above)
    if found.st_uid not in (0, os.geteuid()) or (found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX):
        mode = stat.S_IMODE(found.st_mode)
        raise NotOwn(
            f"{above} belongs to user {found.st_uid} and has mode {mode:04o}: others could give what is in it another name"
        )
    path = os.path.join(above, name)
    make_own(path, 0o700)
    return path
