"""Ends jobs whose user neither their host nor the master's host knows.

Rule: that one host has no such user may be an outage there, so such a job goes elsewhere, unless the directory, asked from here,
denies the user too. Where it gives no answer, nothing ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable

from lavad.committed import Committed
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.report.ending import NO_USER, without_user
from lavad.core.lang.asks import Refused
from lavad.engine import Engine
from lavad.requests import Decide
from proto.daemon.workers import Workers
from proto.names import Entry, NoAnswer, find_user

WAIT = 20.0
"""Seconds that the directory has for an answer."""
log = logging.getLogger(__name__)


class UnknownUsers:
    """Looks up the users of jobs that a host refused for them."""

    def __init__(self, engine: Engine, find: Callable[[str], Entry | None] = find_user, wait: float = WAIT) -> None:
        self._engine = engine
        self._find = find
        self._wait = wait
        self._directory = Workers("users of refused jobs", 2, 1)
        self._refused: asyncio.Queue[int] = asyncio.Queue()

    def committed(self, committed: Committed) -> None:
        """Listener of the engine."""
        for event in committed.events if ev.PartRefused in committed.kinds else ():
            if isinstance(event, ev.PartRefused) and event.code == NO_USER:
                self._refused.put_nowait(event.key)

    async def run(self) -> None:
        """Serve for ever."""
        while True:
            await self.turn()

    async def turn(self) -> None:
        """Wait for refused jobs, and judge them."""
        keys = [await self._refused.get()]
        while not self._refused.empty():
            keys.append(self._refused.get_nowait())
        jobs: dict[str, list[int]] = defaultdict(list)
        cluster = self._engine.cluster
        for key in keys:
            if key in cluster.jobs.rows:
                jobs[cluster.spec_of(key).user].append(key)
        await asyncio.gather(*(self._judge(user, own) for user, own in jobs.items()))

    async def _judge(self, user: str, keys: list[int]) -> None:
        try:
            async with asyncio.timeout(self._wait):
                known = await self._directory.run(self._find, user, who=user)
        except (NoAnswer, TimeoutError) as error:
            log.warning("user %s cannot be looked up now: %s", user, error or "no answer")
            return
        if known is None:
            try:
                await self._engine.hand_in([_ending(key) for key in keys])
            except Refused as refusal:
                log.warning("%s", refusal)


def _ending(key: int) -> Decide:
    def decide(cluster: Cluster, now: float) -> Decided:
        return Decided(events=without_user(cluster, key, now))

    return decide
