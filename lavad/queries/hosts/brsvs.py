"""brsvs: advance reservations with what of them is used, their periods and jobs; -p and -z: slots by week."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta

from lavad.core.job.job import Job
from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import show as show_key
from lavad.core.lang.states import SUSPENDED, JobState
from lavad.core.site.reservation import Period, Reservation, is_active, periods
from lavad.local_time import local_time
from lavad.queries.facts import hostfacts
from lavad.queries.frame import formats
from lavad.queries.frame.request import Request, Shown, err, leave, out

_TYPES = {"system": "sys"}


def show(request: Request) -> Iterator[Shown]:
    """A row for each host of each reservation, and with -l more about it."""
    options = request.options()
    if options.find("c"):
        raise Refused("brsvs: option -c is not supported by lava")
    rows = request.cluster.reservations.rows
    names = request.words or list(rows)
    for name in names:
        if name not in rows:
            yield err(f"{name}: Bad reservation ID")
            yield leave(255)
    found = sorted((rows[name] for name in names if name in rows), key=lambda row: (not is_active(row, request.now), row.begin))
    if not rows and not request.words:
        yield out("No reservation found\n")
        return
    wide = "w" in options or "l" in options
    for at, row in enumerate(found):
        if at == 0 or "l" in options:
            yield out(("\n" if at else "") + _head(wide, found))
        yield from (out(line) for line in _lines(request, row, wide, found))
        if "l" in options:
            yield out(_long(request, row))
    hosts = options.find("p") or options.find("z")
    if hosts:
        yield from _planner(request, hosts, bool(options.find("z")))


def _widths(wide: bool, rows: list[Reservation]) -> tuple[int, int]:
    if not wide:
        return 11, 11
    return max(11, *(len(row.name) for row in rows)), max(11, *(len(" ".join(row.users)) for row in rows))


def _head(wide: bool, rows: list[Reservation]) -> str:
    name, user = _widths(wide, rows)
    return f"{'RSVID':<{name}} {'TYPE':<6} {'USER':<{user}} {'NCPUS':<11} {'RSV_HOSTS':<19} TIME_WINDOW\n"


def used_slots(request: Request, row: Reservation) -> dict[str, int]:
    """Host to the slots that its jobs have there now."""
    found = dict.fromkeys((host for host, _ in row.hosts), 0)
    for job in _jobs(request, row):
        for part in job.run.parts if job.run is not None and not job.preempted_for else ():
            if part.host in found:
                found[part.host] += part.slots
    return found


def _jobs(request: Request, row: Reservation) -> Iterator[Job]:
    cluster = request.cluster
    for key in cluster.started:
        job = cluster.jobs.rows[key]
        if cluster.specs.rows[job.spec].reservation == row.name:
            yield job


def _lines(request: Request, row: Reservation, wide: bool, rows: list[Reservation]) -> Iterator[str]:
    name, user = _widths(wide, rows)
    used = used_slots(request, row)
    total = f"{sum(used.values())}/{row.slots}" if row.kind != "system" else str(row.slots)
    users = " ".join(row.users) or "system"
    lead = f"{row.name:<{name}.{name}} {_TYPES.get(row.kind, row.kind):<6} {users:<{user}.{user}} {total:<11}"
    for at, (host, slots) in enumerate(row.hosts):
        there = f"{host}:{used[host]}/{slots}"
        window = f" {_window(row)}" if at == 0 else ""
        yield (f"{lead if at == 0 else ' ' * len(lead)} {there:<19}{window}").rstrip() + "\n"


def _window(row: Reservation) -> str:
    if row.window:
        return f"{row.window} *"
    return f"{_point(row.begin)}-{_point(row.end)}"


def _point(at: float) -> str:
    t = time.localtime(at)
    return f"{t.tm_mon}/{t.tm_mday}/{t.tm_hour}/{t.tm_min}"


def _long(request: Request, row: Reservation) -> str:
    status = "Active" if is_active(row, request.now) else "Inactive"
    lines = [f"Reservation Status: {status}"]
    if row.description:
        lines.append(f"Description: {row.description}")
    if row.window or status == "Inactive":
        lines += ["Next Active Period:", f"    {formats.time_with_year(row.begin)} - {formats.time_with_year(row.end)}"]
    lines += [f"Creator: {row.creator}", f"Reservation Type: {'OPEN' if row.open else 'CLOSED'}"]
    lines.append(f"Resource Unit: {'Host' if row.whole_hosts or row.kind == 'system' else 'Slot'}")
    if row.no_suspend:
        lines.append("Other jobs continue to run when the reservation's jobs start")
    if row.queues:
        lines.append("Queues that can use the hosts before the reservation starts: " + " ".join(row.queues))
    for title, names in _job_lists(request, row):
        if names:
            lines.append(f"{title} Jobs: {' '.join(names)}")
    return "\n".join(lines) + "\n"


def _job_lists(request: Request, row: Reservation) -> list[tuple[str, list[str]]]:
    cluster = request.cluster
    specs = {number for number in cluster.spec_jobs if cluster.specs.rows[number].reservation == row.name}
    jobs = [job for job in cluster.jobs.rows.values() if job.spec in specs] if specs else []
    arrays = [array for array in cluster.arrays.rows.values() if array.spec in specs and array.pending] if specs else []
    pending = [show_key(job.key) for job in jobs if job.state is JobState.PEND]
    pending += [f"{array.job}[{array.pending.text()}]" for array in arrays]
    running = [show_key(job.key) for job in jobs if job.run is not None and job.state not in SUSPENDED]
    stopped = [show_key(job.key) for job in jobs if job.state in SUSPENDED]
    return [("PEND", pending), ("RUN", running), ("SUSP", stopped)]


_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_ROWS = 144


def _planner(request: Request, words: str, only_used: bool) -> Iterator[Shown]:
    """For each host and week how many slots are reserved in each ten minutes.

    The weeks with one-time reservations (this one, where there are only recurring ones) of the hosts named.
    """
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
            lines.append(formats.joined(f"{f'{at // 6}:{at % 6 * 10}':<8}", *(f"{slots:>8}" for slots in cells)))
    return "\n".join(lines) + "\n"


def _slots(spans: list[tuple[Period, int]], at: datetime) -> int:
    first = at.timestamp()
    return sum(slots for (begin, end), slots in spans if begin < first + 600 and first < end)


def _date(day: datetime) -> str:
    return f"{day.month}/{day.day}/{day.year}"
