"""What a master decides about itself and its configuration: taking office, another configuration, longer leases of hosts."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.lang.asks import Caller, Refused
from lavad.core.site.conf import Conf
from lavad.core.site.rights import is_admin

MAX_EXTENSION = 86_400.0
"""Seconds by which badmin lease extend puts off the fencing of hosts."""


def take_office(cluster: Cluster, now: float, started: ev.MasterStarted, conf: Conf) -> Decided:
    """The first commit of a master. ``started.incarnation`` names a store that has none yet; an older one keeps its name."""
    incarnation = cluster.incarnation or started.incarnation
    first = ev.MasterStarted(at=now, epoch=started.epoch, incarnation=incarnation, host=started.host)
    return Decided(events=[first, *configure(cluster, now, conf).events])


def configure(cluster: Cluster, now: float, conf: Conf) -> Decided:
    """A configuration, where it differs from the one in force."""
    return Decided(events=[ev.Configured(at=now, conf=conf)] if cluster.conf != conf else [])


def check_reconfig(cluster: Cluster, caller: Caller) -> None:
    """badmin reconfig; raises Refused."""
    if not is_admin(cluster.conf, caller):
        raise Refused("User permission denied")


def check_extension(cluster: Cluster, caller: Caller, seconds: float) -> None:
    """badmin lease extend; raises Refused."""
    if not is_admin(cluster.conf, caller):
        raise Refused("User permission denied")
    if not 0 < seconds <= MAX_EXTENSION:
        raise Refused(f"{seconds:g}: a lease is extended by up to {MAX_EXTENSION:g} seconds")
