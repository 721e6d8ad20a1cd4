"""brsvadd and brsvdel, and the end of a reservation's period.

Rule: at no time may reservations hold more slots of a host than it has; this is checked only here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import decides, decides_in_local_time
from lavad.core.decide.reserve.hosts import choose_hosts
from lavad.core.decide.reserve.times import read_times
from lavad.core.job.job import Job, PendingSignal
from lavad.core.lang.asks import AddReservation, Caller, DropReservation, Refused
from lavad.core.lang.states import JobState, SignalKind, TermReason
from lavad.core.site.conf import Conf
from lavad.core.site.reservation import Reservation, may_use, next_period
from lavad.core.site.rights import why_not_admin

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,38}", re.ASCII)


@decides_in_local_time(AddReservation)
def add(cluster: Cluster, ask: AddReservation, caller: Caller, now: float, local: datetime) -> Decided:
    """Decide brsvadd; raises Refused."""
    begin, end, window = read_times(ask.begin, ask.end, ask.window, now, local)
    kind, users = ("system", ()) if ask.system else check_users(cluster, ask.users, ask.group)
    queues = tuple(ask.queues.split())
    for queue in queues:
        if queue not in cluster.queue_conf:
            raise Refused(f"{queue}: No such queue")
    row = Reservation(
        name=_name(cluster, ask.name, kind, users),
        kind=kind,
        users=users,
        begin=begin,
        end=end,
        window=window,
        open=ask.open,
        whole_hosts=ask.unit == "host",
        no_suspend=ask.no_suspend,
        queues=queues,
        description=ask.description,
        creator=caller.user,
        created=now,
    )
    hosts = choose_hosts(cluster, row, ask, now, local)
    row = moved(row, hosts=hosts)
    check_creator(cluster.conf, caller)
    return Decided(events=[ev.AdvanceReservationSet(at=now, value=row, by=caller.user)], answer={"name": row.name})


def check_creator(conf: Conf, caller: Caller) -> None:
    """Raises Refused unless the caller may create advance reservations."""
    if why := why_not_admin(conf, caller):
        raise Refused(why)


def check_users(cluster: Cluster, users: str, group: str) -> tuple[str, tuple[str, ...]]:
    """(kind of the reservation, names) of -u (users or groups) and -g (a group); raises Refused."""
    groups = {name for name, _ in cluster.conf.user_groups}
    if group and group not in groups:
        raise Refused(f"{group}: No such user group")
    names = tuple(dict.fromkeys([*users.split(), *group.split()]))
    if not names:
        raise Refused("A user or user group is needed")
    for name in names:
        if name not in groups and not _NAME.fullmatch(name):
            raise Refused(f"{name}: Bad user name")
    return "group" if all(name in groups for name in names) else "user", names


def _name(cluster: Cluster, wanted: str, kind: str, users: tuple[str, ...]) -> str:
    """The wanted name, or a new one that no reservation has and no job waits for; raises Refused."""
    rows = cluster.reservations.rows
    owner = "system" if kind == "system" else users[0]
    if sum(row.users == users and row.kind == kind for row in rows.values()) >= cluster.conf.params.advrsv_user_limit:
        raise Refused("No more reservation IDs can be used now")
    if wanted:
        if not _NAME.fullmatch(wanted):
            raise Refused(f"{wanted}: Bad reservation name")
        if wanted in rows:
            raise Refused(f"{wanted}: The reservation name is in use")
        return wanted
    waited_for = {cluster.specs.rows[number].reservation for number in cluster.spec_jobs}
    number = 0
    while f"{owner}#{number}" in rows or f"{owner}#{number}" in waited_for:
        number += 1
    return f"{owner}#{number}"


def get_one(cluster: Cluster, name: str, caller: Caller) -> Reservation:
    """A reservation that the caller may change (its creator and administrators); raises Refused."""
    row = cluster.reservations.rows.get(name)
    if row is None:
        raise Refused(f"{name}: Bad reservation ID")
    if caller.user != row.creator and (why := why_not_admin(cluster.conf, caller)):
        raise Refused(f"{name}: {why}")
    return row


@decides(DropReservation)
def drop(cluster: Cluster, ask: DropReservation, caller: Caller, now: float) -> Decided:
    """brsvdel. ``force``: its running jobs are detached and continue as ordinary jobs. Raises Refused."""
    row = get_one(cluster, ask.name, caller)
    jobs = jobs_in(cluster, row.name)
    if jobs and not ask.force:
        raise Refused(f"{ask.name}: The reservation has running jobs (brsvdel -f detaches them)")
    events: list[ev.Event] = [_suspended(job, now, "Advance reservation was deleted") for job in jobs if _runs(job)]
    return Decided(events=[*events, ev.AdvanceReservationEnded(at=now, name=row.name, by=caller.user)], answer={"name": row.name})


def jobs_in(cluster: Cluster, name: str) -> list[Job]:
    """Started jobs that run in a reservation."""
    rows, specs = cluster.jobs.rows, cluster.specs.rows
    return [rows[key] for key in cluster.started if specs[rows[key].spec].reservation == name]


def turn(cluster: Cluster, now: float, local: datetime) -> Decided:
    """End of periods: jobs of closed reservations are killed, of open ones suspended; then the next period begins, if any."""
    events: list[ev.Event] = []
    for row in list(cluster.reservations.rows.values()):
        if now < row.end:
            continue
        events += _over(row, jobs_in(cluster, row.name), now)
        begin, end = next_period(row.window, local, row.disabled) if row.window else (0.0, 0.0)
        if end:
            events.append(ev.AdvanceReservationSet(at=now, value=moved(row, begin=begin, end=end)))
        else:
            events.append(ev.AdvanceReservationEnded(at=now, name=row.name))
    return Decided(events=events)


def moved(row: Reservation, **fields: object) -> Reservation:
    """The reservation with other fields."""
    return replace(row, **fields)


def _over(row: Reservation, jobs: Iterable[Job], now: float) -> list[ev.Event]:
    if row.open:
        return [_suspended(job, now, "Advance reservation has expired") for job in jobs if _runs(job)]
    reason = TermReason.TERM_DEADLINE
    live = (
        job
        for job in jobs
        if job.run is not None and not any(pending.kind is SignalKind.KILL for pending in job.run.pending_signals)
    )
    return [
        ev.SignalRequested(at=now, key=job.key, pending=PendingSignal(kind=SignalKind.KILL, at=now, reason=reason))
        for job in live
    ]


def _suspended(job: Job, now: float, why: str) -> ev.Event:
    """Suspend the job; it gives up its slots and resumes when slots are free."""
    return ev.JobSuspended(at=now, key=job.key, state=JobState.SSUSP, why=why, beneficiary=job.key)


def _runs(job: Job) -> bool:
    run = job.run
    return job.state is JobState.RUN and run is not None and run.verdict is None and not run.refused and not job.preempted_for


def check_job(cluster: Cluster, name: str, user: str, hosts: Iterable[str]) -> None:
    """bsub -U: raises Refused unless the reservation exists and the user may use it."""
    row = cluster.reservations.rows.get(name)
    if row is None:
        raise Refused(f"{name}: Bad reservation ID")
    if not may_use(cluster.conf, row, user):
        raise Refused(f"{name}: User permission denied")
    own = {host for host, _ in row.hosts}
    outside = [host for host in hosts if host not in own]
    if outside:
        raise Refused(f"{outside[0]}: Host does not belong to the specified advance reservation")
