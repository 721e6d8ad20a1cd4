"""bmod of one job, or of an array or elements of it, some pending and others running."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import islice

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.records import CHARS, units_of_spec
from lavad.core.decide.base.bulk import AT_ONCE
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.resolve import NOTHING, NeedsLookup, StoredJobs
from lavad.core.decide.base.room import FULL, check_room
from lavad.core.decide.base.select import Target, get_target
from lavad.core.decide.base.specs import with_specs
from lavad.core.decide.modify.change import Change
from lavad.core.decide.modify.running import modify_running, why_not_running
from lavad.core.decide.modify.waiting import modify_waiting
from lavad.core.events.records import is_live, record_of
from lavad.core.job.job import Array, Job
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Caller, Modify, Refused
from lavad.core.lang.ids import key_of
from lavad.core.lang.states import WAITING
from lavad.core.rules.pending import Waiting, is_over, pending_limits

MOST_ELEMENTS = 10_000
LONG = 8
"""Units of a spec that count as one more: a change to an ordinary one is never refused."""


def modify(
    cluster: Cluster, ask: Modify, text: JobText, caller: Caller, now: float, local: datetime, known: StoredJobs = NOTHING
) -> Decided:
    """Change a job, or all elements of an array that may be changed; raises Refused where none may.

    Whether all may be is decided at once, and nothing is changed where one may not; the changes are made in chunks.
    """
    target = get_target(cluster, ask.job, caller)
    change = Change(cluster, ask, text, caller, now, local, Decided(answer={"job": ask.job}), known)
    records = _records(cluster, target, "[" in ask.job)
    if len(records) > MOST_ELEMENTS:
        raise Refused(f"{ask.job}: At most {MOST_ELEMENTS} elements can be modified at a time")
    started = sum(map(_has_started, records))
    why = why_not_running(cluster, ask) if started else ""
    if why and started == len(records):
        raise Refused(why)
    new_text = _modify_each(change, records)
    _check_growth(cluster, records, change.decided)
    _check_pending_slots(cluster, records, change.decided)
    change.decided.texts.append((int(ask.job.partition("[")[0]), new_text))
    return _in_chunks(change, records)


def _modify_each(change: Change, records: Iterable[Job | Array]) -> JobText:
    """Decide the events for those of the records that may be changed; returns their new text. Raises Refused."""
    ask, text = change.ask, change.text
    new_text, why = text, why_not_running(change.cluster, ask)
    for record in records:
        if isinstance(record, Array) or not _has_started(record):
            new_text = modify_waiting(change, record)
            if "[" in ask.job and new_text != text:
                raise Refused("The command, files and mail of an element are its array's: modify the whole array")
        elif not why:
            new_text = modify_running(change, record)
    return new_text


def _in_chunks(change: Change, records: Sequence[Job | Array]) -> Decided:
    """The events of the first records now, those of the others in later turns, decided on the state at their turn."""
    now = {_key_of(record) for record in records[:AT_ONCE]}
    left = [_key_of(record) for record in records[AT_ONCE:]]
    decided = change.decided
    if len(records) > 1:
        events = [event for event in decided.events if not isinstance(event, ev.JobModified) or event.key in now]
        decided.events = with_specs(change.cluster, events, events)
    if left:
        made, of = _changed(decided), len(records)
        decided.more = lambda cluster, at: _rest(replace(change, cluster=cluster, now=at), left, made, of)
    return decided


def _rest(change: Change, keys: Sequence[int], made: int, of: int) -> Decided:
    """The next chunk: of these jobs and elements those that are there, and may change though they run by now. Raises Refused.

    ``made``: how many of all, which were ``of``, the chunks before have changed.
    """
    cluster, decided = change.cluster, Decided(answer=change.decided.answer)
    change = replace(change, decided=decided, settled={})
    for key in keys[:AT_ONCE]:
        if is_live(cluster, key):
            record = record_of(cluster, key)
            with suppress(Refused) if _has_started(record) else _saying(made, of):
                _modify_each(change, [record])
    decided.events = with_specs(cluster, decided.events, decided.events)
    if left := keys[AT_ONCE:]:
        made += _changed(decided)
        decided.more = lambda cluster, at: _rest(replace(change, cluster=cluster, now=at), left, made, of)
    return decided


def _changed(decided: Decided) -> int:
    """How many jobs, arrays and elements it changes."""
    return sum(isinstance(event, ev.JobModified) for event in decided.events)


@contextmanager
def _saying(made: int, of: int) -> Iterator[None]:
    """A refusal says what was changed before it; what is decided again from the beginning is none."""
    try:
        yield
    except NeedsLookup:
        raise
    except Refused as refused:
        why = f"{refused.text}; {made} of the {of} jobs and elements were changed before" if made else refused.text
        raise Refused(why, refused.exit_code, refused.retry) from None


def _key_of(record: Job | Array) -> int:
    return record.key if isinstance(record, Job) else record.job


def _has_started(record: Job | Array) -> bool:
    return isinstance(record, Job) and record.state not in WAITING


def _check_growth(cluster: Cluster, records: list[Job | Array], decided: Decided) -> None:
    """Whether the owner may have the records that untouched elements get, and longer names and requirements; raises Refused."""
    units = sum(isinstance(record, Job) and record.key not in cluster.jobs.rows for record in records)
    for event in decided.events:
        if isinstance(event, ev.SpecAdded):
            units += units_of_spec(event.value) // LONG
        elif isinstance(event, ev.JobModified):
            units += len(event.name) // CHARS
    if units:
        check_room(cluster, cluster.specs.rows[records[0].spec].user, units)


def _check_pending_slots(cluster: Cluster, records: list[Job | Array], decided: Decided) -> None:
    """Whether the owner may have so many more slots waiting (MAX_PEND_SLOTS), as with bsub; raises Refused."""
    added = {event.spec: event.value for event in decided.events if isinstance(event, ev.SpecAdded)}
    known = cluster.specs.rows
    waiting = {_key_of(record): record for record in records if not _has_started(record)}
    more = 0
    for event in decided.events:
        if isinstance(event, ev.JobModified) and (record := waiting.get(event.key)) is not None:
            spec = added.get(event.spec) or known[event.spec]
            count = 1 if isinstance(record, Job) else len(record.pending) + len(record.held)
            more += count * (spec.slots - known[record.spec].slots)
    user = known[records[0].spec].user
    if more > 0 and is_over(cluster, user, Waiting(None, pending_limits(cluster, user).slots), 0, more):
        raise Refused(FULL)


def _records(cluster: Cluster, target: Target, elements: bool) -> list[Job | Array]:
    """The records to modify; for untouched elements that are named one by one, the records that they would have."""
    found: list[Job | Array] = [cluster.jobs.rows[key] for key in target.keys]
    if target.array and not elements:
        found.insert(0, cluster.arrays.rows[target.array])
    elif target.array:
        indices = islice(target.untouched, MOST_ELEMENTS + 1)
        found += [record_of(cluster, key_of(target.array, index)) for index in indices]
    return found
