"""Users by name, asked in a thread (a directory service may be slow) and remembered for a minute."""

from __future__ import annotations

import asyncio
import grp
import os
import pwd

from agent.launch.site import User

KEPT = 60.0


class Accounts:
    """The users of this host."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, User | None]] = {}

    def find_known(self, name: str) -> User | None:
        """The user, if kept a short time ago."""
        found = self._known.get(name)
        if found is None or found[0] < asyncio.get_running_loop().time():
            return None
        return found[1]

    def keep(self, user: User) -> None:
        """Remember a user for KEPT seconds, so that jobs start without another look-up."""
        self._known[user.name] = (asyncio.get_running_loop().time() + KEPT, user)

    async def find(self, name: str) -> User | None:
        """The user, None when this host knows none of that name."""
        return await asyncio.to_thread(look_up, name)


def look_up(name: str) -> User | None:
    """Ask the system's databases."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    groups = tuple(os.getgrouplist(name, entry.pw_gid))
    try:
        group = grp.getgrgid(entry.pw_gid).gr_name
    except KeyError:
        group = str(entry.pw_gid)
    return User(entry.pw_name, entry.pw_uid, entry.pw_gid, groups, entry.pw_dir, entry.pw_shell or "/bin/sh", group)
