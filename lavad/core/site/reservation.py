"""Advance reservations: slots or hosts kept for somebody's jobs in a period of time, once or every week (brsvadd).

Rule: a record has the period that is active now or comes next as plain times; whoever moves it on to the next one (the
master, by an event) knows the calendar, so that deciding needs none.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from lavad.core.lang.windows import WEEK, Windows, parse_windows
from lavad.core.site.conf import Conf
from lavad.core.site.rights import expand_users

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
    """When it recurs, "" for once: ``[day:]hour[:minute]-[day:]hour[:minute] …``."""
    open: bool = False
    """Jobs are not killed at its end, but suspended, and go on as any other."""
    whole_hosts: bool = False
    """``-unit host``."""
    no_suspend: bool = False
    """``-nosusp``: other jobs that run there are not suspended for its own."""
    queues: tuple[str, ...] = ()
    """``-q``: queues whose jobs may use its hosts until it begins, however long they run."""
    description: str = ""
    creator: str = ""
    created: float = 0.0
    disabled: tuple[Period, ...] = ()
    """Periods that begin in these times are left out (brsvmod disable)."""

    @property
    def slots(self) -> int:
        """All its slots."""
        return sum(slots for _, slots in self.hosts)


def is_active(row: Reservation, now: float) -> bool:
    """Whether its jobs may start."""
    return row.begin <= now < row.end


def may_use(conf: Conf, row: Reservation, user: str) -> bool:
    """Whether a user's jobs may ask for it."""
    return row.kind != "system" and user in expand_users(conf, row.users)


def next_period(window: str, after: datetime, disabled: tuple[Period, ...] = ()) -> Period:
    """The recurring period that is open at ``after`` (local time), or the next one; (0, 0) if none comes within a year."""
    spans = _joined(parse_windows(window))
    sunday = after.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=after.isoweekday() % 7)
    for week in range(-1, 54):
        start = sunday + timedelta(weeks=week)
        for opens, closes in spans:
            first, last = start + timedelta(seconds=opens), start + timedelta(seconds=closes)
            at = first.timestamp()
            if last > after and not any(begin <= at < end for begin, end in disabled):
                return at, last.timestamp()
    return 0.0, 0.0


def _joined(windows: Windows) -> list[Period]:
    """Spans of a week; one over its end is whole, and begins in it."""
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
