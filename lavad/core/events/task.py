"""The facts about single tasks of jobs with roles; ``events`` has all of them."""

from __future__ import annotations

from lavad.core.events.base import JobEvent
from lavad.core.job.job import End
from lavad.core.lang.states import TermReason


class TaskStarted(JobEvent, frozen=True):
    """A task that was started late, or again, runs."""

    attempt: int
    rank: int
    number: int
    pid: int = 0
    name: str = ""
    """``worker[1]``."""


class TaskEnded(JobEvent, frozen=True):
    """A task ended."""

    attempt: int
    rank: int
    number: int
    status: int = 0
    limit: TermReason = TermReason.NONE
    name: str = ""


class TaskRetried(JobEvent, frozen=True):
    """A task that ended is to start again, as its ``number``-th start, after so many seconds."""

    attempt: int
    rank: int
    number: int
    delay: float = 0.0
    why: str = ""


class JobJudged(JobEvent, frozen=True):
    """Enough tasks have ended to say how the job ends, or that it starts again as a whole (``again``: why)."""

    attempt: int
    end: End
    again: str = ""
