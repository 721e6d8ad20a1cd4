"""The reports of one host: decided in their order, acknowledged once committed. One that cannot be recorded keeps no other.

Rule: a report that lavad cannot decide, apply or store is tried TRIES times and then set aside: a line of the log has all of it,
``badmin showstatus`` names the host, the part counts as lost where the report would have ended it, and the host forgets it. Where
the store takes nothing at all, reports wait for it; the stream ends only once so many wait that heartbeats would wait behind
them, and the host sends everything again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from lavad.core.decide.base.decided import Decided
from lavad.core.decide.report.report import decide_reports, independent
from lavad.core.job.job import End
from lavad.core.job.reports import EndedReport, GoneReport, PartReport, RefusedReport
from lavad.core.lang.asks import Faulty, Refused
from lavad.core.lang.ids import show
from lavad.engine import Engine
from lavad.requests import Decide
from lavad.rpc.gang_reports import GangReports, Gathered
from proto.answers import Answer

UNDER_WAY = 64
"""Messages of reports of one host that may wait for their commit; more stay in the stream."""
ACK_PAUSE, ACK_LONGER = 0.02, 0.06
"""Seconds for which acknowledgements are collected, as nobody waits for them: the longer where reports follow each other."""
TRIES = 3
PAUSE = 0.5
"""Seconds between two tries."""
log = logging.getLogger(__name__)


class SetAside:
    """The reports of all hosts that were set aside since this master began."""

    def __init__(self) -> None:
        self.count = 0
        self._of: dict[str, tuple[int, str]] = {}
        """Host to the number of its reports and the job of the last."""

    def add(self, host: str, job: str) -> None:
        """One more of a host, about a job."""
        self.count += 1
        self._of[host] = (self._of.get(host, (0, ""))[0] + 1, job)

    def notices(self) -> list[str]:
        """A line for each host."""
        return [
            f"host {host}: reports that could not be recorded: {count}, the last about job {job}; the log of lavad has them"
            for host, (count, job) in self._of.items()
        ]


class ReportStream:
    """Takes reports, and returns those that need not be sent again. ``aside`` is told of each that is set aside."""

    def __init__(self, engine: Engine, host: str, aside: SetAside, gangs: GangReports) -> None:
        self._engine = engine
        self._gangs = gangs
        self._host = host
        self._aside = aside
        self._handed: asyncio.Queue[tuple[asyncio.Future[list[Answer]], Sequence[PartReport]]] = asyncio.Queue(UNDER_WAY)
        self._last: asyncio.Future[list[Answer]] | None = None
        self._joined: Gathered | None = None
        """What ``_last`` is of, where it is of other hosts too."""

    async def take(self, reports: Sequence[PartReport]) -> None:
        """Reports of one message; waits while many are under way."""
        for number, report in enumerate(reports):
            self._joined = self._join(report)
            if self._joined is None:
                rest = reports[number:]
                await self._hand(self._engine.hand_in([_decision(some) for some in independent(rest)], after=self._last), rest)
                break
            await self._hand(self._joined.answer, [report])

    async def _hand(self, committed: asyncio.Future[list[Answer]], reports: Sequence[PartReport]) -> None:
        self._last = committed
        committed.add_done_callback(_seen)
        await self._handed.put((committed, reports))

    def _join(self, report: PartReport) -> Gathered | None:
        """With what the reports of other hosts one is handed in; None: by itself."""
        under_way = self._last is not None and not self._last.done()
        if under_way and self._joined is None:
            return None
        return self._gangs.join(report, self._joined if under_way else None)

    async def settled(self) -> list[PartReport]:
        """The next reports that are committed or set aside, in their order. Raises Refused where a full store has many wait."""
        done = await self._settle(*await self._handed.get())
        await asyncio.sleep(ACK_PAUSE)
        if not self._handed.empty():
            await asyncio.sleep(ACK_LONGER - ACK_PAUSE)
        while not self._handed.empty():
            done += await self._settle(*self._handed.get_nowait())
        return done

    async def _settle(self, committed: asyncio.Future[list[Answer]], reports: Sequence[PartReport]) -> list[PartReport]:
        try:
            await asyncio.shield(committed)  # it may be that of other hosts, too, whose streams go on when this one ends
        except Refused:
            for report in reports:
                await self._one(report)
            if self._handed.empty():
                self._last = None  # nothing is under way any more that could be overtaken
        return list(reports)

    async def _one(self, report: PartReport) -> None:
        """Record one report by itself, or set it aside."""
        tries = 0
        while tries < TRIES:
            try:
                await self._engine.ask(_decision([report]))
                return
            except Faulty as fault:
                why = fault.text
                tries += 1
            except Refused:
                if self._handed.full():
                    raise
            await asyncio.sleep(PAUSE)
        log.error("host %s: a report about job %s is set aside: %s: %r", self._host, show(report.key), why, report)
        self._aside.add(self._host, show(report.key))
        if isinstance(report, EndedReport | GoneReport | RefusedReport):
            await self._lose(report)

    async def _lose(self, report: PartReport) -> None:
        lost = End(at=self._engine.clock(), lost=f"what host {self._host} reported of its end could not be recorded")
        ended = EndedReport(host=self._host, key=report.key, uid=report.uid, attempt=report.attempt, end=lost, gone=True)
        try:
            await self._engine.ask(_decision([ended]))
        except Faulty as fault:
            log.error("job %s stays as it is: its end cannot be recorded: %s", show(report.key), fault.text)


def _seen(committed: asyncio.Future[list[Answer]]) -> None:
    """Nobody asks what became of reports whose stream has ended, as the host sends them again: that is no fault for the log."""
    if not committed.cancelled():
        committed.exception()


def _decision(reports: Sequence[PartReport]) -> Decide:
    return lambda cluster, now: Decided(events=decide_reports(cluster, reports, now))
