"""Folds of events about the master, its configuration, hosts, queues and specs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import job as ev
from lavad.core.lang.states import HostState
from lavad.core.site.conf import QueueAdmin
from lavad.core.site.host import Host


def _master_started(cluster: Cluster, event: ev.MasterStarted) -> None:
    cluster.epoch = event.epoch
    cluster.incarnation = event.incarnation


def _configured(cluster: Cluster, event: ev.Configured) -> None:
    cluster.configure(event.conf)
    for host in event.conf.hosts:
        if host.name not in cluster.hosts.rows:
            cluster.hosts.put(host.name, Host(name=host.name, since=event.at))


def _spec_added(cluster: Cluster, event: ev.SpecAdded) -> None:
    cluster.specs.put(event.spec, event.value)
    cluster.spec_numbers[event.value] = event.spec
    if event.spec not in cluster.spec_jobs:
        cluster.idle_specs[event.spec] = None
    cluster.next_spec = max(cluster.next_spec, event.spec + 1)


def _host(cluster: Cluster, name: str) -> Host:
    return cluster.hosts.rows.get(name) or Host(name=name)


def _host_joined(cluster: Cluster, event: ev.HostJoined) -> None:
    host = _host(cluster, event.host)
    cluster.hosts.put(event.host, replace(host, facts=event.facts, joined=host.joined or event.at))


def _host_up(cluster: Cluster, event: ev.HostUp) -> None:
    cluster.hosts.put(event.host, replace(_host(cluster, event.host), state=HostState.OK, since=event.at))


def _host_down(cluster: Cluster, event: ev.HostDown) -> None:
    cluster.hosts.put(event.host, replace(_host(cluster, event.host), state=HostState.UNAVAIL, since=event.at))


def _host_left(cluster: Cluster, event: ev.HostLeft) -> None:
    if event.host in cluster.hosts.rows:
        cluster.hosts.drop(event.host)


def _host_switched(cluster: Cluster, event: ev.HostSwitched) -> None:
    host = _host(cluster, event.host)
    closed_by = event.by if event.closed else ""
    cluster.hosts.put(event.host, replace(host, closed=event.closed, closed_by=closed_by, comment=event.comment))


def _queue_switched(cluster: Cluster, event: ev.QueueSwitched) -> None:
    row = QueueAdmin(name=event.queue, open=event.open, active=event.active, by=event.by, comment=event.comment)
    cluster.queues.put(event.queue, row)


def _group_set(cluster: Cluster, event: ev.GroupSet) -> None:
    cluster.groups.put(event.value.name, event.value)


def _group_dropped(cluster: Cluster, event: ev.GroupDropped) -> None:
    if event.group in cluster.groups.rows:
        cluster.groups.drop(event.group)


def _reservation_set(cluster: Cluster, event: ev.ReservationSet) -> None:
    cluster.reservations.put(event.value.name, event.value)


def _reservation_ended(cluster: Cluster, event: ev.ReservationEnded) -> None:
    if event.name in cluster.reservations.rows:
        cluster.reservations.drop(event.name)


FOLDS: dict[type[ev.Event], Callable[[Cluster, Any], None]] = {
    ev.MasterStarted: _master_started,
    ev.Configured: _configured,
    ev.SpecAdded: _spec_added,
    ev.HostJoined: _host_joined,
    ev.HostUp: _host_up,
    ev.HostDown: _host_down,
    ev.HostLeft: _host_left,
    ev.HostSwitched: _host_switched,
    ev.QueueSwitched: _queue_switched,
    ev.GroupSet: _group_set,
    ev.GroupDropped: _group_dropped,
    ev.ReservationSet: _reservation_set,
    ev.ReservationEnded: _reservation_ended,
}
