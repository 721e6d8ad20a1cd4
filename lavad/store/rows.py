"""The rows of a batch as tuples, with the statements that write them.

Rows are plain tuples in the order of a table's columns, as parameters of SQLAlchemy Core cost twice the CPU. Records are encoded
when their rows are asked for: SQLite asks for all before its transaction begins, to PostgreSQL some go while others are encoded.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count

import msgspec

from lavad.core.cluster.charge import gpus_with_attempt, used_by
from lavad.core.events import (
    Configured,
    ElementsKilled,
    Event,
    ExceptionsTold,
    GoalsMissed,
    JobDispatched,
    JobEvent,
    JobFinished,
    JobRevived,
    JobSubmitted,
    LeasesExtended,
    MasterStarted,
    PartStarted,
    StoreRestored,
    kind_of,
)
from lavad.core.job.checkpoints import sums_of
from lavad.core.job.chunk import slots_in
from lavad.core.job.job import Array, Job, Outcome
from lavad.core.job.run_time import run_time, start_of
from lavad.core.lang.ids import job_of
from lavad.store.arrays import Row
from lavad.store.batch import Batch
from lavad.store.codec import encode, encode_events, row_id
from lavad.store.statements import Statements, Write

Names = Callable[[int], tuple[str, str, str]]
"""Spec number to its user, queue and project."""
EventRow = tuple[int, float, str, int | None, int | None, bytes]
StoredText = tuple[int, bytes, str | None]
"""A row of texts: job id or key, the text, the hash of its environment."""
Written = tuple[Write, Sequence[Row]]


class Rows:
    """The rows of a batch. ``first`` and ``texts`` are there when all were asked for."""

    def __init__(self, batch: Batch, statements: Statements, names: Names, top_job: int) -> None:
        own = {number: (spec.user, spec.queue, spec.project) for number, spec in batch.specs}
        self.new_names = own
        kinds = set(map(type, batch.events))
        of_finished = {job.spec for job in batch.finished}
        self._killed = ElementsKilled in kinds
        self._arrays = {array.job: array for array in (*batch.dropped_arrays, *batch.arrays)} if self._killed else {}
        of_finished |= {array.spec for array in self._arrays.values()}
        self._names = {number: own.get(number) or names(number) for number in of_finished}
        submitted = [event.key for event in batch.events if type(event) is JobSubmitted] if JobSubmitted in kinds else []
        self.top_job = max((top_job, *submitted))
        reused = [key for key in submitted if key <= top_job]
        self._batch, self._to, self._submitted, self._kinds, self._reused = batch, statements, submitted, kinds, reused
        self.uuids = [uuid for uuid, _ in batch.answers]
        """Of answers."""
        self.first: tuple[int, bytes] | None = None
        """Number and data of the first row of events."""
        self.texts: Sequence[StoredText] = ()

    def writes(self) -> Iterator[Written]:
        """The statements in their order with their rows. Raises UnicodeEncodeError, OverflowError: a record cannot be encoded."""
        return (write for write in self._writes() if write[1])

    def _writes(self) -> Iterator[Written]:
        batch, to = self._batch, self._to
        now = time.time()
        yield to.answer, [(uuid, now, data) for uuid, data in batch.answers]
        yield from _forgotten(self._reused, to)
        events = _event_rows(batch, self._kinds)
        self.first = (events[0][0], events[0][-1]) if events else None
        yield to.event, events
        yield from self._of_jobs()
        yield to.host, [(host.name, encode(host)) for gone, host in batch.hosts if not gone]
        yield to.host_gone, [(host.name,) for gone, host in batch.hosts if gone]
        yield to.queue, [(queue.name, encode(queue)) for queue in batch.queues]
        yield to.group, [(group.name, gone, encode(group)) for gone, group in batch.groups]
        yield to.reservation, [(row.name, gone, encode(row)) for gone, row in batch.reservations]
        yield to.charge, [(charge.queue, charge.user, charge.group, encode(charge)) for charge in batch.charges]
        yield to.learnt, [(learnt.user, encode(learnt)) for learnt in batch.learnt]
        yield to.pace, [(pace.name, encode(pace)) for pace in batch.paces]
        yield to.tokens, [(row.user, encode(row)) for gone, row in batch.tokens if not gone]
        yield to.tokens_gone, [(row.user,) for gone, row in batch.tokens if gone]
        yield to.cycle, [msgspec.structs.astuple(cycle) for cycle in batch.cycles]
        yield to.meta, _meta_rows(batch, self._submitted, not self._kinds.isdisjoint(_OF_META))

    def _of_jobs(self) -> Iterator[Written]:
        batch, to, new = self._batch, self._to, set(self._submitted)
        yield to.spec, [(number, encode(spec), None) for number, spec in batch.specs]
        yield to.submitted, [(row_id(job.key), encode(job)) for job in batch.jobs if job.key in new]
        yield to.job, [(row_id(job.key), encode(job)) for job in batch.jobs if job.key not in new]
        yield to.job_gone, [(row_id(job.key),) for job in batch.finished]
        if JobRevived in self._kinds:
            yield to.revived, [(row_id(event.key),) for event in batch.events if type(event) is JobRevived]
        yield to.finished, self._finished(batch.finished)
        at = batch.events[-1].at if batch.events else time.time()
        arrays: list[Row] = [(array.job, None, encode(array)) for array in batch.arrays]
        yield to.array, arrays + [(array.job, at, encode(array)) for array in batch.dropped_arrays]
        self.texts = [(job, encode(text), text.env or None) for job, text in batch.texts]
        yield to.text, self.texts
        yield to.attached, [(row_id(key), number, data.encode()) for key, number, data in batch.attached]
        yield to.env, list(batch.envs)
        if self._killed:
            yield to.finished, self._finished(killed_jobs(batch.events, self._arrays))

    def _finished(self, jobs: Iterable[Job]) -> list[Row]:
        names = self._names
        return [
            (row_id(job.key), *names[job.spec], job.name, int(job.state), job.submitted, job.since, encode(job), *_sums(job))
            for job in jobs
        ]


def _forgotten(reused: list[int], to: Statements) -> list[Written]:
    """Job ids wrap around: what an old finished job left under an id that is used again is deleted first."""
    spans = [(job << 32, job << 32 | 0xFFFFFFFF) for job in reused]
    ids = [(job,) for job in reused]
    return [(to.jobs_gone, spans), (to.attached_gone, spans), (to.array_gone, ids), (to.text_gone, ids)]


_NONE = (None, None, None, None)
_NO_SUMS = (None, *_NONE, *_NONE, *_NONE)


def _sums(job: Job) -> Row:
    """Columns for accounting: start, seconds of CPU and in state RUN, hosts, seconds of slots; those of GPUs, of checkpoints."""
    run = job.run
    had = gpus_with_attempt(job, run, job.since)
    known = job.checkpoints
    gpus = _NONE if had is None else (had.held, had.used, had.idle, had.energy)
    checkpoints = _NONE if known is None else msgspec.structs.astuple(sums_of(known))
    if run is None:
        return *_NO_SUMS[:5], *gpus, *checkpoints
    _, cpu, slots, _ = used_by(run, job.since)
    hosts = " ".join([part.host for part in run.parts])
    if not slots:
        # of an attempt that ended at once the master knows no start
        started = run.started or next((part.end.started for part in run.parts if part.end and part.end.started), run.dispatched)
        slots = sum(map(slots_in, run.parts)) * max(0.0, job.since - started)
    return start_of(job) or None, cpu, run_time(job, job.since), f" {hosts} ", slots, *gpus, *checkpoints


_TOGETHER = frozenset((JobDispatched, PartStarted, JobFinished))
"""Events that come for many elements at once."""
_MOST = 64
"""Of them in a row: readers take rows by their number."""
_ELEMENTS = 1 << 32
"""Keys from here on are those of elements."""


def _event_rows(batch: Batch, kinds: set[type[Event]]) -> list[EventRow]:
    """A row for each event, but one for several of one kind and time that follow each other, about elements of one array."""
    names = {kind: kind_of(kind) for kind in kinds}
    if kinds.isdisjoint(_TOGETHER):
        return [_event_row(seq, event, names[type(event)]) for seq, event in enumerate(batch.events, batch.first)]
    rows: list[EventRow] = []
    events, begin = batch.events, 0
    while begin < len(events):
        event, end = events[begin], _end_of_row(events, begin)
        seq = batch.first + end - 1
        if end - begin > 1 and isinstance(event, JobEvent):
            rows.append((seq, event.at, names[type(event)], job_of(event.key), None, encode_events(events[begin:end])))
        else:
            rows.append(_event_row(seq, event, names[type(event)]))
        begin = end
    return rows


def _end_of_row(events: Sequence[Event], begin: int) -> int:
    """Up to which one the events from this one on are stored in one row."""
    first, end = events[begin], begin + 1
    kind = type(first)
    if kind not in _TOGETHER or not isinstance(first, JobEvent) or first.key < _ELEMENTS:
        return end
    at, job, most = first.at, job_of(first.key), min(len(events), begin + _MOST)
    while end < most and isinstance(other := events[end], JobEvent) and type(other) is kind and other.at == at:
        if other.key < _ELEMENTS or other.key & 0xFFFFFFFF != job:
            break
        end += 1
    return end


def _event_row(seq: int, event: Event, kind: str) -> EventRow:
    if isinstance(event, JobEvent):
        key = event.key
        return (seq, event.at, kind, key & 0xFFFFFFFF, key >> 32, encode(event))
    return (seq, event.at, kind, None, None, encode(event))


_OF_META = (Configured, MasterStarted, StoreRestored, LeasesExtended, ExceptionsTold, GoalsMissed)


def _meta_rows(batch: Batch, submitted: list[int], has_any: bool) -> list[Row]:
    """What is in no other table: next job id, newest ``Configured`` event, newest master, leases, exceptions, goals.

    ``has_any``: whether one of the events is _OF_META.
    """
    meta = dict(batch.meta)
    if submitted:
        meta["next_job"] = str(submitted[-1] + 1)
    for seq, event in zip(count(batch.first), batch.events if has_any else (), strict=False):
        if type(event) is Configured:
            meta["configured"] = str(seq)
        elif type(event) is MasterStarted:
            meta["epoch"] = str(event.epoch)
            meta["incarnation"] = event.incarnation
        elif type(event) is StoreRestored:
            meta |= {"incarnation": event.incarnation, "former": json.dumps(event.former), "next_job": str(event.next_job)}
        elif type(event) is LeasesExtended:
            meta["extended"] = f"{event.at!r} {event.seconds!r}"
        elif type(event) is ExceptionsTold:
            meta["exceptions_told"] = repr(event.until)
        elif type(event) is GoalsMissed:
            meta["goals_missed"] = msgspec.json.encode(event.missed).decode()
    return sorted(meta.items())


def killed_jobs(events: Iterable[Event], arrays: dict[int, Array]) -> Iterator[Job]:
    """One record per killed element, from its array's (last) record."""
    for event in events:
        if isinstance(event, ElementsKilled):
            yield from _expand(event, arrays[event.key & 0xFFFFFFFF])


def _expand(event: ElementsKilled, array: Array) -> Iterator[Job]:
    outcome = Outcome(at=event.at, reason=event.reason, why=event.why)
    for index in event.elements:
        yield Job(
            key=index << 32 | array.job,
            spec=array.spec,
            name=f"{array.name}[{index}]",
            submitted=array.submitted,
            state=event.state,
            since=event.at,
            position=array.position,
            queue_time=array.queue_time,
            outcome=outcome,
        )
