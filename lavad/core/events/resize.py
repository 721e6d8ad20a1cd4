"""Facts about a running job that grows or shrinks; see ``core.job.resize`` for how they follow one another.

Rule: what is added is the job's at once; what is taken away is its own until ``PartLeft`` (a whole host) or until the
shrink is over (slots of a host that it keeps).
"""

from __future__ import annotations

from lavad.core.events.base import JobEvent
from lavad.core.job.job import End, Placed


class JobGrew(JobEvent, frozen=True):
    """More hosts, or more slots of its own, for a running attempt."""

    attempt: int
    number: int
    """Counts the resizes of an attempt."""
    parts: tuple[Placed, ...]
    command: str = ""
    """What is run on the first host once all of it is there; "": nothing."""
    by: str = ""


class JobShrank(JobEvent, frozen=True):
    """A running attempt is to give these back."""

    attempt: int
    number: int
    parts: tuple[Placed, ...]
    command: str = ""
    forced: bool = False
    """At once, whatever the command says: a host is lost, or another job gets it."""
    beneficiary: int = 0
    """The job that gets it (preemption), 0: none."""
    by: str = ""
    why: str = ""


class JobResized(JobEvent, frozen=True):
    """A resize is over: its command agreed (``ok``), or not, and then nothing of it is true."""

    attempt: int
    number: int
    ok: bool = True
    why: str = ""


class PartLeft(JobEvent, frozen=True):
    """A host is no longer the attempt's, which goes on without it: nothing of it is left there."""

    attempt: int
    host: str
    end: End | None = None
    why: str = ""


class ResizeAsked(JobEvent, frozen=True):
    """bresize request: up to ``most`` slots in all, at least ``least`` at a time; bresize cancel: (0, 0)."""

    attempt: int
    least: int = 0
    most: int = 0
    command: str | None = None
    """Its own notification command; None: the job's."""
    by: str = ""
