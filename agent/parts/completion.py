"""How parts end for this host: the report in the user's file, the mail, the word to the master, and forgetting them.

Rule: an end is told to the master when its report is in the user's file, and forgotten when the master has it.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from agent.launch import build
from agent.master.link import Outbox
from agent.parts import report_messages as saying
from agent.parts.entry import Entry
from agent.parts.job_report import Closing
from agent.parts.spool import Spool
from agent.starter_client.outgoing import Outgoing
from proto import agent_pb2 as pb

log = logging.getLogger("lava-agent")


class Ends:
    """``entries`` are the attempts that are here, ``newest`` the last one of each job."""

    def __init__(self, closing: Closing, spool: Spool, outbox: Outbox, starter: Outgoing) -> None:
        self.entries: dict[str, Entry] = {}
        self.newest: dict[int, str] = {}
        self._closing = closing
        self._spool = spool
        self._outbox = outbox
        self._starter = starter

    def begun(self, entry: Entry) -> None:
        """It runs: whoever wants to know is mailed."""
        self._add(entry, self._closing.begun(entry))

    def suspended(self, entry: Entry) -> None:
        """It was suspended: the same."""
        self._add(entry, self._closing.suspended(entry))

    def close(self, entry: Entry) -> None:
        """Order what is written about its end, if anything is."""
        file, mail = self._closing.orders(entry, time.time())
        entry.writer = "sent" if file else "none"
        if file is not None:
            self._starter.put(file)
        self._add(entry, self._closing.begun(entry))
        self._add(entry, mail)

    def _add(self, entry: Entry, fields: dict[str, Any] | None) -> None:
        """A part of the agent's own, after one of the master's."""
        if fields is not None and entry.made is not None:
            self._starter.start(0, entry.made.template, id(entry.made), fields)

    def run(self, entry: Entry, command: str) -> None:
        """A command of the user's beside the job, in its environment; nobody waits for it."""
        self._add(entry, self._closing.command(entry, command))

    def mailed(self, uid: str, well: bool, why: str) -> None:
        """A mail was sent, or was not."""
        if not well:
            log.warning("%s: %s", uid, why or "it failed")
        self._starter.put({"do": "forget", "uids": [uid]})

    def wrote(self, entry: Entry, why: str) -> None:
        """Its report is in the user's file, or ``why`` not."""
        entry.writer = "failed" if why else "done"
        if why:
            log.warning("job %s: its report was not written: %s", build.show(entry.key), why)
        if not entry.told and entry.end is not None:
            self.tell(entry)

    def tell(self, entry: Entry) -> None:
        """The master hears how it ended."""
        entry.told = True
        if entry.orphan:
            self.forget_if_done(entry)
            return
        self.say(entry)
        log.debug("job %s attempt %d has ended: status %s", build.show(entry.key), entry.part.attempt, _status_of(entry))

    def say(self, entry: Entry) -> None:
        """Say it, once more perhaps."""
        first = entry.made is not None and entry.order.start.place == 0
        kept = entry.where.kept if first and (not entry.where.output or entry.writer == "failed") else ""
        self.put(saying.ended(entry, kept), entry)

    def put(self, what: pb.Report, entry: Entry) -> None:
        """A report to the master, of a part that is its own."""
        if not entry.orphan:
            self._outbox.put(what)

    def forget_if_done(self, entry: Entry) -> None:
        """Nothing is left of it and everybody knows."""
        if not (entry.over and entry.told and (entry.acked or entry.orphan)):
            return
        self.entries.pop(entry.uid, None)
        if self.newest.get(entry.key) == entry.uid:
            del self.newest[entry.key]
        self._spool.forget(entry.uid)
        self._starter.forget(entry.uid)


def _status_of(entry: Entry) -> str:
    return str(entry.end["status"]) if entry.end is not None else f"not known: {entry.lost}"
