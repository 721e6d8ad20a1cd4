"""A host that leaves a running job, which goes on without it: told to, or lost while the job can do with less.

Rule: the events are followed on a copy of the attempt by the very folds that will apply them.
"""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.events.part import with_part
from lavad.core.events.resize import left, shrank
from lavad.core.job.job import Attempt, End, Job, Part
from lavad.core.job.resize import is_complete, may_lose, portion
from lavad.core.job.spec import Spec
from lavad.core.lang.states import PartState


def goes(job: Job, spec: Spec, part: Part, end: End) -> bool:
    """Whether the attempt goes on without a part that has ended like this."""
    if part.leaving:
        return True
    return _was_lost(part, end) and may_lose(job, spec, part.host)


def _was_lost(part: Part, end: End) -> bool:
    # a rank below 0: its shepherd ended it because the link to the first host was lost
    unlinked = bool(end.status) and end.first_rank < 0 and bool(end.first_reason)
    return bool(end.lost) or unlinked or (part.grown and part.state is not PartState.RUNNING)


def leaves(job: Job, part: Part, end: End | None, gone: bool, now: float) -> tuple[list[ev.Event], Attempt]:
    """The events, and the attempt after them."""
    run = job.run
    assert run is not None
    events: list[ev.Event] = []
    why = end.lost or end.first_reason if end is not None else ""
    began = not part.grown or part.state is PartState.RUNNING
    if not part.leaving and (began or not gone):
        shrink = shrink_now(job, run, part, why, now)
        events.append(shrink)
        run = shrank(run, shrink)
    if part.end is None and end is not None and not gone:
        events.append(ev.PartEnded(at=now, key=job.key, attempt=run.number, host=part.host, end=end))
        run = with_part(run, part.host, end=end)
    if gone:
        event = ev.PartLeft(at=now, key=job.key, attempt=run.number, host=part.host, end=end, why=why)
        events.append(event)
        run = left(run, event)
    more = settled(job.key, run, now)
    return events + more, replace(run, resize=None) if more else run


def shrink_now(job: Job, run: Attempt, part: Part, why: str, now: float) -> ev.JobShrank:
    """A host is lost: it is to leave, whatever the job thinks of it, and the job is told."""
    return ev.JobShrank(
        at=now,
        key=job.key,
        attempt=run.number,
        number=run.resizes + 1,
        parts=(portion(part, part.slots),),
        forced=True,
        why=why,
    )


def settled(key: int, run: Attempt, now: float) -> list[ev.Event]:
    """A growth of which all is there is over, unless a command has to agree."""
    if run.resize is None or run.resize.command or not is_complete(run):
        return []
    return [ev.JobResized(at=now, key=key, attempt=run.number, number=run.resize.number)]


def notified(job: Job, number: int, ok: bool, why: str, now: float) -> list[ev.Event]:
    """The notification command has ended."""
    run = job.run
    if run is None or run.resize is None or run.resize.number != number:
        return []
    return [ev.JobResized(at=now, key=job.key, attempt=run.number, number=number, ok=ok, why=why)]
