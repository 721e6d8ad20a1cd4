"""A cluster as plain values, to say that two are equal: rows, indexes and counters, without what only a scheduler reads."""

from __future__ import annotations

from typing import Any

from lavad.core.cluster.cluster import Cluster


def _nonzero(sums: Any) -> dict[Any, Any]:
    return {key: list(v) if isinstance(v, list) else v for key, v in sums.items() if (any(v) if isinstance(v, list) else v)}


def _hosts(cluster: Cluster) -> dict[str, Any]:
    return {
        name: (use.slots, use.exclusive, dict(use.jobs), {k: round(v, 6) for k, v in use.reserved.items()}, dict(use.gpus.jobs))
        for name, use in cluster.use.hosts.items()
        if use.slots or use.exclusive or use.jobs or use.reserved or use.gpus.jobs
    }


def snapshot(cluster: Cluster) -> dict[str, Any]:
    """All that must be equal in two clusters that are the same."""
    use = cluster.use
    return {
        "version": cluster.version,
        "epoch": cluster.epoch,
        "incarnation": cluster.incarnation,
        "conf": cluster.conf,
        "next": (cluster.next_job, cluster.next_spec),
        "jobs": dict(cluster.jobs.rows),
        "arrays": dict(cluster.arrays.rows),
        "specs": dict(cluster.specs.rows),
        "hosts": dict(cluster.hosts.rows),
        "queues": dict(cluster.queues.rows),
        "pending": {number: set(pending) for number, pending in cluster.pending.items()},
        "elements": {job: set(keys) for job, keys in cluster.elements.items()},
        "spec_jobs": dict(cluster.spec_jobs),
        "spec_numbers": dict(cluster.spec_numbers),
        "idle_specs": set(cluster.idle_specs),
        "by_user": {user: set(keys) for user, keys in cluster.by_user.items()},
        "started": set(cluster.started),
        "held_back": set(cluster.held_back),
        "finished": (dict(cluster.finished), dict(cluster.finished_arrays)),
        "use": {name: _nonzero(getattr(use, name)) for name in ("queues", "users", "pairs", "array_running")},
        "on_hosts": _hosts(cluster),
    }


def difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    """The first thing in which two snapshots differ."""
    for name, value in one.items():
        if value != other[name]:
            return f"{name}: {value} is not {other[name]}"
    return ""
