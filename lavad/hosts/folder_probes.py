"""Whether hosts see the same folder: a command writes a file there as its user, and agents look for it as that user.

Rule: only the command that has written the file waits, at most WITHIN; the engine decides with what is known then. That is kept
for each file system and kind of host, in memory, for a while, and counts for jobs of that user alone: who writes files on several
hosts can make it what they like.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import posixpath
import re
import time
from collections.abc import Callable, Iterable

from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.asks import Submit
from lavad.core.lang.bulk_asks import BulkJob
from lavad.core.rules.checkpoint_folder import Pair, is_below, kind_of, pair_of
from lavad.hosts.peek_requests import NoOutput, PeekRequests
from lavad.hosts.sessions import Sessions
from lavad.wire.records import Peek

WITHIN = 4.0
"""Seconds that a command waits at most."""
ANSWER = 1.5
"""Seconds until a host that was asked does not tell."""
AGAIN = (0.3, 1.0)
"""Seconds before a file that a host does not find is looked for again: a network file system may be late."""
AGE = {True: 600.0, False: 60.0, None: 60.0}
"""Seconds until it is looked again: where hosts see the same, do not, or did not tell."""
MOST = 16
"""Hosts that are asked at once."""
MOST_KNOWN = 4096
MOST_FILES = 16
"""Files of one command that are looked for."""
_NAME = re.compile(r"\.lava\.[0-9a-f]+\.tmp")
_MISSING = ("No such file or directory", "Not a directory")


class FolderProbes:
    """``clock``: seconds that never go back."""

    def __init__(
        self, cluster: Cluster, sessions: Sessions, peeks: PeekRequests, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cluster = cluster
        self._sessions = sessions
        self._peeks = peeks
        self._clock = clock
        self._known: dict[tuple[str, Pair], tuple[bool | None, float]] = {}
        """Whether a user sees the same on two kinds of hosts, None: they did not tell; and until when that counts."""
        self._looking: dict[tuple[str, str], asyncio.Task[None]] = {}
        """The look that is under way, by user and mount."""

    def seen(self, user: str) -> dict[Pair, bool]:
        """What is known now of what a user sees."""
        now, known = self._clock(), self._known.items()
        return {pair: same for (whose, pair), (same, until) in known if whose == user and same is not None and until > now}

    async def look_for(self, asked: Iterable[Submit | BulkJob], user: str, host: str) -> None:
        """The user's command on a host has written their ``checkpoint_probe``: have those looked for that are not known yet."""
        written = dict.fromkeys((ask.checkpoint_probe, ask.checkpoint_mount) for ask in asked if ask.checkpoint_probe)
        if not written:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WITHIN):
                for path, mount in itertools.islice(written, MOST_FILES):
                    await self._look_for(path, mount, user, host)

    async def _look_for(self, path: str, mount: str, user: str, host: str) -> None:
        whole = path.startswith("/") and not path.startswith("//") and posixpath.normpath(path) == path
        if not (whole and mount and is_below(path, mount) and _NAME.fullmatch(posixpath.basename(path))):
            return
        key = user, mount
        if key not in self._looking:
            hosts = self._unknown(path, mount, user, host)
            if len(hosts) < 2:
                return
            task = asyncio.create_task(self._look(path, mount, user, host, hosts))
            self._looking[key] = task
            task.add_done_callback(lambda _: self._looking.pop(key, None))
        await asyncio.wait([self._looking[key]])

    def _unknown(self, path: str, mount: str, user: str, first: str) -> list[str]:
        """Hosts to ask: two of each kind, that of the caller first, if any two of them are not known to each other."""
        kinds: dict[str, list[str]] = {}
        names = sorted(self._sessions.rows, key=lambda name: (name != first, name))
        asked: list[str] = []
        for name in names:
            row = self._cluster.hosts.rows.get(name)
            if row is not None and len(same := kinds.setdefault(kind_of(row, path), [])) < 2:
                same.append(name)
                asked.append(name)
            if len(asked) == MOST:
                break
        now = self._clock()
        wanted = {pair_of(mount, *pair) for pair in itertools.combinations(kinds, 2)}
        wanted |= {pair_of(mount, kind, kind) for kind, same in kinds.items() if len(same) > 1}
        return [] if all(self._known.get((user, pair), (None, 0.0))[1] > now for pair in wanted) else asked

    async def _look(self, path: str, mount: str, user: str, host: str, hosts: list[str]) -> None:
        rows = self._cluster.hosts.rows
        kinds = {name: kind_of(rows[name], path) for name in hosts}
        found = dict(zip(hosts, await asyncio.gather(*(self._finds(name, path, user) for name in hosts)), strict=True))
        seeing = [name for name in hosts if found[name]]
        for pause in AGAIN:
            late = [name for name in hosts if found[name] is False]
            if not (late and seeing):
                break
            await asyncio.sleep(pause)
            found |= zip(late, await asyncio.gather(*(self._finds(name, path, user) for name in late)), strict=True)
        seeing = [name for name in hosts if found[name]]
        witness = host if host in found else next(iter(seeing), "")
        # the command, which is not trusted, may have removed it meanwhile
        sure = bool(witness) and bool(await self._finds(witness, path, user))
        for one, other in itertools.combinations(hosts, 2):
            same = None
            if sure and (found[one] or found[other]) and None not in (found[one], found[other]):
                same = bool(found[one] and found[other])
            self._keep(user, pair_of(mount, kinds[one], kinds[other]), same)

    def _keep(self, user: str, pair: Pair, same: bool | None) -> None:
        now = self._clock()
        known, until = self._known.get((user, pair), (None, 0.0))
        if same is None and known is not None and until > now:
            return
        if len(self._known) >= MOST_KNOWN:
            self._known = {key: one for key, one in self._known.items() if one[1] > now}
        if len(self._known) < MOST_KNOWN:
            self._known[user, pair] = same, now + AGE[same]

    async def _finds(self, host: str, path: str, user: str) -> bool | None:
        """Whether the user sees a file on a host; None: the host does not tell."""
        session = self._sessions.rows.get(host)
        if session is None:
            return None
        try:
            async with asyncio.timeout(ANSWER):
                await self._peeks.read(session, Peek(key=0, uid="", user=user, path=path))
        except NoOutput as error:
            return False if str(error).endswith(_MISSING) else None
        except TimeoutError:
            return None
        return True
