"""Looks into the checkpoint folders of parts: while they run, and once more before a bad end is told.

A job may die a moment after it has written a generation, which no look while it ran has seen: the master would start it again
from an older one, or not at all.
Rule: the starter looks, as the job's user. An end never waits for long, as a folder may be on a file system that hangs.
"""

from __future__ import annotations

import signal

from agent.checkpoint import app
from agent.core import checkpoint
from agent.core.checkpoint import LAST_LOOK, Look
from agent.parts.entry import Entry
from agent.starter_client.outgoing import Outgoing

SEARCH_TIMEOUT = 3600.0
"""Seconds after which an unanswered search of a checkpoint folder is repeated: a large generation takes long to read."""


class FolderLooks:
    """Orders them of the starter, one at a time for each part. Times are CLOCK_BOOTTIME."""

    def __init__(self, starter: Outgoing) -> None:
        self._starter = starter

    def periodic(self, entry: Entry, now: float) -> None:
        """A part runs: have its folder searched, unless a search is still running."""
        known, work = entry.checkpoint, entry.work
        if known is None or work.making or (work.looked and now < work.looked + SEARCH_TIMEOUT):
            return
        self._begin(entry, now, known.seen if known.listed else None)

    def waits(self, entry: Entry, now: float, within: float = LAST_LOOK) -> bool:
        """A part has ended or was lost: whether this is told only after a look, at most ``within`` seconds later.

        Not of a job that is done, or that a user has killed: it does not start again. Only a job's first host looks.
        """
        known, work = entry.checkpoint, entry.work
        if known is None or entry.made is None or entry.orphan or work.hurried:
            return False
        status = signal.SIGKILL if entry.lost or entry.end is None else entry.end.status
        if not checkpoint.may_go_on(known, status, entry.part.reason):
            return False
        work.ended = work.ended or now
        look = checkpoint.last_look(now, work.ended, bool(work.looked), work.searched, within)
        if look is Look.BEGIN:
            work.searched = True
            self._begin(entry, now, known.seen)
        return look is not Look.NONE

    def killed(self, entry: Entry, reason: str) -> None:
        """A part that has ended is to be killed: a user does not wait for a look."""
        if entry.checkpoint is not None and not checkpoint.may_go_on(entry.checkpoint, signal.SIGKILL, reason):
            entry.work.hurried = True

    def _begin(self, entry: Entry, now: float, above: int | None) -> None:
        if entry.made is not None:
            entry.work.looked = now
            self._starter.put(app.look(entry.uid, entry.made.user, entry.checkpoint_folder(), above, self._starter.protocol))
