"""bhist -t: the events of a time in order, of jobs, hosts and queues."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core import events as ev
from lavad.core.job.job import Job
from lavad.core.lang.ids import job_of
from lavad.core.lang.ids import show as show_key
from lavad.queries.facts.sentences import HistoryFormatter
from lavad.queries.facts.site_sentences import cluster_sentence
from lavad.queries.frame import times
from lavad.queries.frame.request import Request, Shown, leave, out
from lavad.queries.frame.wrap import wrap
from lavad.store.read import Find


def show(request: Request, window: tuple[float, float]) -> Iterator[Shown]:
    """A paragraph an event."""
    formatters: dict[int, HistoryFormatter] = {}
    found = False
    for _, event in request.view.reader.events_between(*window):
        for sentence in _tell(request, event, formatters):
            found = True
            yield out(wrap(f"{times.full(event.at)}: {sentence}"))
    if not found:
        yield out("No matching event found\n")
        yield leave(255)


def _tell(request: Request, event: ev.Event, formatters: dict[int, HistoryFormatter]) -> list[str]:
    if not isinstance(event, ev.JobEvent):
        sentence = cluster_sentence(event)
        return [sentence] if sentence else []
    formatter = formatters.get(event.key)
    if formatter is None:
        formatter = formatters[event.key] = _formatter(request, event)
    name = show_key(event.key)
    return [f"Job <{name}> {sentence[0].lower()}{sentence[1:]}" for sentence in formatter.sentences(event)]


def _formatter(request: Request, event: ev.JobEvent) -> HistoryFormatter:
    view, cluster = request.view, request.cluster
    job_id = job_of(event.key)
    live = cluster.jobs.rows.get(event.key)
    found = [live] if live is not None else view.reader.finished_jobs(Find(keys=(event.key,)))
    spec = event.spec if isinstance(event, ev.JobSubmitted) else 0
    array = cluster.arrays.rows.get(job_id) or view.reader.finished_array(job_id)
    if not spec and array is not None:
        spec = array.spec
    job = found[0] if found else Job(key=event.key, spec=spec, name="", submitted=event.at)
    return HistoryFormatter(view, job, view.texts([job])[job.key], True)
