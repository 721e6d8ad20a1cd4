"""CPU factors: how fast a host or model is, and what a time limit given for one is on another."""

from __future__ import annotations

from lavad.core.cluster import Cluster


def factor_of(cluster: Cluster, name: str) -> float:
    """The CPU factor of a host or model, 1 if unknown."""
    models = dict(cluster.conf.models)
    if name in models:
        return models[name]
    host = cluster.hosts.rows.get(name)
    conf = cluster.host_conf.get(name)
    if conf is not None and conf.model in models:
        return models[conf.model]
    if host is None:
        return 1.0
    return models.get(host.facts.model, host.facts.cpu_factor or 1.0)


def scale(cluster: Cluster, given_for: str, on: str) -> float:
    """What to multiply a time limit by that is given for one host or model and counts on a host."""
    if not given_for or given_for == on:
        return 1.0
    return factor_of(cluster, given_for) / (factor_of(cluster, on) or 1.0)
