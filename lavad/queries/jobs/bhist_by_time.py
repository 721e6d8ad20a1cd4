"""bhist -t: a paragraph an event of jobs, hosts and queues, in order of time.

Rule: it goes through the history page by page, and keeps what the next sentences about a job need no longer than the job runs:
a week of a busy site is millions of events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lavad.core import events as ev
from lavad.core.job.job import Array, Job
from lavad.core.lang.ids import index_of, job_of, key_of, show
from lavad.queries.facts import visibility
from lavad.queries.facts.cluster_sentences import cluster_sentence
from lavad.queries.facts.sentences import HistoryFormatter
from lavad.queries.frame.request import Request
from lavad.queries.frame.view import View
from lavad.store.asked import Find


def told(request: Request, window: tuple[float, float]) -> Iterator[tuple[ev.Event, str]]:
    """Each event of that time that the caller may read of, with a sentence about it."""
    formatters = _Formatters(request.view)
    restricted = visibility.history_is_restricted(request)
    for page in request.view.reader.events_between(*window):
        events = [event for _, event in page]
        formatters.load(events)
        for event in events:
            if not isinstance(event, ev.JobEvent):
                if sentence := cluster_sentence(event):
                    yield event, sentence
                continue
            formatter = formatters.of(event)
            if not restricted or visibility.sees(request, request.view.spec(formatter.job), detail=True):
                yield from ((event, sentence) for sentence in _sentences(formatter, event))
        formatters.forget(events)


def _sentences(formatter: HistoryFormatter, event: ev.JobEvent) -> Iterator[str]:
    for key in _keys(event):
        for sentence in formatter.sentences(event):
            yield f"Job <{show(key)}> {sentence[0].lower()}{sentence[1:]}"


def _keys(event: ev.JobEvent) -> Iterator[int]:
    """The jobs or elements that an event is about."""
    if isinstance(event, (ev.ElementsHeld, ev.ElementsReleased, ev.ElementsKilled)):
        yield from (key_of(job_of(event.key), index) for index in event.elements)
    else:
        yield event.key


class _Formatters:
    """Those of the jobs of a page, and of jobs that run on."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._by_key: dict[int, HistoryFormatter] = {}

    def of(self, event: ev.JobEvent) -> HistoryFormatter:
        """The one of the event's job or element."""
        return self._by_key[event.key]

    def load(self, events: Iterable[ev.Event]) -> None:
        """Read the jobs of these events that are not known."""
        asked: dict[int, ev.JobEvent] = {}
        for event in events:
            if isinstance(event, ev.JobEvent) and event.key not in self._by_key:
                asked.setdefault(event.key, event)
        arrays = self._arrays({job_of(key) for key in asked})
        live = self._view.cluster.jobs.rows
        found = {key: live[key] for key in asked if key in live}
        # a key without an index names all elements of an array
        ended = tuple(key for key in asked if key not in live and (index_of(key) or key not in arrays))
        found |= {job.key: job for job in self._view.reader.finished_jobs(Find(keys=ended))}
        jobs = [found.get(key) or _unknown(event, arrays.get(job_of(key))) for key, event in asked.items()]
        self._view.load_specs(jobs)
        texts = self._view.texts(jobs)
        self._by_key |= {job.key: HistoryFormatter(self._view, job, texts[job.key], brief=True) for job in jobs}

    def _arrays(self, jobs: set[int]) -> dict[int, Array]:
        live = self._view.cluster.arrays.rows
        found = {job: live[job] for job in jobs if job in live}
        return found | self._view.reader.finished_arrays(jobs - found.keys())

    def forget(self, events: Iterable[ev.Event]) -> None:
        """Keep of the jobs of these events those that have been dispatched, and have not ended since."""
        ended: set[int] = set()
        for event in events:
            if isinstance(event, ev.JobFinished):
                ended.add(event.key)
            elif isinstance(event, ev.JobDispatched):
                ended.discard(event.key)
        self._by_key = {key: of for key, of in self._by_key.items() if of.attempt and key not in ended}


def _unknown(event: ev.JobEvent, array: Array | None) -> Job:
    """A job or element that has no record of its own."""
    spec = event.spec if isinstance(event, ev.JobSubmitted) else array.spec if array is not None else 0
    return Job(key=event.key, spec=spec, name="", submitted=event.at)
