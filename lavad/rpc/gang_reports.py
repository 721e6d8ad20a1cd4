"""Reports of many hosts about one large job, which come one by one and wait for a turn of the engine: one request for all.

Rule: a report joins a request only if it comes after all that its host has reported before, and once; else its host hands it in
by itself. Where the request fails, each host hands in its own again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.report.gang import concerns_job, decide_told, decide_whole, is_of_gang
from lavad.core.job.reports import PartReport
from lavad.engine import Engine
from proto.answers import Answer

MOST = 256
"""Reports in a request, which takes less than a turn's slice of the master."""


@dataclass(eq=False)
class Gathered:
    """Reports of one kind about one attempt. ``number``: requests are decided in this order."""

    number: int
    key: int
    uid: str
    by_host: dict[str, PartReport] = field(default_factory=dict)
    closed: bool = False
    answer: asyncio.Future[list[Answer]] = field(init=False)

    def takes(self, report: PartReport, last: Gathered | None) -> bool:
        """Whether it can have one more, of a host whose last reports that are under way are in ``last``."""
        if self.closed or self.answer.done() or len(self.by_host) >= MOST or report.host in self.by_host:
            return False
        return last is None or last.number < self.number

    def decide(self, cluster: Cluster, now: float) -> Decided:
        """What becomes of the parts; no more reports are taken."""
        self.closed = True
        return Decided(events=decide_told(cluster, self.by_host.values(), now))

    def follow(self, cluster: Cluster, now: float) -> Decided:
        """What follows for the job."""
        return Decided(events=decide_whole(cluster, self.key, self.uid, now))


class GangReports:
    """Those of all jobs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open: dict[tuple[str, type[PartReport]], Gathered] = {}
        self._count = 0

    def join(self, report: PartReport, last: Gathered | None) -> Gathered | None:
        """The request that a report is part of now; None where its host is to hand it in by itself.

        ``last``: with what the host's last reports were handed in, if they are under way; it has no others under way.
        """
        if not is_of_gang(self._engine.cluster, report):
            return None
        kind = report.uid, type(report)
        found = self._open.get(kind)
        if found is None or not found.takes(report, last):
            self._count += 1
            found = self._open[kind] = Gathered(self._count, report.key, report.uid)
            after = None if last is None else last.answer
            steps = [found.decide, found.follow] if concerns_job(report) else [found.decide]
            found.answer = self._engine.hand_in(steps, after=after)
            found.answer.add_done_callback(lambda _: self._over(kind, found))
        found.by_host[report.host] = report
        return found

    def _over(self, kind: tuple[str, type[PartReport]], done: Gathered) -> None:
        if self._open.get(kind) is done:
            del self._open[kind]
