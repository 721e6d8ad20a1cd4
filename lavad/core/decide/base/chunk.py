"""A job that waits in a chunk, and has not begun, leaves it."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.job.job import Job, PendingSignal
from lavad.core.lang.states import JobState, SignalKind


def leave_chunk(job: Job, by: str, now: float, state: JobState, said: str = "") -> ev.SignalRequested:
    """The request by which it is pending, or held, again, unless it has begun and the master has not heard of it yet."""
    pending = PendingSignal(kind=SignalKind.REQUEUE, at=now, by=by, state=state, said=said, unless_begun=True)
    return ev.SignalRequested(at=now, key=job.key, pending=pending)
