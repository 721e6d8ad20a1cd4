"""Which jobs are over: nothing of them runs, and none will run again unless somebody asks for that."""

from __future__ import annotations

from collections.abc import Iterable

from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.states import FINAL


def which_are_over(cluster: Cluster, keys: Iterable[int]) -> list[int]:
    """Those of the jobs, elements and (by its number alone) arrays; one that the cluster does not know is over."""
    return [key for key in keys if _is_over(cluster, key)]


def _is_over(cluster: Cluster, key: int) -> bool:
    if (job := cluster.find_job(key)) is not None:
        return job.state in FINAL
    array, index = cluster.find_array(key), key >> 32
    if array is None or not index:
        return array is None
    return not (index in array.pending or index in array.held)
