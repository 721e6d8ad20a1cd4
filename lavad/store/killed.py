"""The finished records of untouched elements that were killed: they had none of their own until now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lavad.core.events import ElementsKilled, Event
from lavad.core.job.job import Array, Job, Outcome
from lavad.core.lang.states import JobState


def killed_jobs(events: Iterable[Event], arrays: dict[int, Array]) -> Iterator[Job]:
    """One EXIT record per killed element, from its array's (last) record."""
    for event in events:
        if isinstance(event, ElementsKilled):
            yield from _expand(event, arrays[event.key & 0xFFFFFFFF])


def _expand(event: ElementsKilled, array: Array) -> Iterator[Job]:
    outcome = Outcome(at=event.at, reason=event.reason)
    for index in event.elements:
        yield Job(
            key=index << 32 | array.job,
            spec=array.spec,
            name=f"{array.name}[{index}]",
            submitted=array.submitted,
            state=JobState.EXIT,
            since=event.at,
            position=array.position,
            queue_time=array.queue_time,
            outcome=outcome,
        )
