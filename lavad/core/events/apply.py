"""``apply(cluster, event)``: the only code that changes a cluster. The same fold serves live running, replicas and a restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import fold_cluster, fold_job, fold_part, fold_resize, fold_task
from lavad.core.events.job import Event

_FOLDS: dict[type[Event], Callable[[Cluster, Any], None]] = {
    **fold_cluster.FOLDS,
    **fold_job.FOLDS,
    **fold_part.FOLDS,
    **fold_task.FOLDS,
    **fold_resize.FOLDS,
}


def apply(cluster: Cluster, event: Event) -> None:
    """Fold one event; raises ``IllegalMove`` (cluster unchanged) where the table of moves forbids it."""
    _FOLDS[type(event)](cluster, event)
    cluster.version += 1
