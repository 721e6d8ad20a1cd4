"""What follows the end of a part: the report in the user's file, the mail, the report to the master, and forgetting it.

Rule: an end is told to the master when its report is in the user's file, and forgotten when the master has it.
"""

from __future__ import annotations

import logging
import time

from agent.launch import outputs
from agent.launch.timeleft import TimeLeft
from agent.parts import prepost
from agent.parts import report_messages as messages
from agent.parts.entry import Entry, Writing
from agent.parts.job_report import JobReports
from agent.parts.spool import Spool
from agent.parts.table import PartTable, Reporter
from agent.parts.work_folders import WorkFolders
from agent.starter.protocol.orders import Forget
from agent.starter.protocol.part import PartSpec
from agent.starter_client.outgoing import Outgoing

log = logging.getLogger("lava-agent")


class Completion:
    """Completes the parts of ``table``."""

    def __init__(
        self,
        made: JobReports,
        table: PartTable,
        reporter: Reporter,
        spool: Spool,
        starter: Outgoing,
        time_left: TimeLeft,
        folders: WorkFolders,
    ) -> None:
        self._made = made
        self._table = table
        self._reporter = reporter
        self._spool = spool
        self._starter = starter
        self._time_left = time_left
        self._folders = folders

    def begun(self, entry: Entry) -> None:
        """It runs: mail those who asked for it (``-B``)."""
        self._add(entry, self._made.begun(entry, time.time()))

    def suspended(self, entry: Entry) -> None:
        """It was suspended: mail those who asked for it."""
        self._add(entry, self._made.suspended(entry, time.time()))

    def close(self, entry: Entry) -> None:
        """Order the report file and the mail of its end, where there are any."""
        file, mail = self._made.orders(entry, time.time())
        entry.writing = Writing.ORDERED if file else Writing.NOTHING
        if file is not None:
            self._starter.put(file)
        self._add(entry, self._made.begun(entry, time.time()))
        self._add(entry, mail)

    def _add(self, entry: Entry, part: PartSpec | None) -> None:
        """Start a part of the agent's own."""
        if part is not None and entry.made is not None:
            self._starter.start(0, entry.made.template, part)

    def run(self, entry: Entry, command: str) -> None:
        """A command of the user's beside the job, in its environment; nobody waits for it."""
        self._add(entry, self._made.command(entry, command, time.time()))

    def mailed(self, uid: str, well: bool, why: str) -> None:
        """A mail was sent (``well``), or ``why`` it was not."""
        if not well:
            log.warning("%s: %s", uid, why or "it failed")
        self._starter.put(Forget((uid,)))

    def wrote(self, entry: Entry, why: str) -> None:
        """Its report is in the user's file, or ``why`` not."""
        entry.report_written(why)
        if why:
            log.warning("job %s: its report was not written: %s", outputs.show(entry.key), why)
        if not entry.reported and entry.end is not None:
            self.tell(entry)

    def tell(self, entry: Entry) -> None:
        """Report the end to the master, once."""
        entry.reported = True
        if entry.orphan:
            self.forget_if_done(entry)
            return
        self.say(entry)
        if log.isEnabledFor(logging.DEBUG):
            log.debug("job %s attempt %d has ended: status %s", outputs.show(entry.key), entry.part.attempt, _status_of(entry))

    def say(self, entry: Entry) -> None:
        """Send the report of the end, if need be again."""
        entry.told = messages.ended(entry, self._kept(entry))
        self._reporter.put(entry.told, entry)

    def _kept(self, entry: Entry) -> str:
        """Where the output is kept that was not delivered; "": nowhere."""
        first = entry.made is not None and entry.order.start.place == 0
        return entry.where.kept if first and (not entry.where.output or entry.writing is Writing.FAILED) else ""

    def forget_if_done(self, entry: Entry) -> None:
        """Forget a part that is over, once the master has acknowledged its end."""
        if not (entry.over and entry.reported and (entry.acked or entry.orphan)):
            return
        if not entry.orphan and (entry.end is not None or entry.lost):
            told = entry.told
            # what was told while something of it was left is not all that there is to tell
            if told is None or not told.ended.gone:
                told = messages.ended(entry, self._kept(entry))
            self._spool.ends.keep(told, time.time())
        self._table.remove(entry)
        self._folders.keep(entry)
        self._spool.forget(entry.uid)
        self._time_left.over(entry.uid)
        self._starter.forget(entry.uid)
        prepost.forget(entry, self._starter)


def _status_of(entry: Entry) -> str:
    return str(entry.end.status) if entry.end is not None else f"not known: {entry.lost}"
