"""The number that a spec has, or gets."""

from __future__ import annotations

from collections import Counter
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


def with_specs(cluster: Cluster, added: Iterable[ev.Event], events: Iterable[ev.Event]) -> list[ev.Event]:
    """The events, each spec that they give to jobs added right before those that give it to the first, and no other.

    Before that no job has it, and such a spec may be dropped whenever another loses its last job, as many of a command may. So
    one that is there, but that no job has, is added again, also where these events themselves took it from its last job.
    """
    new = {event.spec: event for event in added if isinstance(event, ev.SpecAdded)}
    found: list[ev.Event] = []
    more: Counter[int] = Counter()
    """Spec to how many jobs more have it than before."""
    given: dict[int, int] = {}
    for event in events:
        if isinstance(event, ev.SpecAdded):
            continue
        if isinstance(event, ev.JobSwitched | ev.JobModified):
            number = event.spec
            if cluster.spec_jobs.get(number, 0) + more[number] <= 0:
                known = new.get(number)
                found.append(known or ev.SpecAdded(at=event.at, spec=number, value=cluster.specs.rows[number]))
            more[number] += 1
            row = cluster.jobs.rows.get(event.key) or cluster.arrays.rows.get(event.key)
            if row is not None:  # of an untouched element its array keeps the old one
                more[given.get(event.key, row.spec)] -= 1
            given[event.key] = number
        found.append(event)
    return found


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
