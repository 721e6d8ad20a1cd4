"""Decisions of a master about itself: taking office, a new configuration, extended leases of hosts."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.lang.asks import Caller, Refused
from lavad.core.site.conf import Conf
from lavad.core.site.rights import is_admin

MAX_EXTENSION = 86_400.0
"""Maximum of seconds by which badmin lease extend delays the fencing of hosts."""


def take_office(cluster: Cluster, now: float, started: ev.MasterStarted, conf: Conf) -> Decided:
    """The first commit of a master. ``started.incarnation`` is used only for a store that has none yet."""
    incarnation = cluster.incarnation or started.incarnation
    first = ev.MasterStarted(at=now, epoch=started.epoch, incarnation=incarnation, host=started.host)
    return Decided(events=[first, *configure(cluster, now, conf).events])


def configure(cluster: Cluster, now: float, conf: Conf) -> Decided:
    """Put a configuration in force, if it differs from the current one."""
    return Decided(events=[ev.Configured(at=now, conf=conf)] if cluster.conf != conf else [])


def check_reconfig(cluster: Cluster, caller: Caller) -> None:
    """Whether the caller may run badmin reconfig; raises Refused."""
    if not is_admin(cluster.conf, caller):
        raise Refused("User permission denied")


def check_extension(cluster: Cluster, caller: Caller, seconds: float) -> None:
    """Whether the caller may extend the leases by ``seconds``; raises Refused."""
    if not is_admin(cluster.conf, caller):
        raise Refused("User permission denied")
    if not 0 < seconds <= MAX_EXTENSION:
        raise Refused(f"{seconds:g}: a lease is extended by up to {MAX_EXTENSION:g} seconds")
