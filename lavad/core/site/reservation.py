"""Advance reservations: slots or hosts kept for somebody's jobs in a period of time, once or every week (brsvadd).

Rule: a record has the period that is active now or comes next as plain times. The master, which knows the calendar, moves it
on to the next period by an event.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from lavad.core.lang.windows import WEEK, Windows, parse_windows
from lavad.core.site.conf import Conf
from lavad.core.site.rights import NamedUsers

Period = tuple[float, float]


class Reservation(msgspec.Struct, frozen=True, omit_defaults=True):
    """``hosts``: host and slots. ``begin`` and ``end``: of the active or next period."""

    name: str
    kind: str = "user"
    """``user``, ``group`` or ``system`` (maintenance: nobody's jobs start)."""
    users: tuple[str, ...] = ()
    hosts: tuple[tuple[str, int], ...] = ()
    begin: float = 0.0
    end: float = 0.0
    window: str = ""
    """When it recurs, ``[day:]hour[:minute]-[day:]hour[:minute] …``; "": once."""
    open: bool = False
    """``-o``: at its end its jobs are not killed but suspended, and then scheduled as any other."""
    whole_hosts: bool = False
    """``-unit host``."""
    no_suspend: bool = False
    """``-nosusp``: other jobs on its hosts are not suspended for its jobs."""
    queues: tuple[str, ...] = ()
    """``-q``: queues whose jobs may use its hosts until it begins, however long they run."""
    description: str = ""
    creator: str = ""
    created: float = 0.0
    disabled: tuple[Period, ...] = ()
    """Occurrences that begin in these times are skipped (brsvmod disable)."""

    @property
    def slots(self) -> int:
        """Its slots on all hosts."""
        return sum(slots for _, slots in self.hosts)


def is_active(row: Reservation, now: float) -> bool:
    """Whether its jobs may start now."""
    return row.begin <= now < row.end


def may_use(conf: Conf, row: Reservation, user: str) -> bool:
    """Whether a user's jobs may run in it (-U)."""
    return row.kind != "system" and user in NamedUsers(conf, row.users)


def next_period(window: str, after: datetime, disabled: tuple[Period, ...] = ()) -> Period:
    """The recurring period that is open at ``after`` (local time), or the next one; (0, 0) if none comes within a year."""
    spans = joined(parse_windows(window))
    sunday = after.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=after.isoweekday() % 7)
    passed = after.timestamp()  # by the clock on the wall an hour comes twice, or not at all
    for week in range(-1, 54):
        start = sunday + timedelta(weeks=week)
        for opens, closes in spans:
            first, last = start + timedelta(seconds=opens), start + timedelta(seconds=closes)
            at, until = first.timestamp(), last.timestamp()
            if until > passed and not any(begin <= at < end for begin, end in disabled):
                return at, until
    return 0.0, 0.0


def joined(windows: Windows) -> list[Period]:
    """The windows of a week in seconds; one that crosses the end of the week is joined into one."""
    spans: list[tuple[float, float]] = [(float(opens), float(closes)) for opens, closes in windows.spans]
    if len(spans) > 1 and spans[0][0] == 0 and spans[-1][1] == WEEK:
        (_, closes), (opens, _) = spans[0], spans[-1]
        spans = [*spans[1:-1], (opens, closes + WEEK)]
    return sorted(spans)


def periods(row: Reservation, start: float, end: float, local: datetime) -> list[Period]:
    """All its periods that overlap start to end; ``local`` is the local time of ``start``."""
    if not row.window:
        return [(row.begin, row.end)] if row.begin < end and start < row.end else []
    found: list[Period] = []
    at = local
    while len(found) < _MOST:
        begin, until = next_period(row.window, at, row.disabled)
        if not until or begin >= end:
            break
        found.append((begin, until))
        at = datetime.fromtimestamp(until, local.tzinfo)
    return found


_MOST = 1000
