"""Decisions of a master about itself: taking office, a new configuration, extended leases of hosts."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import decides
from lavad.core.decide.control.depart import close_unknown
from lavad.core.lang.asks import Caller, Lease, Refused
from lavad.core.site.conf import Conf
from lavad.core.site.rights import why_not_admin

MAX_EXTENSION = 86_400.0
"""Maximum of seconds by which badmin lease extend delays the fencing of hosts."""


def take_office(cluster: Cluster, now: float, started: ev.MasterStarted, conf: Conf) -> Decided:
    """The first commit of a master. ``started.incarnation`` is used only for a store that has none yet."""
    incarnation = cluster.incarnation or started.incarnation
    first = ev.MasterStarted(at=now, epoch=started.epoch, incarnation=incarnation, host=started.host)
    return Decided(events=[first, *configure(cluster, now, conf).events])


def configure(cluster: Cluster, now: float, conf: Conf) -> Decided:
    """Put a configuration in force, if it differs from the current one."""
    if cluster.conf == conf:
        return Decided(events=[])
    return Decided(events=[ev.Configured(at=now, conf=conf), *close_unknown(cluster, conf, now)])


def check_reconfig(cluster: Cluster, caller: Caller) -> None:
    """Whether the caller may run badmin reconfig; raises Refused."""
    if why := why_not_admin(cluster.conf, caller):
        raise Refused(why)


@decides(Lease)
def extend_leases(cluster: Cluster, ask: Lease, caller: Caller, now: float) -> Decided:
    """badmin lease extend: never shorter than what was granted before, as hosts may count on that already."""
    if why := why_not_admin(cluster.conf, caller):
        raise Refused(why)
    if not 0 < ask.seconds <= MAX_EXTENSION:
        raise Refused(f"{ask.seconds:g}: a lease is extended by up to {MAX_EXTENSION:g} seconds")
    seconds = max(ask.seconds, cluster.extended[1])
    text = f"No job is ended or taken for lost in the next {seconds:g} seconds"
    return Decided(events=[ev.LeasesExtended(at=now, seconds=seconds, by=caller.user)], answer={"text": text})


def note_extension(cluster: Cluster, left: float, now: float) -> Decided:
    """What is left of an extension: the next master begins with it, as nobody can tell how long there was none."""
    return Decided(events=[ev.LeasesExtended(at=now, seconds=left)] if left != cluster.extended[1] else [])
