"""Hosts that leave the cluster: removed from the configuration, or dynamic hosts that have been silent for long.

Rule: jobs are not disturbed. Such a host gets no new jobs, and leaves when nothing on it is in use or reserved.
"""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.states import HostState
from lavad.core.site.host import Host

BY = "lava"


def departing(cluster: Cluster, host: str, now: float) -> str:
    """Why the host must leave; "": it stays."""
    row = cluster.hosts.rows.get(host)
    if row is None or host in cluster.host_conf:
        return ""
    conf = cluster.conf
    if conf.hosts and not conf.params.open_hosts:
        return f"it is not in lsf.cluster.{conf.cluster}"
    silent = row.state is not HostState.OK and row.joined
    if silent and 0 < conf.params.lsf_dynamic_host_timeout < now - row.since:
        return f"it was silent for {conf.params.lsf_dynamic_host_timeout:g} seconds"
    return ""


def depart(cluster: Cluster, host: str, now: float) -> list[ev.Event]:
    """Remove the host, or close it until it is unused."""
    why = departing(cluster, host, now)
    if not why:
        return []
    if not _is_used(cluster, host):
        return [ev.HostLeft(at=now, host=host, why=why)]
    row: Host = cluster.hosts.rows[host]
    if row.closed:
        return []
    return [ev.HostSwitched(at=now, host=host, closed=True, by=BY, comment=f"{why}; it leaves when its jobs have ended")]


def _is_used(cluster: Cluster, host: str) -> bool:
    use = cluster.use.hosts.get(host)
    if use is not None and (use.jobs or use.held):
        return True
    return any(host == name for row in cluster.reservations.rows.values() for name, _ in row.hosts)
