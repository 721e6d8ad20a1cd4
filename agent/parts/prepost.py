"""Pre- and post-execution commands that run around a job's part as another user than the job's (LSB_PRE_POST_EXEC_USER).

Rule: each is a part of the agent's own, whose uid is that of the job's part with a suffix, so that the starter runs it once. The
job's part starts when those before it have ended well; whatever became of it, those after it run once, and nothing that frees
the host is handled before they have ended.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Collection, Mapping

from agent.launch.outputs import show
from agent.launch.prepost import apart, rerun
from agent.launch.site import Site
from agent.parts.entry import Entry, PrePostPhase, PrePostWork
from agent.parts.job_report import POST, PRE, owner_of
from agent.parts.table import PartTable
from agent.starter.protocol.part import NOTHING, PartSpec
from agent.starter.protocol.reports import End, Ended, Gone, Lost, PartReport, PartStatus, Refused
from agent.starter_client.outgoing import Outgoing
from agent.starter_client.starts import why_not_started

log = logging.getLogger("lava-agent")


class PrePost:
    """Runs them. ``describe`` makes the template and the part of an entry (OSError, ValueError: it cannot be described)."""

    def __init__(
        self, site: Site, table: PartTable, starter: Outgoing, describe: Callable[[Entry], tuple[PartSpec, PartSpec]]
    ) -> None:
        self._site = site
        self._table = table
        self._starter = starter
        self._describe = describe

    def begin(self, entry: Entry) -> bool:
        """Begin what comes before a new part; False: it may start at once."""
        made = entry.made
        if made is None or not apart.is_needed(entry.order, made):
            return False
        entry.prepost = PrePostWork()
        part = apart.before(entry.uid + PRE, entry.order, made, self._site)
        if part is None:
            return False
        entry.prepost.phase = PrePostPhase.BEFORE
        self._starter.start(0, NOTHING, part)
        return True

    def take(self, entry: Entry, report: PartReport) -> PartReport | None:
        """What of a report is to be handled now; the rest of it when what comes after the part has ended (``ended``)."""
        work = entry.prepost
        is_over = isinstance(report, Gone | Refused | Lost) or (isinstance(report, Ended) and report.gone)
        if work is None or work.phase is PrePostPhase.OVER or not is_over or entry.made is None:
            return report
        status = report.end.status if isinstance(report, Ended) else entry.end.status if entry.end is not None else 0
        if work.phase is not PrePostPhase.AFTER:
            only = runs_again(entry, self._site, status)
            part = apart.after(entry.uid + POST, entry.order, entry.made, self._site, status, hosts_only=only)
            if part is None:
                work.phase = PrePostPhase.OVER
                return report
            work.phase = PrePostPhase.AFTER
            self._starter.start(0, NOTHING, part)
        if isinstance(report, Ended):
            work.held = Gone(entry.uid, entry.post)
            return report._replace(gone=False)
        work.held = report
        return None

    def ended(self, uid: str, end: End | None, reason: str) -> PartReport | None:
        """A part of the agent's own has ended, or ``reason`` says why it has no end: what follows for the job's part.

        A part for which those before it have ended well starts.
        """
        entry = self._table.find(owner_of(uid))
        if entry is None or entry.prepost is None:
            self._starter.forget(uid)
            return None
        work = entry.prepost
        if uid.endswith(PRE) and work.phase is PrePostPhase.BEFORE:
            work.phase = PrePostPhase.DURING
            if work.killed:
                return Gone(entry.uid)
            if end is None or end.status:
                return Refused(entry.uid, *apart.why_failed(end, reason))
            return self._start(entry)
        if uid.endswith(POST) and work.phase is PrePostPhase.AFTER:
            return self._after(entry, work, end, reason)
        return None

    def _start(self, entry: Entry) -> PartReport | None:
        try:
            template, part = self._describe(entry)
        except (OSError, ValueError) as error:
            return Refused(entry.uid, *why_not_started(self._site.host, entry.key, error))
        self._starter.start(entry.order.start.sequence, template, part)
        return None

    def _after(self, entry: Entry, work: PrePostWork, end: End | None, reason: str) -> PartReport | None:
        work.phase = PrePostPhase.OVER
        status = end.status if end is not None else int(signal.SIGKILL)
        if status:
            said = reason or (end.note if end is not None else "")
            log.warning("job %s: its post-execution command as another user failed: status %d %s", show(entry.key), status, said)
        held, work.held = work.held, None
        return held._replace(post=held.post or status) if isinstance(held, Gone) else held

    def listed(self, listed: Mapping[str, PartStatus], waiting: Collection[str]) -> None:
        """A starter has connected, with these parts; ``waiting``: uids of those that are still to be sent to it."""
        for entry in self._table:
            if entry.made is None or not apart.is_needed(entry.order, entry.made):
                continue
            work = entry.prepost = entry.prepost or PrePostWork()
            uid = entry.uid
            if uid + POST in listed or uid + POST in waiting:
                work.phase = PrePostPhase.AFTER
                if work.held is None and uid not in listed:
                    why = pre.end if (pre := listed.get(uid + PRE)) is not None else None
                    work.held = Refused(uid, *apart.why_failed(why, ""))
            elif uid not in listed and (uid + PRE in listed or uid + PRE in waiting):
                work.phase = PrePostPhase.BEFORE
            elif work.phase is not PrePostPhase.OVER:
                work.phase = PrePostPhase.DURING


def runs_again(entry: Entry, site: Site, status: int = 0) -> bool:
    """Whether the job's and the queue's commands are left out, as the job runs again (LSB_DISABLE_RERUN_POST_EXEC).

    ``status``: the wait status of the part, 0 where it has none.
    """
    text = entry.text
    if text is None or not text.leased or not site.settings.lsb_disable_rerun_post_exec:
        return False
    return entry.part.again or rerun.requeue_of(text).wants(os.waitstatus_to_exitcode(status))


def to_kill(entry: Entry) -> tuple[str, ...]:
    """The uids of what is to be killed with a part; one that has not started will not."""
    work = entry.prepost
    if work is None or work.phase is not PrePostPhase.BEFORE:
        return (entry.uid,)
    work.killed = True
    return (entry.uid, entry.uid + PRE)


def waits(entry: Entry) -> bool:
    """Whether the starter need not know the part now: something of the agent's own runs before or after it."""
    return entry.prepost is not None and entry.prepost.phase in (PrePostPhase.BEFORE, PrePostPhase.AFTER)


def forget(entry: Entry, starter: Outgoing) -> None:
    """The part is forgotten, and what ran around it."""
    if entry.prepost is not None:
        for suffix in (PRE, POST):
            starter.forget(entry.uid + suffix)
