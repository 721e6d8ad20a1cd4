"""brsvmod: changes of times, users, hosts or kind of a reservation, and cancelled occurrences.

Rule: running jobs are not affected: the start of an active reservation and the slots in use by its jobs cannot change.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import decides_in_local_time
from lavad.core.decide.reserve.hosts import Free, find_hosts, most, take_slots
from lavad.core.decide.reserve.reservations import check_creator, check_users, get_one, jobs_in, moved
from lavad.core.decide.reserve.times import check_period, read_dates, read_point, read_times
from lavad.core.lang.asks import Caller, ChangeReservation, Refused
from lavad.core.site.reservation import Reservation, is_active, next_period
from proto.numbers import find_number


@decides_in_local_time(ChangeReservation)
def change(cluster: Cluster, ask: ChangeReservation, caller: Caller, now: float, local: datetime) -> Decided:
    """Decide brsvmod; raises Refused."""
    row = get_one(cluster, ask.name, caller)
    verb = _VERBS.get(ask.verb)
    if verb is None:
        raise Refused(f"{ask.verb}: no such subcommand")
    new = verb(cluster, row, ask, now, local)
    if new == row:
        raise Refused(f"{ask.name}: Nothing to change")
    check_creator(cluster.conf, caller)
    return Decided(events=[ev.AdvanceReservationSet(at=now, value=new, by=caller.user)], answer={"name": row.name})


def _values(cluster: Cluster, row: Reservation, ask: ChangeReservation, now: float, local: datetime) -> Reservation:
    new = row
    if ask.users:
        kind, users = check_users(cluster, ask.users, "")
        new = moved(new, kind=kind, users=users)
    for field, value in (("open", ask.open), ("no_suspend", ask.no_suspend), ("description", ask.description)):
        if value is not None:
            new = moved(new, **{field: value})
    if ask.queues is not None:
        names = tuple(ask.queues.split())
        unknown = next((name for name in names if name not in cluster.queue_conf), None)
        if unknown is not None:
            raise Refused(f"{unknown}: No such queue")
        new = moved(new, queues=names)
    return _with_times(cluster, new, ask, now, local) if ask.begin or ask.end or ask.window else new


def _with_times(cluster: Cluster, row: Reservation, ask: ChangeReservation, now: float, local: datetime) -> Reservation:
    active = is_active(row, now)
    if ask.window:
        if not row.window or ask.begin or ask.end:
            raise Refused("A time window is for recurring reservations only, and -b and -e for others")
        _, _, window = read_times("", "", ask.window, now, local)
        begin, end = next_period(window, local, row.disabled)
        if not end:
            raise Refused("No occurrence would be left")
        if active and begin != row.begin:
            raise Refused("The start time of an active reservation cannot be modified")
        new = moved(row, begin=begin, end=end, window=window)
    else:
        if row.window:
            raise Refused("A recurring reservation has no begin and end time: change its time window (-t)")
        if active and ask.begin:
            raise Refused("The start time of an active reservation cannot be modified")
        begin, end, _ = check_period(_time(ask.begin, row.begin, local), _time(ask.end, row.end, local), now)
        if ask.begin and begin < now - 60:
            raise Refused("The begin time cannot be earlier than the current time")
        new = moved(row, begin=begin, end=end)
    return _checked(cluster, new, now, local)


def _checked(cluster: Cluster, row: Reservation, now: float, local: datetime) -> Reservation:
    """The reservation; raises Refused where another has its slots at one of its times."""
    free = Free(cluster, row, now, local)
    short = next((host for host, slots in row.hosts if free.slots(host) < slots), None)
    if short is not None:
        raise Refused(f"{short}: Not enough processors to be reserved at this time")
    return row


def _time(text: str, known: float, local: datetime) -> float:
    """A time given as a point, or as ``+minutes`` or ``-minutes`` relative to ``known``; "": ``known``."""
    if not text:
        return known
    if text[0] in "+-":
        minutes = find_number(text[1:], 0, 10**7)
        if minutes is None:
            raise Refused(f"{text}: Bad number of minutes")
        return known + 60 * (minutes if text[0] == "+" else -minutes)
    return read_point(text, local, "time")


def _add_hosts(cluster: Cluster, row: Reservation, ask: ChangeReservation, now: float, local: datetime) -> Reservation:
    free, known = Free(cluster, row, now, local), dict(row.hosts)
    names = find_hosts(cluster, ask.hosts, ask.resreq)
    offers = [(name, max(0, free.slots(name) - known.get(name, 0))) for name in names]
    if row.kind == "system" or row.whole_hosts:
        if ask.slots and row.kind == "system":
            raise Refused("Slots cannot be added to a system reservation")
        offers = [(name, slots) for name, slots in offers if slots == most(cluster, name)][: ask.slots or None]
        if len(offers) < (ask.slots or len(names)):
            raise Refused("Not enough hosts to be reserved")
        added: tuple[tuple[str, int], ...] = tuple(offers)
    else:
        added = take_slots(offers, ask.slots or max(1, sum(slots for _, slots in offers)))
    for name, slots in added:
        known[name] = known.get(name, 0) + slots
    return moved(row, hosts=tuple(known.items()))


def _remove_hosts(cluster: Cluster, row: Reservation, ask: ChangeReservation, now: float, local: datetime) -> Reservation:
    known = dict(row.hosts)
    names = find_hosts(cluster, ask.hosts or " ".join(known), "")
    outside = next((name for name in names if name not in known), None)
    if outside is not None:
        raise Refused(f"{outside}: Host does not belong to the specified advance reservation")
    if row.kind == "system" and ask.slots:
        raise Refused("Slots cannot be removed from a system reservation")
    if row.whole_hosts:
        gone = {name: known[name] for name in names[: ask.slots or None]}
    else:
        gone = dict(take_slots(((name, known[name]) for name in names), ask.slots or sum(known[name] for name in names)))
    used: dict[str, int] = {}
    for job in jobs_in(cluster, row.name):
        for part in job.run.parts if job.run is not None else ():
            used[part.host] = used.get(part.host, 0) + part.slots
    left = {name: slots - gone.get(name, 0) for name, slots in known.items()}
    busy = next((name for name in gone if used.get(name, 0) > left[name]), None)
    if busy is not None:
        raise Refused(f"{busy}: Jobs of the reservation run on these slots")
    if not any(left.values()):
        raise Refused("A reservation cannot be left without hosts (delete it with brsvdel)")
    return moved(row, hosts=tuple((name, slots) for name, slots in left.items() if slots))


def _add_users(cluster: Cluster, row: Reservation, ask: ChangeReservation, now: float, local: datetime) -> Reservation:
    if row.kind == "system":
        raise Refused("A system reservation has no users")
    kind, users = check_users(cluster, " ".join([*row.users, *ask.users.split()]), "")
    return moved(row, kind=kind, users=users)


def _remove_users(cluster: Cluster, row: Reservation, ask: ChangeReservation, now: float, local: datetime) -> Reservation:
    out = ask.users.split()
    unknown = next((name for name in out if name not in row.users), None)
    if unknown is not None:
        raise Refused(f"{unknown}: Not a user of the reservation")
    kind, users = check_users(cluster, " ".join(name for name in row.users if name not in out), "")
    return moved(row, kind=kind, users=users)


def _disable(cluster: Cluster, row: Reservation, ask: ChangeReservation, now: float, local: datetime) -> Reservation:
    """Cancel the occurrences that begin on these days (-td), or restore all (-tn)."""
    if not row.window:
        raise Refused("Only occurrences of a recurring reservation can be disabled")
    disabled = (*row.disabled, read_dates(ask.dates, local)) if ask.dates else ()
    if any(begin <= row.begin < end for begin, end in disabled) and is_active(row, now):
        raise Refused("An active occurrence cannot be disabled")
    begin, end = (row.begin, row.end) if is_active(row, now) else next_period(row.window, local, disabled)
    if not end:
        raise Refused("No occurrence would be left")
    new = moved(row, disabled=disabled, begin=begin, end=end)
    return new if ask.dates else _checked(cluster, new, now, local)


_VERBS: dict[str, Callable[[Cluster, Reservation, ChangeReservation, float, datetime], Reservation]] = {
    "": _values,
    "addhost": _add_hosts,
    "rmhost": _remove_hosts,
    "adduser": _add_users,
    "rmuser": _remove_users,
    "disable": _disable,
}
