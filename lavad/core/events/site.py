"""Events that are about no single job: masters, configuration, hosts, queues, job groups, advance reservations, specs."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.events.base import Event, folds
from lavad.core.job.groups import JobGroup
from lavad.core.job.spec import Spec
from lavad.core.lang.states import HostState
from lavad.core.site.conf import Conf, QueueAdmin
from lavad.core.site.host import BY, HELD_BY_PROCESS, ClosedGpu, Facts, Host
from lavad.core.site.reservation import Reservation
from lavad.core.site.service_classes import MissedGoals


class MasterStarted(Event, frozen=True):
    """A master took over with this epoch; ``incarnation`` changes when the store is a new or restored one."""

    epoch: int
    incarnation: str
    host: str = ""


@folds(MasterStarted)
def _master_started(cluster: Cluster, event: MasterStarted) -> None:
    cluster.epoch = event.epoch
    cluster.incarnation = event.incarnation
    cluster.master_since = event.at


class StoreRestored(Event, frozen=True):
    """The store was restored from a backup, as a new incarnation; what happened after the backup is not in it.

    ``next_job``: a number above all that may have been given since.
    """

    external: ClassVar[bool] = True

    incarnation: str
    former: dict[str, float]
    """Incarnations that it goes on for, with the times of the backups, in seconds since the epoch."""
    next_job: int


@folds(StoreRestored)
def _store_restored(cluster: Cluster, event: StoreRestored) -> None:
    cluster.incarnation = event.incarnation
    cluster.former = event.former
    cluster.next_job = max(cluster.next_job, event.next_job)


class Configured(Event, frozen=True):
    """A new configuration is in force."""

    external: ClassVar[bool] = True

    conf: Conf


@folds(Configured)
def _configured(cluster: Cluster, event: Configured) -> None:
    cluster.configure(event.conf)
    for host in event.conf.hosts:
        if host.name not in cluster.hosts.rows:
            cluster.hosts.put(host.name, Host(name=host.name, since=event.at))


class SpecAdded(Event, frozen=True):
    """A spec was added under a number."""

    external: ClassVar[bool] = True

    spec: int
    value: Spec


@folds(SpecAdded)
def _spec_added(cluster: Cluster, event: SpecAdded) -> None:
    cluster.specs.put(event.spec, event.value)
    cluster.spec_numbers[event.value] = event.spec
    if event.spec not in cluster.spec_jobs:
        cluster.idle_specs[event.spec] = None
    cluster.next_spec = max(cluster.next_spec, event.spec + 1)


class HostJoined(Event, frozen=True):
    """A host's agent reported its facts (for the first time, or they changed)."""

    external: ClassVar[bool] = True

    host: str
    facts: Facts


@folds(HostJoined)
def _host_joined(cluster: Cluster, event: HostJoined) -> None:
    host = _host(cluster, event.host)
    cluster.hosts.put(event.host, replace(host, facts=event.facts, joined=host.joined or event.at))


class HostUp(Event, frozen=True):
    """The agent of the host has connected."""

    external: ClassVar[bool] = True

    host: str


@folds(HostUp)
def _host_up(cluster: Cluster, event: HostUp) -> None:
    host = _host(cluster, event.host)
    cluster.hosts.put(event.host, replace(host, state=HostState.OK, since=event.at, up=_up(host, event.at)))


def _up(host: Host, at: float) -> float:
    """Seconds that it has been up by then; an agent may connect again without having been given up."""
    return host.up + (max(0.0, at - host.since) if host.state is HostState.OK and host.since else 0.0)


class HostDown(Event, frozen=True):
    """The host has been silent for longer than its timeout."""

    external: ClassVar[bool] = True

    host: str


@folds(HostDown)
def _host_down(cluster: Cluster, event: HostDown) -> None:
    host = _host(cluster, event.host)
    planned = host.closed and not host.is_faulty
    failures = host.failures + (host.state is HostState.OK and not planned)
    cluster.hosts.put(
        event.host, replace(host, state=HostState.UNAVAIL, since=event.at, up=_up(host, event.at), failures=failures)
    )


class HostFenced(Event, frozen=True):
    """LAVA_FENCE was run for a silent host; ``ok``: nothing runs there any more."""

    external: ClassVar[bool] = True

    host: str
    ok: bool
    how: str
    text: str = ""
    """The end of what it wrote."""


@folds(HostFenced)
def _host_fenced(cluster: Cluster, event: HostFenced) -> None:
    """What follows is in the events of the jobs."""


class LeasesExtended(Event, frozen=True):
    """No lease ends, and no host is given up, for ``seconds``. Without ``by``: what is left of them, as the master noted it."""

    external: ClassVar[bool] = True

    seconds: float
    by: str = ""


@folds(LeasesExtended)
def _leases_extended(cluster: Cluster, event: LeasesExtended) -> None:
    cluster.extended = (event.at, event.seconds)


class ExceptionsTold(Event, frozen=True):
    """Administrators were told of exceptions: of those of jobs that ended before ``until``, and of these of jobs that run."""

    external: ClassVar[bool] = True

    until: float
    jobs: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """(key, all exceptions of its attempt of which they have been told)."""


@folds(ExceptionsTold)
def _exceptions_told(cluster: Cluster, event: ExceptionsTold) -> None:
    cluster.exceptions_told = max(cluster.exceptions_told, event.until)
    for key, names in event.jobs:
        job = cluster.jobs.rows.get(key)
        if job is not None and job.run is not None:
            cluster.jobs.put(key, replace(job, run=replace(job.run, exceptions=names)))


class GoalsMissed(Event, frozen=True):
    """Which goals of service classes are missed, and since when their violation periods count; all others are reached."""

    external: ClassVar[bool] = True

    missed: MissedGoals


@folds(GoalsMissed)
def _goals_missed(cluster: Cluster, event: GoalsMissed) -> None:
    cluster.goals_missed = event.missed


class HostLeft(Event, frozen=True):
    """The host has left the cluster: the configuration no longer names it, and nothing on it is in use."""

    external: ClassVar[bool] = True

    host: str
    why: str = ""


@folds(HostLeft)
def _host_left(cluster: Cluster, event: HostLeft) -> None:
    if event.host in cluster.hosts.rows:
        cluster.hosts.drop(event.host)


class HostSwitched(Event, frozen=True):
    """An administrator, or the master by itself, opened or closed a host."""

    external: ClassVar[bool] = True

    host: str
    closed: bool
    by: str
    comment: str = ""
    cause: str = ""
    """Of a host that the master has closed by itself: for what, as ``Host.closed_for``."""


@folds(HostSwitched)
def _host_switched(cluster: Cluster, event: HostSwitched) -> None:
    host = _host(cluster, event.host)
    by, cause = (event.by, event.cause) if event.closed else ("", "")
    row = replace(host, closed=event.closed, closed_by=by, closed_for=cause, comment=event.comment)
    cluster.hosts.put(event.host, row)


class GpuSwitched(Event, frozen=True):
    """An administrator, or the master by itself, opened or closed a GPU of a host."""

    external: ClassVar[bool] = True

    host: str
    gpu: str
    """Its UUID."""
    closed: bool
    by: str
    comment: str = ""
    cause: str = ""
    """Of one that the master has closed by itself: for what (``core.decide.report.gpus``)."""


@folds(GpuSwitched)
def _gpu_switched(cluster: Cluster, event: GpuSwitched) -> None:
    host = _host(cluster, event.host)
    closed = tuple(one for one in host.closed_gpus if one.uuid != event.gpu)
    opened = tuple(one for one in host.opened_gpus if one.uuid != event.gpu)
    before = next((one for one in host.closed_gpus if one.uuid == event.gpu), None)
    if HELD_BY_PROCESS in (event.cause, before.cause if before is not None and event.by == BY else ""):
        opened = host.opened_gpus  # a process that holds it, and lets go of it, says nothing of its health
    if event.closed:
        closed += (ClosedGpu(uuid=event.gpu, at=event.at, by=event.by, why=event.comment, cause=event.cause),)
    elif event.by != BY:
        opened += tuple(one for one in host.closed_gpus if one.uuid == event.gpu and one.by == BY)
    cluster.hosts.put(event.host, replace(host, closed_gpus=closed, opened_gpus=opened))


def _host(cluster: Cluster, name: str) -> Host:
    return cluster.hosts.rows.get(name) or Host(name=name)


class QueueSwitched(Event, frozen=True):
    """An administrator opened, closed, activated or inactivated a queue."""

    external: ClassVar[bool] = True

    queue: str
    open: bool
    active: bool
    by: str
    comment: str = ""
    what: str = ""
    """What was asked: ``qopen``, ``qclose``, ``qact``, ``qinact``."""


@folds(QueueSwitched)
def _queue_switched(cluster: Cluster, event: QueueSwitched) -> None:
    row = QueueAdmin(name=event.queue, open=event.open, active=event.active, by=event.by, comment=event.comment)
    cluster.queues.put(event.queue, row)


class GroupSet(Event, frozen=True):
    """A job group was added, or its limit changed."""

    external: ClassVar[bool] = True

    value: JobGroup
    by: str = ""


@folds(GroupSet)
def _group_set(cluster: Cluster, event: GroupSet) -> None:
    cluster.groups.put(event.value.name, event.value)


class GroupDropped(Event, frozen=True):
    """A job group was deleted."""

    external: ClassVar[bool] = True

    group: str


@folds(GroupDropped)
def _group_dropped(cluster: Cluster, event: GroupDropped) -> None:
    if event.group in cluster.groups.rows:
        cluster.groups.drop(event.group)


class AdvanceReservationSet(Event, frozen=True, tag="ReservationSet"):
    """An advance reservation was added or changed, or moved on to its next period."""

    external: ClassVar[bool] = True

    value: Reservation
    by: str = ""


@folds(AdvanceReservationSet)
def _advance_reservation_set(cluster: Cluster, event: AdvanceReservationSet) -> None:
    cluster.reservations.put(event.value.name, event.value)


class AdvanceReservationEnded(Event, frozen=True, tag="ReservationEnded"):
    """An advance reservation is over, or was deleted."""

    external: ClassVar[bool] = True

    name: str
    by: str = ""


@folds(AdvanceReservationEnded)
def _advance_reservation_ended(cluster: Cluster, event: AdvanceReservationEnded) -> None:
    if event.name in cluster.reservations.rows:
        cluster.reservations.drop(event.name)
