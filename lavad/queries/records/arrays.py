"""An array: its elements by index, equal neighbours as one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lavad.core.job.job import Array
from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import index_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState
from lavad.queries.facts import visibility
from lavad.queries.frame.request import Request
from lavad.queries.records import asked, rows
from lavad.store.asked import Find
from proto.records import Elements

MOST_RUNS = 100_000


def read(request: Request) -> Elements:
    view, word = request.view, asked.name(request)
    number = int(word) if word.isascii() and word.isdigit() and len(word) < 11 else 0
    array = request.cluster.arrays.rows.get(number) or view.reader.finished_array(number)
    if array is None or not visibility.sees(request, view.spec(array), False):
        raise Refused(f"Job <{word}> is not found, or no array")
    live = number in request.cluster.arrays.rows
    spec = view.spec(array)
    states = _states(request, array, live)
    counts = rows.elements_of(view, array) if live else rows.counts_of(Counter(states.values()))
    runs = list(_runs(array, states, live))
    return Elements(
        id=word,
        name=array.spec_text or array.name,
        user=spec.user,
        queue=spec.queue,
        limit=array.limit,
        counts=counts,
        runs=runs[:MOST_RUNS],
    )


def _states(request: Request, array: Array, live: bool) -> dict[int, JobState]:
    """Index to state of the elements that are not untouched."""
    jobs = request.cluster.jobs.rows
    found = {index_of(row.key): row.state for row in request.view.reader.finished_jobs(Find(keys=(array.job,)))}
    if live:
        found |= {index_of(key): jobs[key].state for key in request.cluster.elements.get(array.job, ())}
    return found


def _runs(array: Array, states: dict[int, JobState], live: bool) -> Iterator[tuple[int, int, str]]:
    """Of untouched elements the spans, of the others neighbours of the same state."""
    spans: list[tuple[int, int, str]] = []
    for ranges, state in ((array.pending, "PEND"), (array.held, "PSUSP")) if live else ():
        spans += _spans(ranges, state)
    spans += [(index, index, state.name) for index, state in states.items() if not live or not _untouched(array, index)]
    last: tuple[int, int, str] | None = None
    for first, until, name in sorted(spans):
        if last is not None and last[2] == name and first == last[1] + 1:
            last = (last[0], until, name)
            continue
        if last is not None:
            yield last
        last = (first, until, name)
    if last is not None:
        yield last


def _untouched(array: Array, index: int) -> bool:
    return index in array.pending or index in array.held


def _spans(ranges: Ranges, state: str) -> Iterator[tuple[int, int, str]]:
    for first, last, step in ranges.parts:
        if step == 1:
            yield first, last, state
        else:
            yield from ((index, index, state) for index in range(first, last + 1, step))
