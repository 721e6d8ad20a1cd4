"""The number that a spec has, or gets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

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


def together(cluster: Cluster, decided: Iterable[Sequence[ev.Event]]) -> list[ev.Event]:
    """The events about several jobs, each decided on the same state; each new spec gets a number of its own."""
    found: list[ev.Event] = []
    numbers: dict[Spec, int] = {}
    for events in decided:
        moved: dict[int, int] = {}
        for event in events:
            if isinstance(event, ev.SpecAdded):
                known = numbers.get(event.value)
                number = moved[event.spec] = cluster.next_spec + len(numbers) if known is None else known
                if known is None:
                    numbers[event.value] = number
                    found.append(replace(event, spec=number))
            elif isinstance(event, ev.JobRequeued) and event.spec in moved:
                found.append(replace(event, spec=moved[event.spec]))
            else:
                found.append(event)
    return found
