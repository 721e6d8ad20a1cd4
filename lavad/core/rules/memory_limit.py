"""The memory limits of jobs with -M auto: the first one, and the most that one becomes. Pure; sizes in KB."""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import Spec


def first_limit(cluster: Cluster, spec: Spec) -> int:
    """The limit that a job begins with where nothing is learnt: its own, or LAVA_MEMORY_FIRST."""
    return min(spec.limits.mem or cluster.conf.params.lava_memory_first, most_memory(cluster, spec))


def learnt_limit(cluster: Cluster, spec: Spec, what: str) -> int | None:
    """The limit that a job of this program begins with; None: nothing is learnt."""
    known = cluster.learnt.rows.get(spec.user)
    limit = known.limit(what) if known is not None else None
    return None if limit is None else min(limit, most_memory(cluster, spec))


def next_limit(cluster: Cluster, spec: Spec, limit: int) -> int:
    """Twice the limit that a job has reached, or the most that there is: then the same again if it had that."""
    return max(limit, min(2 * limit, most_memory(cluster, spec)))


def most_memory(cluster: Cluster, spec: Spec) -> int:
    """By LAVA_MEMORY_MAX, the hard limits of queue and application profile, and the largest host that the job may use."""
    conf, hosts = cluster.conf, cluster.hosts.rows
    names = conf.groups_of_hosts.preferences(spec.hosts, hosts) if spec.hosts else hosts
    largest = max((hosts[name].facts.max_mem for name in names), default=0) * 1024
    queue, app = cluster.queue_conf.get(spec.queue), conf.app_conf.get(spec.app)
    hard = [one.limits.mem for one in (queue, app) if one is not None]
    return min((most for most in (conf.params.lava_memory_max, largest, *hard) if most), default=spec.limits.mem or 2**53 - 1)
