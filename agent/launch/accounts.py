"""Users by name, asked in threads of their own, as a directory service may be slow, and remembered for a minute.

Rule: while the directory gives no answer, a user who was known stays known. None means that the directory has no such user.
"""

from __future__ import annotations

import asyncio
import contextlib
import grp
import logging
import os
import time
from collections.abc import Callable

from agent.launch.site import User
from proto.daemon.workers import Workers
from proto.names import NoAnswer, find_user

KEPT = 60.0
WAIT = 20.0
"""Seconds that a start waits for the directory."""
AGAIN = 5.0
"""Seconds after which a directory that gave no answer is asked again."""
log = logging.getLogger("lava-agent")


class Accounts:
    """The users of this host."""

    def __init__(self, wait: float = WAIT, find: Callable[[str], User | None] | None = None) -> None:
        self._look_up = find or look_up
        self._known: dict[str, tuple[float, User]] = {}
        self._wait = wait
        self._away = ""
        self._asking_again: asyncio.Task[None] | None = None
        self.directory = Workers("directory of users", 4, 1)
        """Of calls about one user there is one at a time, so that a name that hangs leaves threads for the others."""

    def find_known(self, name: str) -> User | None:
        """The user, if kept a short time ago."""
        found = self._known.get(name)
        if found is None or found[0] < time.monotonic():
            return None
        return found[1]

    def keep(self, user: User) -> None:
        """Remember a user for KEPT seconds, so that jobs start without another look-up."""
        self._known[user.name] = (time.monotonic() + KEPT, user)

    def learn(self, user: User) -> None:
        """Remember a user for a time when the directory gives no answer."""
        self._known.setdefault(user.name, (0.0, user))

    async def find(self, name: str) -> User | None:
        """The user, None when the directory has none of that name. Raises NoAnswer."""
        try:
            async with asyncio.timeout(self._wait):
                user = await self.directory.run(self._look_up, name, who=name)
        except (NoAnswer, TimeoutError) as error:
            why = str(error) or f"no answer for {self._wait:.0f} s"
            self._is_away(name, why)
            known = self._known.get(name)
            if known is None:
                raise NoAnswer(why) from None
            log.warning("user %s cannot be looked up now: what was known before is used", name)
            return known[1]
        if user is None:
            self._known.pop(name, None)
        return user

    def why_away(self) -> str:
        """Why users cannot be looked up now, "" when they can."""
        return self._away

    def _is_away(self, name: str, why: str) -> None:
        """Ask for a user again and again, until the directory answers."""
        self._away = f"users cannot be looked up: {why}"
        if self._asking_again is None:
            self._asking_again = asyncio.create_task(self._ask_again(name))

    async def _ask_again(self, name: str) -> None:
        while True:
            await asyncio.sleep(AGAIN)
            with contextlib.suppress(NoAnswer):
                await self.directory.run(self._look_up, name)
                break
        log.info("users can be looked up again")
        self._away, self._asking_again = "", None


def look_up(name: str) -> User | None:
    """Ask the system's databases. Raises NoAnswer."""
    entry = find_user(name)
    if entry is None:
        return None
    groups = tuple(os.getgrouplist(name, entry.gid))
    try:
        group = grp.getgrgid(entry.gid).gr_name
    except KeyError:
        group = str(entry.gid)
    return User(entry.name, entry.uid, entry.gid, groups, entry.home, entry.shell or "/bin/sh", group)
