"""The table of legal moves: which event may meet a job in which state. An illegal one raises with the job's story.

``None`` as the target means that the event (or the job's past) decides it; the same state means that only other fields change.
"""

from __future__ import annotations

from lavad.core.events import job as ev
from lavad.core.job.job import Job
from lavad.core.lang.states import JobState as S

_RUNNING = (S.RUN, S.SSUSP, S.USUSP, S.UNKWN, S.ZOMBI)


def _stay(*states: S) -> dict[S, S | None]:
    return {state: state for state in states}


MOVES: dict[type[ev.JobEvent], dict[S, S | None]] = {
    ev.JobHeld: {S.PEND: S.PSUSP},
    ev.JobReleased: {S.PSUSP: S.PEND},
    ev.JobModified: _stay(S.PEND, S.PSUSP, *_RUNNING),
    ev.JobSwitched: _stay(S.PEND, S.PSUSP, *_RUNNING),
    ev.JobMoved: _stay(S.PEND, S.PSUSP),
    ev.JobDispatched: {S.PEND: S.RUN},
    ev.PartPrepared: _stay(*_RUNNING),
    ev.GangReleased: _stay(*_RUNNING),
    ev.PartStarted: _stay(*_RUNNING),
    ev.PartStopped: _stay(*_RUNNING),
    ev.PartEnded: _stay(*_RUNNING),
    ev.PartRefused: _stay(*_RUNNING),
    ev.PartGone: _stay(*_RUNNING),
    ev.PartFenced: _stay(*_RUNNING),
    ev.JobWished: {S.UNKWN: None, **_stay(S.RUN, S.SSUSP, S.USUSP, S.ZOMBI)},
    ev.WishGranted: _stay(*_RUNNING),
    ev.JobSuspended: {S.RUN: None, S.SSUSP: None, S.USUSP: None},
    ev.JobResumed: {S.USUSP: S.RUN, S.SSUSP: S.RUN},
    ev.JobLost: {S.RUN: S.UNKWN, S.SSUSP: S.UNKWN, S.USUSP: S.UNKWN},
    ev.JobFound: {S.UNKWN: None, S.ZOMBI: None},
    ev.CheckpointMade: _stay(*_RUNNING),
    ev.ReservationFaded: _stay(*_RUNNING),
    ev.RanksSuspected: _stay(*_RUNNING),
    ev.TaskStarted: _stay(*_RUNNING),
    ev.TaskEnded: _stay(*_RUNNING),
    ev.TaskRetried: _stay(*_RUNNING),
    ev.JobJudged: _stay(*_RUNNING),
    ev.JobRequeued: dict.fromkeys(_RUNNING),
    ev.SlotsReserved: _stay(S.PEND),
    ev.SlotsReleased: _stay(S.PEND),
    ev.JobDeadlocked: _stay(S.PEND),
    ev.DependencyJudged: _stay(S.PEND, S.PSUSP),
    ev.MessagePosted: _stay(S.PEND, S.PSUSP, *_RUNNING),
    **dict.fromkeys((ev.JobGrew, ev.JobShrank, ev.JobResized, ev.PartLeft, ev.ResizeAsked), _stay(*_RUNNING)),
    ev.JobFinished: dict.fromkeys((S.PEND, S.PSUSP, *_RUNNING)),
}


class IllegalMove(Exception):
    """An event met a job in a state that the table does not allow; nothing was changed."""


def move(job: Job, event: ev.JobEvent, wanted: S | None = None) -> S:
    """The state that ``event`` brings ``job`` to (``wanted`` where the table leaves it to the event)."""
    targets = MOVES[type(event)]
    if job.state not in targets:
        raise IllegalMove(f"{type(event).__name__} met a job in {job.state.name}: {job}; event {event}")
    target = targets[job.state]
    if target is not None:
        return target
    return job.state if wanted is None else wanted
