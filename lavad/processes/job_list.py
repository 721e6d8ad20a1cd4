"""A plain list of many jobs, rendered by the query process itself, frame by frame between other queries.

A fork would copy each page of memory that it looks at, which takes longer than the rows. Rule: the records of the jobs are
settled with the first frame, so that the list is of one version of the cluster; it is never far ahead of its reader.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from lavad.processes.long_query import Pace
from lavad.replica import protocol as feed


class JobList:
    """One that is under way; as a ``LongQuery`` to those who pass its frames on."""

    def __init__(self, ask: feed.Ask, answers: Iterator[feed.Answer], limit: float) -> None:
        self.ask = ask
        self.deadline = time.monotonic() + limit
        self._answers = answers
        self.pace = Pace()

    def read(self) -> tuple[list[bytes], bool]:
        """(the next frame, if its reader is not too far behind; whether that is the last)."""
        if not self.pace.is_ready:
            return [], False
        found = next(self._answers)
        self.pace.sent(1)
        return [feed.frame(found)], found.exit is not None

    def taken(self, count: int) -> None:
        """The reader has taken so many frames."""
        self.pace.taken(count)

    def end(self) -> None:
        """It is not wanted any more."""

    def gone(self) -> bool:
        """Its whole answer was sent."""
        return True
