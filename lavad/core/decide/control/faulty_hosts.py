"""Hosts that the master closes and opens by itself, as jobs fail there or its own health check does."""

from __future__ import annotations

from enum import Enum

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.bounds import MAX_WHY
from lavad.core.site.host import BY

EXITS = "eadmin: JOB EXIT THRESHOLD EXCEEDED"
"""LSF's words."""


class Cause(Enum):
    """Why the master has closed a host. Closed for EXITS it stays closed until ``badmin hopen``, as in LSF."""

    HEALTH = "health"
    STARTS = "starts"
    EXITS = "exits"


def close_faulty(cluster: Cluster, host: str, cause: Cause, why: str, now: float) -> list[ev.Event]:
    """Close a host that is open; what runs there goes on."""
    row = cluster.hosts.rows.get(host)
    if row is None or row.closed:
        return []
    return [ev.HostSwitched(at=now, host=host, closed=True, by=BY, comment=why[:MAX_WHY], cause=cause.value)]


def open_again(cluster: Cluster, host: str, cause: Cause, why: str, now: float) -> list[ev.Event]:
    """Open a host that was closed for this, unless somebody else has closed it meanwhile."""
    row = cluster.hosts.rows.get(host)
    if row is None or not row.closed or row.closed_for != cause.value:
        return []
    return [ev.HostSwitched(at=now, host=host, closed=False, by=BY, comment=why)]
