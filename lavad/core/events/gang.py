"""Reports of many hosts of one job, folded together: the same cluster as one by one, for less.

An attempt's parts are a tuple: of a thousand, one that is prepared rebuilds all of them. What hosts tell of their parts in one
batch does so once. Rule: as for ``elements``; what becomes of the first part, and the first failure of another, says something of
the whole job, and is folded by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.usage_index import MANY
from lavad.core.events.base import Event
from lavad.core.events.part import PartEnded, PartGone, PartPrepared, PartRefused, PartStarted, PartStopped
from lavad.core.events.records import attempt_of, staying
from lavad.core.job.job import Attempt, Part
from lavad.core.job.places import places_of
from lavad.core.lang.states import PartState

_Told = PartPrepared | PartStarted | PartStopped | PartEnded | PartGone | PartRefused


def fold_gang(cluster: Cluster, events: Sequence[Event], at: int) -> int:
    """Fold as many events from number ``at`` on as can be folded together; returns how many, 0: none was."""
    first = events[at]
    if at + 1 == len(events) or not isinstance(first, _Told) or not isinstance(events[at + 1], _Told):
        return 0
    job = staying(cluster, first)
    run = attempt_of(job, first.attempt)
    if len(run.parts) < MANY or run.elastic or run.tasks:
        return 0
    parts = list(run.parts)
    began = False
    refused: list[PartRefused] = []
    count = 0
    for number in range(at, len(events)):
        event = events[number]
        if not isinstance(event, _Told) or event.key != first.key or event.attempt != first.attempt:
            break
        places = places_of(run, event.host)
        if len(places) != 1 or places[0] == 0 or (isinstance(event, PartEnded) and _decides(run, event)):
            break
        parts[places[0]] = _after(parts[places[0]], event)
        began = began or isinstance(event, PartStarted)
        refused += [event] if isinstance(event, PartRefused) else []
        count += 1
    if count < 2:
        return 0
    run = replace(run, parts=tuple(parts))
    if refused:
        run = replace(run, refused=refused[-1].why, refused_code=refused[-1].code)
        job = replace(job, avoid=(*job.avoid, *(event.host for event in refused)))
    job = replace(job, run=run)
    cluster.jobs.put(job.key, replace(job, failures=0, failed_why="") if began else job)
    return count


def _decides(run: Attempt, event: PartEnded) -> bool:
    """Whether the end of a part, not the first, is that of the job."""
    return run.verdict is None and not run.judged and bool(event.end.status or event.end.lost)


def _after(part: Part, event: _Told) -> Part:
    match event:
        case PartPrepared():
            return replace(part, state=PartState.PREPARED, address=event.address, attach_address=event.attach_address)
        case PartStarted():
            return replace(part, state=PartState.RUNNING, pid=event.pid)
        case PartStopped():
            return replace(part, stopped=event.stopped)
        case PartEnded():
            return replace(part, end=event.end)
        case PartRefused():
            return replace(part, state=PartState.GONE)
        case PartGone():
            return replace(part, state=PartState.GONE, post=event.post)
