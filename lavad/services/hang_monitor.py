"""Watches the ranks of running parallel jobs: collects their samples and asks the engine to name those that hang."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from lavad.committed import Committed
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.report.hung import name_suspects
from lavad.core.lang.asks import Refused
from lavad.core.lang.states import OVER
from lavad.core.plan.volatile import SoftUpdate
from lavad.core.rules import hang
from lavad.engine import Engine

log = logging.getLogger(__name__)

LONGEST_PAUSE = 10.0
FRESH = 3
"""Sample periods after which the samples of a silent host are ignored."""


class Hangs:
    """Jobs with at least two ranks are watched; others cost nothing."""

    def __init__(self, engine: Engine, clock: Callable[[], float], seconds: float, sample: float) -> None:
        self._engine = engine
        self._clock = clock
        self._seconds = seconds
        self._sample = sample
        self._ranks: dict[int, tuple[int, hang.Ranks]] = {}

    def take(self, news: SoftUpdate) -> None:
        """Samples of a host."""
        if not self._seconds:
            return
        now = self._clock()
        for host, usage in news.usage:
            if not usage.tasks or usage.tasks[-1].rank < 0:
                continue
            known = self._ranks.get(usage.key)
            if known is None or known[0] < usage.attempt:
                known = self._ranks[usage.key] = (usage.attempt, {})
            if known[0] == usage.attempt:
                hang.take(known[1], host, usage, now)

    def committed(self, committed: Committed) -> None:
        """Stop watching jobs that ended or wait again."""
        if self._ranks:
            for job in (*committed.finished, *committed.changed):
                if job.run is None or job.outcome is not None:
                    self._ranks.pop(job.key, None)

    async def run(self) -> None:
        """Look at regular intervals."""
        while self._seconds:
            await asyncio.sleep(min(LONGEST_PAUSE, max(0.5, self._seconds / 10)))
            self._forget_ended()
            if self._name_suspects(self._engine.cluster, self._clock()).events:
                try:
                    await self._engine.ask(self._name_suspects)
                except Refused as refusal:
                    log.warning("hung ranks: %s", refusal)

    def _forget_ended(self) -> None:
        """Drop jobs that no longer run, and ranks that no longer exist."""
        rows = self._engine.cluster.jobs.rows
        for key, (_, ranks) in list(self._ranks.items()):
            job = rows.get(key)
            if job is None or job.run is None:
                del self._ranks[key]
            else:
                hang.forget(ranks, {part.host for part in job.run.parts if part.state not in OVER})

    def _name_suspects(self, cluster: Cluster, now: float) -> Decided:
        return name_suspects(cluster, self._ranks, now, self._seconds, FRESH * self._sample + LONGEST_PAUSE)
