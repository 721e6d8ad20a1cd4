"""The lease of a rerunnable or checkpointable job, and the margin after it: its queue's, else the cluster's."""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import Spec


def lease_of(cluster: Cluster, spec: Spec) -> float:
    """Seconds for which an attempt may live on without news from the master; 0.0: no lease, and it never runs twice."""
    if not spec.rerunnable and spec.checkpoint is None:
        return 0.0
    queue = cluster.queue_conf.get(spec.queue)
    return float(cluster.conf.params.lava_lease if queue is None or queue.lease is None else queue.lease)


def shortest_lease(cluster: Cluster) -> float:
    """The shortest lease that any job of the site may have, in seconds."""
    own = (queue.lease for queue in cluster.conf.queues if queue.lease is not None)
    return float(min((cluster.conf.params.lava_lease, *own)))


def margin_of(cluster: Cluster, spec: Spec) -> float:
    """Seconds between the end of a lease and the start elsewhere."""
    queue = cluster.queue_conf.get(spec.queue)
    return float(cluster.conf.params.lava_lease_margin if queue is None or queue.lease_margin is None else queue.lease_margin)
