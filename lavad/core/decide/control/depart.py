"""Hosts that leave the cluster: removed from the configuration, or dynamic hosts that have been silent for long.

Rule: jobs are not disturbed. Such a host gets no new jobs, and leaves when nothing on it is in use or reserved. One that is
named again before, or heard again, is open again, unless somebody else has closed it.
"""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.states import HostState
from lavad.core.site.conf import Conf
from lavad.core.site.host import BY, LEAVING


def departing(cluster: Cluster, host: str, now: float) -> str:
    """Why the host must leave; "": it stays."""
    row = cluster.hosts.rows.get(host)
    if row is None or host in cluster.host_conf:
        return ""
    conf = cluster.conf
    if why := _why_unknown(conf):
        return why
    silent = row.state is not HostState.OK and row.joined
    if silent and 0 < conf.params.lsf_dynamic_host_timeout < now - row.since:
        return f"it was silent for {conf.params.lsf_dynamic_host_timeout:g} seconds"
    return ""


def _why_unknown(conf: Conf) -> str:
    """Why a host that a configuration does not name must leave; "": it may stay."""
    return f"it is not in lsf.cluster.{conf.cluster}" if conf.hosts and not conf.params.open_hosts else ""


def close_unknown(cluster: Cluster, conf: Conf, now: float) -> list[ev.Event]:
    """Close the hosts that must leave with a new configuration: not one more job starts on them."""
    why = _why_unknown(conf)
    named = {host.name for host in conf.hosts}
    gone = [name for name, row in cluster.hosts.rows.items() if why and name not in named and not row.closed]
    return [_leaving(name, why, now) for name in gone]


def _leaving(host: str, why: str, now: float) -> ev.Event:
    comment = f"{why}; it leaves when its jobs have ended"
    return ev.HostSwitched(at=now, host=host, closed=True, by=BY, comment=comment, cause=LEAVING)


def is_due(cluster: Cluster, host: str, now: float) -> bool:
    """Whether the host must leave, or was to leave and stays."""
    return cluster.hosts.rows[host].closed_for == LEAVING or bool(departing(cluster, host, now))


def depart(cluster: Cluster, host: str, now: float) -> list[ev.Event]:
    """Remove the host, or close it until it is unused; open it if it was closed for this and need not leave any more."""
    row = cluster.hosts.rows.get(host)
    if row is None:
        return []
    why = departing(cluster, host, now)
    if not why and row.closed_for == LEAVING:
        return [ev.HostSwitched(at=now, host=host, closed=False, by=BY, comment="it need not leave any more")]
    if not why:
        return []
    if not _is_used(cluster, host):
        return [ev.HostLeft(at=now, host=host, why=why)]
    if row.closed:
        return []
    return [_leaving(host, why, now)]


def _is_used(cluster: Cluster, host: str) -> bool:
    use = cluster.use.hosts.get(host)
    if use is not None and (use.jobs or use.held):
        return True
    return any(host == name for row in cluster.reservations.rows.values() for name, _ in row.hosts)
