"""What a job went through, from its events: the time in each state, and bhist's sentences.

Rule: times are whole seconds between events, as LSF counts them, so the columns add up to the total.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from lavad.core import events as ev
from lavad.core.lang.ids import index_of, job_of
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.core.lang.states import FINAL, JobState
from lavad.queries.frame import formats
from lavad.queries.frame.request import Request, Shown, err

COLUMNS = ("PEND", "PSUSP", "RUN", "USUSP", "SSUSP", "UNKWN")
_COLUMN = {JobState.ZOMBI: "UNKWN", JobState.WAIT: "PEND"}

_LEADS_TO: dict[type[ev.Event], JobState] = {
    ev.JobHeld: JobState.PSUSP,
    ev.ElementsHeld: JobState.PSUSP,
    ev.JobReleased: JobState.PEND,
    ev.ElementsReleased: JobState.PEND,
    ev.JobLost: JobState.UNKWN,
}
"""Events that lead to one state, whatever they say."""
_OF_EACH = (ev.JobModified, ev.JobSwitched, ev.MessagePosted)
"""A command about a whole array has one for the array, and one for each element that has a record of its own."""
FEW = 64
"""Elements of an event that are noted one by one."""


class History:
    """The events of one job id, by array element."""

    def __init__(self, events: Iterable[tuple[int, ev.Event]]) -> None:
        self._whole: list[tuple[int, ev.Event]] = []
        """Of the job, or the array."""
        self._wide: list[tuple[int, ev.Event]] = []
        """Of these, what may concern any element."""
        self._own: dict[int, list[tuple[int, ev.Event]]] = {}
        for number, event in events:
            if not isinstance(event, ev.JobEvent):
                continue
            index = index_of(event.key)
            about = (index,) if index else _few(event)
            for one in about:
                self._own.setdefault(one, []).append((number, event))
            if not index:
                self._whole.append((number, event))
            if not about:
                self._wide.append((number, event))

    def of(self, key: int) -> list[ev.Event]:
        """The events that concern one job or element, in order."""
        index = index_of(key)
        if not index:
            return _without_news_of_the_past([event for _, event in self._whole])
        mine = [(number, event) for number, event in self._wide if _concerns(event, index)]
        own = self._own.get(index)
        if own:
            told = {(type(event), event.at) for _, event in own if isinstance(event, _OF_EACH)}
            mine = [row for row in mine if (type(row[1]), row[1].at) not in told]
            mine = sorted([*mine, *own], key=lambda row: row[0])
        return _without_news_of_the_past([event for _, event in mine])


def _few(event: ev.JobEvent) -> Ranges:
    """The elements that an event of an array is about, where these are few: a user may end each by a command of its own, and what
    is asked of every element must not grow with the others.
    """
    if isinstance(event, (ev.ElementsHeld, ev.ElementsReleased, ev.ElementsKilled)) and len(event.elements) <= FEW:
        return event.elements
    return EMPTY


def _without_news_of_the_past(events: Sequence[ev.Event]) -> list[ev.Event]:
    """Without the loss and the return of a host after the job had ended there, of which the master heard by that return."""
    kept: list[ev.Event] = []
    over = math.inf
    for event in reversed(events):
        if isinstance(event, ev.JobFinished | ev.JobRequeued):
            over = time_of(event)
        elif isinstance(event, ev.JobDispatched):
            over = math.inf
        if not (isinstance(event, ev.JobLost | ev.JobFound) and event.at > over):
            kept.append(event)
    return kept[::-1]


def _concerns(event: ev.Event, index: int) -> bool:
    if isinstance(event, (ev.ElementsHeld, ev.ElementsReleased, ev.ElementsKilled)):
        return index in event.elements
    return True


def _began(event: ev.JobResumed | ev.PartStarted) -> float:
    """When it ran from then on; the master may have heard of a start late."""
    return event.started or event.at if isinstance(event, ev.PartStarted) else event.at


def time_of(event: ev.Event) -> float:
    """When it happened; the master may have heard of an end late."""
    return ev.over_at(event) if isinstance(event, (ev.JobFinished, ev.JobRequeued)) else event.at


def moves(events: Iterable[ev.Event]) -> Iterator[tuple[float, JobState]]:
    """Each change of state: (time, new state)."""
    before = JobState.RUN
    waits = False
    for event in events:
        if isinstance(event, ev.JobFinished | ev.JobRequeued) and waits and event.end is not None and event.end.started:
            yield event.end.started, JobState.RUN
        if isinstance(event, ev.JobSubmitted):
            yield event.at, JobState.PSUSP if event.held else JobState.PEND
        elif (to := _LEADS_TO.get(type(event))) is not None:
            yield event.at, to
        elif isinstance(event, ev.ElementsKilled):
            yield event.at, event.state
        elif isinstance(event, ev.JobRevived):
            yield event.at, event.job.state
        elif isinstance(event, ev.JobDispatched):
            waits = event.waits
            before = JobState.WAIT if waits else JobState.RUN
            yield event.at, before
        elif isinstance(event, ev.JobResumed) or (waits and isinstance(event, ev.PartStarted)):
            before, waits = JobState.RUN, False
            yield _began(event), before
        elif isinstance(event, (ev.JobSuspended, ev.JobFound)):
            before = event.state
            yield event.at, before
        elif isinstance(event, (ev.JobRequeued, ev.JobFinished)):
            yield time_of(event), event.state


class Times:
    """Seconds in each state up to its end, or up to now."""

    def __init__(self, events: Iterable[ev.Event], now: float) -> None:
        self.seconds = dict.fromkeys(COLUMNS, 0)
        self.end = now
        self.dispatched = 0.0
        spans: list[tuple[float, JobState]] = []
        for at, to in moves(events):
            # what was done to it between its end and the report of that
            while len(spans) > 1 and spans[-1][0] > at:
                spans.pop()
            spans.append((at, to))
            if to is JobState.RUN and not self.dispatched:
                self.dispatched = at
        if spans and spans[-1][1] in FINAL:
            self.end = spans[-1][0]
        for (since, state), (until, _) in pairwise([*spans, (self.end, JobState.DONE)]):
            if state not in FINAL:
                self.seconds[_COLUMN.get(state, state.name)] += max(int(until) - int(since), 0)

    @property
    def total(self) -> int:
        """Seconds from submission to the end, or to now."""
        return sum(self.seconds.values())


def gone_since(request: Request, ids: Collection[int] | None) -> Iterator[Shown]:
    """Where jobs were asked for by ids that may have been in the store: up to when the store has forgotten jobs."""
    since = request.view.reader.kept_since() if ids else 0.0
    if since and any(0 < job_of(key) < request.cluster.next_job for key in ids or ()):
        yield err(f"Jobs that ended before {formats.full_time(since)} are no longer kept (LAVA_HISTORY_DAYS)")
