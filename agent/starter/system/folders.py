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
