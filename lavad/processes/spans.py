"""A job's life as spans, for OpenTelemetry: made of its last record and its events, once it has ended.

Rule: no clock and no library of traces here. Times are those at which the master recorded an event, in seconds since the epoch;
the first span is the job, the others name the place of theirs in the list (``parent``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from lavad.core import events as ev
from lavad.core.job.depend import MET, NEVER
from lavad.core.job.depend import exit_code as code_of
from lavad.core.job.job import End, Job, Part, Placed
from lavad.core.job.spec import Spec
from lavad.core.lang.ids import index_of, job_of, show
from lavad.core.lang.states import JobState, TermReason

Value = str | int | float | bool | tuple[str, ...]
MOST_NOTES = 100
"""Notes of one span: a job that is stopped again and again."""


class Note(NamedTuple):
    """What happened at a time within a span."""

    name: str
    at: float
    values: dict[str, Value]


class Span(msgspec.Struct):
    """A part of a job's life. ``error``: why it went wrong, "" for well."""

    name: str
    begin: float
    end: float
    parent: int
    values: dict[str, Value]
    notes: list[Note]
    error: str = ""


class _Attempt:
    """What is known of one attempt."""

    def __init__(self, number: int, at: float, hosts: dict[str, dict[str, Value]]) -> None:
        self.number = number
        self.at = at
        self.hosts = hosts
        self.ready = at
        """When all hosts were prepared."""
        self.begun: dict[str, float] = {}
        self.ended: dict[str, tuple[float, End]] = {}
        """Host to when the master heard of the end of its processes, and what it heard."""
        self.gone: dict[str, float] = {}
        self.notes: list[Note] = []
        self.checkpoints: list[Span] = []

    def note(self, name: str, at: float, **values: Value) -> None:
        if len(self.notes) < MOST_NOTES:
            self.notes.append(Note(name, at, values))


Reasons = Iterable[tuple[float, str]]
"""Why the jobs of a spec waited: from when on, in the words of bjobs -p; "": none did."""


def spans_of(job: Job, spec: Spec, events: Iterable[ev.Event], reasons: Reasons, cluster: str) -> list[Span]:
    """The spans of a job that has ended. ``events``: what is known of its own; the first may be missing."""
    return _Life(job, spec, list(reasons), cluster).told(events)


class _Life:
    def __init__(self, job: Job, spec: Spec, reasons: list[tuple[float, str]], cluster: str) -> None:
        self.job, self.reasons = job, reasons
        self.over = job.outcome.at if job.outcome is not None else job.since
        self.spans = [Span("job", job.submitted, self.over, -1, _of_job(job, spec, cluster), [], _failure(job))]
        submit: dict[str, Value] = {"lava.host": spec.from_host, "lava.slots": spec.slots}
        self.spans.append(Span("submit", job.submitted, job.submitted, 0, submit, []))
        self.waits = job.submitted
        self.notes: list[Note] = []
        self.attempt: _Attempt | None = None

    def told(self, events: Iterable[ev.Event]) -> list[Span]:
        for event in events:
            tell = _TOLD.get(type(event))
            if tell is not None and event.at >= self.job.submitted:
                tell(self, event)
        run = self.job.run
        if self.attempt is None and run is not None and run.dispatched >= self.waits:
            self.dispatched(run.number, run.dispatched, {one.host: _of_part(one) for one in run.parts})
        if self.attempt is not None:
            self.end_attempt(self.over, _failure(self.job), run.verdict if run is not None else None)
        elif self.over > self.waits:
            self.end_wait(self.over)
        return self.spans

    def note(self, name: str, at: float, **values: Value) -> None:
        if self.attempt is not None:
            self.attempt.note(name, at, **values)
        elif len(self.notes) < MOST_NOTES:
            self.notes.append(Note(name, at, values))

    def dispatched(self, number: int, at: float, hosts: dict[str, dict[str, Value]]) -> None:
        self.end_wait(at)
        self.attempt = _Attempt(number, at, hosts)

    def end_wait(self, at: float) -> None:
        """Its span, with the reasons that were known in this time."""
        before = [(since, words) for since, words in self.reasons if since <= self.waits][-1:]
        within = [(since, words) for since, words in self.reasons if self.waits < since <= at]
        why = [Note("reason", max(since, self.waits), {"lava.reason": words}) for since, words in (*before, *within) if words]
        notes = sorted([*self.notes, *why], key=lambda note: note.at)
        self.spans.append(Span("wait", self.waits, at, 0, {}, notes[:MOST_NOTES]))
        self.notes = []

    def end_attempt(self, at: float, error: str, end: End | None) -> None:
        """Its spans. ``end``: of its first host, where nothing else tells of it."""
        run = self.attempt
        assert run is not None
        if end is not None and not run.ended:
            run.ended[next(iter(run.hosts), "")] = min(max(end.at, run.ready), at), end
        for host, (when, one) in run.ended.items():
            if one.started:  # of a part that is over at once, its end alone tells when it began
                run.begun.setdefault(host, min(max(one.started, run.ready), when))
        number: dict[str, Value] = {"lava.attempt": run.number}
        hosts = {**number, "lava.hosts": tuple(run.hosts)}
        self.spans.append(Span("dispatch", run.at, run.ready, 0, hosts, []))
        first = min(run.begun.values(), default=None)
        if first is None:
            self.spans.append(Span("start", run.ready, at, 0, number, run.notes, error or "it never ran"))
        else:
            ends = [when for when, _ in run.ended.values()] or list(run.gone.values())
            over = min(max(ends, default=at), at)
            place = len(self.spans) + 1
            self.spans.append(Span("start", run.ready, max(first, run.ready), 0, number, []))
            self.spans.append(Span("run", first, over, 0, hosts, run.notes, error))
            _, bad = min(((when, host) for host, (when, one) in run.ended.items() if one.status), default=(0.0, ""))
            self.spans += [_part(run, host, place, at, error if host == bad else "") for host in run.begun]
            for span in run.checkpoints:
                span.parent = place
            self.spans += run.checkpoints
            self.spans.append(Span("end", over, at, 0, number, []))
        self.attempt, self.waits = None, at


def _part(run: _Attempt, host: str, parent: int, at: float, error: str) -> Span:
    over, end = run.ended.get(host) or (run.gone.get(host, at), None)
    values = {"lava.host": host, **run.hosts.get(host, {})}
    if end is not None:
        values["lava.exit_code"] = code_of(end.status)
    return Span("part", run.begun[host], over, parent, values, [], error)


def _of_job(job: Job, spec: Spec, cluster: str) -> dict[str, Value]:
    values: dict[str, Value] = {
        "lava.cluster": cluster,
        "lava.job_id": show(job.key),
        "lava.user": spec.user,
        "lava.queue": spec.queue,
        "lava.project": spec.project,
        "lava.slots": spec.slots,
        "lava.job_name": job.name,
        "lava.state": job.state.name,
        "lava.attempts": job.attempt,
    }
    if index_of(job.key):
        values["lava.array"] = job_of(job.key)
    if spec.app:
        values["lava.application"] = spec.app
    if job.outcome is not None and job.run is not None:
        values["lava.exit_code"] = code_of(job.outcome.status)
    return values


def _failure(job: Job) -> str:
    """Why it ended as EXIT; "" of one that is DONE."""
    if job.state is JobState.DONE or job.outcome is None:
        return ""
    reason = job.outcome.reason
    if reason is not TermReason.NONE:
        return reason.name
    return job.outcome.why or f"exit code {code_of(job.outcome.status)}"


def _of_part(one: Placed | Part) -> dict[str, Value]:
    values: dict[str, Value] = {"lava.slots": one.slots}
    if one.gpus:
        values["lava.gpus"] = tuple(one.gpus)
    return values


def _dispatched(life: _Life, event: ev.JobDispatched) -> None:
    life.dispatched(event.attempt, event.at, {one.host: _of_part(one) for one in event.parts})


def _finished(life: _Life, event: ev.JobFinished) -> None:
    """An end before the last: brequeue has taken it up again."""
    if event.at >= life.over:
        return
    if life.attempt is not None:
        life.end_attempt(event.at, "", event.end)
    else:
        life.end_wait(event.at)


def _revived(life: _Life, event: ev.JobRevived) -> None:
    life.waits = event.at
    life.note("requeued after its end", event.at, **({"lava.by": event.by} if event.by else {}))


def _requeued(life: _Life, event: ev.JobRequeued) -> None:
    if life.attempt is not None:
        life.end_attempt(event.at, event.why, event.end)
    life.note("requeued", event.at, **({"lava.reason": event.why} if event.why else {}))


def _released_gang(life: _Life, event: ev.GangReleased) -> None:
    if life.attempt is not None:
        life.attempt.ready = event.at


def _part_started(life: _Life, event: ev.PartStarted) -> None:
    if life.attempt is not None:
        life.attempt.begun.setdefault(event.host, event.at)


def _part_ended(life: _Life, event: ev.PartEnded) -> None:
    if life.attempt is not None:
        life.attempt.ended[event.host] = event.at, event.end


def _part_gone(life: _Life, event: ev.PartGone | ev.PartFenced) -> None:
    if life.attempt is not None:
        life.attempt.gone[event.host] = event.at


def _judged(life: _Life, event: ev.DependencyJudged) -> None:
    stands = {MET: "met", NEVER: "can never be met"}.get(event.stands, "not met")
    life.note("dependency", event.at, **{"lava.condition": stands})


def _checkpoint(life: _Life, event: ev.CheckpointMade | ev.CheckpointFailed | ev.CheckpointStaged) -> None:
    if life.attempt is None or len(life.attempt.checkpoints) >= MOST_NOTES:
        return
    values: dict[str, Value] = {"lava.generation": event.generation, "lava.attempt": event.attempt}
    error = "" if isinstance(event, ev.CheckpointMade) else event.why
    if not isinstance(event, ev.CheckpointFailed):
        values["lava.bytes"] = event.size
    name = "stage checkpoint" if isinstance(event, ev.CheckpointStaged) else "checkpoint"
    failed = error or ("it failed" if isinstance(event, ev.CheckpointFailed) else "")
    life.attempt.checkpoints.append(Span(name, event.at - event.seconds, event.at, 0, values, [], failed))


def _noted(name: str, *fields: str) -> Callable[[_Life, ev.Event], None]:
    """Tell of it as a note, with these fields where they say something."""

    def tell(life: _Life, event: ev.Event) -> None:
        found = {f"lava.{field}": getattr(event, field) for field in fields}
        life.note(name, event.at, **{field: value for field, value in found.items() if value})

    return tell


_TOLD: dict[type[ev.Event], Callable[..., None]] = {
    ev.JobDispatched: _dispatched,
    ev.JobFinished: _finished,
    ev.JobRevived: _revived,
    ev.JobRequeued: _requeued,
    ev.GangReleased: _released_gang,
    ev.PartStarted: _part_started,
    ev.PartEnded: _part_ended,
    ev.PartGone: _part_gone,
    ev.PartFenced: _part_gone,
    ev.PartRefused: _noted("refused by a host", "host", "why"),
    ev.DependencyJudged: _judged,
    ev.CheckpointMade: _checkpoint,
    ev.CheckpointFailed: _checkpoint,
    ev.CheckpointStaged: _checkpoint,
    ev.JobHeld: _noted("held", "by", "why"),
    ev.JobReleased: _noted("released", "by", "why"),
    ev.SlotsReserved: _noted("slots reserved"),
    ev.SlotsReleased: _noted("slots released", "why"),
    ev.JobSuspended: _noted("suspended", "by", "why"),
    ev.JobResumed: _noted("resumed", "by", "why"),
    ev.JobLost: _noted("host silent", "host"),
    ev.JobFound: _noted("host back"),
    ev.JobGrew: _noted("grew", "by"),
    ev.JobShrank: _noted("shrank", "by", "why"),
    ev.JobModified: _noted("modified", "by"),
    ev.JobSwitched: _noted("switched", "by"),
}
KINDS = tuple(_TOLD)
"""The events that are told of."""
