"""``apply(cluster, event)``: the only code that changes a cluster. The same fold serves live running, replicas and a restart."""

from __future__ import annotations

from collections.abc import Sequence

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import EVENTS
from lavad.core.events.base import FOLDS, Event, JobEvent
from lavad.core.events.chunks import pass_on
from lavad.core.events.elements import fold_alike
from lavad.core.events.gang import fold_gang
from lavad.core.events.separate import fold_separate
from lavad.core.lang.ids import index_of

_unfolded = [kind.__name__ for kind in EVENTS if kind not in FOLDS]
if _unfolded:
    raise ImportError(f"events without a fold: {', '.join(_unfolded)}")


def apply(cluster: Cluster, event: Event) -> None:
    """Fold one event; raises ``IllegalMove`` (cluster unchanged) where the event's moves forbid it."""
    FOLDS[type(event)](cluster, event)
    if cluster.use.unheld:
        pass_on(cluster)
    cluster.version += 1


def apply_all(cluster: Cluster, events: Sequence[Event]) -> None:
    """Fold events in their order, with the same result as one by one; raises as ``apply``, with those before the illegal one
    folded."""
    if len(events) == 1:
        apply(cluster, events[0])
        return
    at = 0
    while at < len(events):
        first = events[at]
        fold = fold_alike if isinstance(first, JobEvent) and index_of(first.key) else fold_separate
        count = fold(cluster, events, at) or fold_gang(cluster, events, at)
        if count:
            if cluster.use.unheld:
                pass_on(cluster)
            cluster.version += count
            at += count
        else:
            apply(cluster, first)
            at += 1
