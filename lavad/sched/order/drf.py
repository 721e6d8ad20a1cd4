"""What the cluster has in all of each resource that a dominant share can be of (Ghodsi et al., DRF).

Rule: DOMINANT_RESOURCES of a queue (lava's own) replaces LSF's dynamic priority: whoever has the smallest share, over
the shares assigned, of the resource that they have most of, is served first. In a tree this holds level by level.
"""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster


def totals(cluster: Cluster) -> dict[str, float]:
    """Slots, memory in MB and GPUs of all hosts."""
    slots = mem = gpus = 0
    for name, host in cluster.hosts.rows.items():
        most = cluster.slots_of(name)
        slots += host.facts.ncpus if most < 0 else most
        mem += host.facts.max_mem
        gpus += len(host.facts.gpus)
    return {"slots": float(slots), "mem": float(mem), "gpus": float(gpus)}
