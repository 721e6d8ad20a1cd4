"""The number that a spec has, or gets."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import Spec


def spec_number(cluster: Cluster, spec: Spec, events: list[ev.Event], now: float) -> int:
    """The number of an equal live spec, or a new one (then an event adds it)."""
    known = cluster.spec_numbers.get(spec)
    if known is not None:
        return known
    for event in events:
        if isinstance(event, ev.SpecAdded) and event.value == spec:
            return event.spec
    number = cluster.next_spec + sum(isinstance(event, ev.SpecAdded) for event in events)
    events.append(ev.SpecAdded(at=now, spec=number, value=spec))
    return number
