"""CPU factors (lsf.shared): how fast hosts and models are, and time limits given for one of them on another."""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster


def factor_of(cluster: Cluster, name: str) -> float:
    """The CPU factor of a host or model; 1.0: it is not known."""
    return find_factor(cluster, name) or 1.0


def find_factor(cluster: Cluster, name: str) -> float | None:
    """The CPU factor of a host or model; None for a name that is neither, or a host that has not joined."""
    models = dict(cluster.conf.models)
    if name in models:
        return models[name]
    conf = cluster.host_conf.get(name)
    if conf is not None and conf.model in models:
        return models[conf.model]
    host = cluster.hosts.rows.get(name)
    if host is None:
        return None
    return models.get(host.facts.model, host.facts.cpu_factor or 1.0)


def scale(cluster: Cluster, given_for: str, on: str) -> float:
    """The factor for a time limit given for one host or model (``-W 10/hostA``) on a host; 1.0 where one is not known."""
    if not given_for or given_for == on:
        return 1.0
    given, own = find_factor(cluster, given_for), find_factor(cluster, on)
    return given / own if given and own else 1.0
