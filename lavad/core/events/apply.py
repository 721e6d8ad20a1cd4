"""``apply(cluster, event)``: the only code that changes a cluster. The same fold serves live running, replicas and a restart."""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import EVENTS
from lavad.core.events.base import FOLDS, Event

_unfolded = [kind.__name__ for kind in EVENTS if kind not in FOLDS]
if _unfolded:
    raise ImportError(f"events without a fold: {', '.join(_unfolded)}")


def apply(cluster: Cluster, event: Event) -> None:
    """Fold one event; raises ``IllegalMove`` (cluster unchanged) where the event's moves forbid it."""
    FOLDS[type(event)](cluster, event)
    cluster.version += 1
