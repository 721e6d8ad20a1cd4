"""The watch over the ranks of parallel jobs that run: samples come in, what they say of a hang goes to the engine as an event."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.report.hung import suspected
from lavad.core.job.job import Attempt, Suspect
from lavad.core.lang.asks import Refused
from lavad.core.lang.states import OVER
from lavad.core.plan.volatile import SoftUpdate
from lavad.core.rules import hang
from lavad.engine import Committed, Engine

log = logging.getLogger(__name__)

LONGEST_PAUSE = 10.0
FRESH = 3
"""Sample periods after which a silent host's word counts no more."""


class Hangs:
    """Looks at jobs of two ranks or more on whose samples something is to be said; others cost nothing."""

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
        """Jobs that are over, or wait again, are watched no longer."""
        if self._ranks:
            for job in (*committed.finished, *committed.changed):
                if job.run is None or job.outcome is not None:
                    self._ranks.pop(job.key, None)

    async def run(self) -> None:
        """Look again and again."""
        while self._seconds:
            await asyncio.sleep(min(LONGEST_PAUSE, max(0.5, self._seconds / 10)))
            found = self._look()
            if found:
                try:
                    await self._engine.ask(lambda cluster, now, found=found: _decide(cluster, now, found))  # type: ignore[misc]
                except Refused as refusal:
                    log.warning("hung ranks: %s", refusal)

    def _look(self) -> dict[int, tuple[int, tuple[Suspect, ...]]]:
        """Job to attempt and suspects, where they are others than before."""
        now = self._clock()
        rows = self._engine.cluster.jobs.rows
        found = {}
        for key, (attempt, ranks) in list(self._ranks.items()):
            job = rows.get(key)
            run = job.run if job is not None else None
            if run is None:
                del self._ranks[key]
                continue
            if run.number != attempt or run.tasks:
                continue  # tasks of several roles are not alike: that one waits says nothing
            suspects = self._judge(run, ranks, now)
            if suspects and self._engine.cluster.specs.rows[job.spec].roles:  # type: ignore[union-attr]
                # Roles differ in what they do: one that waits while another works is as it should be.
                suspects = tuple(suspect for suspect in suspects if suspect.how == "stopped")
            if suspects is not None and _names(suspects) != _names(run.suspects):
                found[key] = (attempt, suspects)
        return found

    def _judge(self, run: Attempt, ranks: hang.Ranks, now: float) -> tuple[Suspect, ...] | None:
        """None: nothing can be said."""
        if any(part.stopped or part.end is not None for part in run.parts):
            return None
        hosts = {part.host for part in run.parts if part.state not in OVER}
        hang.forget(ranks, hosts)
        if {rank.host for rank in ranks.values()} != hosts:
            return None
        if min(rank.heard for rank in ranks.values()) < now - FRESH * self._sample - LONGEST_PAUSE:
            return None
        suspects = hang.judge(ranks, now, self._seconds)
        return run.suspects if not suspects and run.suspects and hang.goes_on(ranks, run.suspects) else suspects


def _names(suspects: tuple[Suspect, ...]) -> list[tuple[int, str]]:
    return [(suspect.rank, suspect.how) for suspect in suspects]


def _decide(cluster: Cluster, now: float, found: dict[int, tuple[int, tuple[Suspect, ...]]]) -> Decided:
    events: list[ev.Event] = []
    for key, (attempt, suspects) in found.items():
        events += suspected(cluster, key, attempt, suspects, now)
    return Decided(events=events)
