"""brsvs -p and -z: for each host and week, how many slots are reserved in each ten minutes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from lavad.core.site.reservation import Period, Reservation, periods
from lavad.local_time import local_time
from lavad.queries.facts import hostfacts
from lavad.queries.frame.request import Request, Shown, out

_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_ROWS = 144


def planner(request: Request, words: str, only_used: bool) -> Iterator[Shown]:
    """The weeks with one-time reservations (this one, where there are only recurring ones) of the hosts named."""
    rows = list(request.cluster.reservations.rows.values())
    names = hostfacts.named(request, [] if words == "all" else words.split())
    for name in names:
        mine = [(row, dict(row.hosts)[name]) for row in rows if name in dict(row.hosts)]
        if not mine:
            continue
        most = request.cluster.slots_of(name)
        yield out(f"\nHOST: {name} (MAX = {'-' if most < 0 else most})\n")
        for week in _weeks([row for row, _ in mine], request.now):
            yield out(_week(week, mine, only_used))


def _sunday(at: float) -> datetime:
    day = local_time(at).replace(hour=0, minute=0, second=0, microsecond=0)
    return day - timedelta(days=day.isoweekday() % 7)


def _weeks(rows: list[Reservation], now: float) -> list[datetime]:
    found: set[datetime] = set()
    for row in rows:
        week = _sunday(row.begin)
        while not row.window and week.timestamp() < row.end and len(found) < 53:
            found.add(week)
            week += timedelta(weeks=1)
    return sorted(found) or [_sunday(now)]


def _week(sunday: datetime, rows: list[tuple[Reservation, int]], only_used: bool) -> str:
    last = sunday + timedelta(days=6)
    end = (sunday + timedelta(weeks=1)).timestamp()
    spans: list[tuple[Period, int]] = []
    for row, slots in rows:
        spans += [(period, slots) for period in periods(row, sunday.timestamp(), end, sunday)]
    lines = [f"Week: {_date(sunday)} - {_date(last)}", "Hour:Min" + "".join(f"{day:>8}" for day in _DAYS), "-" * 64]
    for at in range(_ROWS):
        cells = [_slots(spans, sunday + timedelta(days=day, minutes=10 * at)) for day in range(7)]
        if any(cells) or not only_used:
            lines.append(f"{f'{at // 6}:{at % 6 * 10}':<8}" + "".join(f"{slots:>8}" for slots in cells))
    return "\n".join(lines) + "\n"


def _slots(spans: list[tuple[Period, int]], at: datetime) -> int:
    first = at.timestamp()
    return sum(slots for (begin, end), slots in spans if begin < first + 600 and first < end)


def _date(day: datetime) -> str:
    return f"{day.month}/{day.day}/{day.year}"
