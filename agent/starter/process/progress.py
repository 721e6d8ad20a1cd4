"""How far a part has come in its shepherd, and its timers: shared by the modules that run the part."""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    """The phase of a part; it only moves down this list."""

    PREPARING = "preparing"
    PREPARED = "prepared"
    RUNNING = "running"
    ENDED = "ended"
    POST = "post"
    GONE = "gone"


class Timer(Enum):
    """What a part does at a set time."""

    STARTED = "started"
    """Report that its tasks run."""
    ASK = "ask"
    """Check again which tasks catch a signal."""
    KILL = "kill"
    """Kill the processes that got SIGTERM."""
    SWEEP = "sweep"
    """Check again whether processes are left."""


Timers = dict[Timer, float]
"""When each is due (monotonic)."""


class Progress:
    """The phase of one part, and whether it is being killed."""

    __slots__ = ("killing", "phase", "title")

    def __init__(self, title: str) -> None:
        self.title = title
        self.phase = Phase.PREPARING
        self.killing = False

    def why_no_task(self) -> str:
        """Why no further task may be started in the part, "" when one may."""
        if self.phase is Phase.RUNNING and not self.killing:
            return ""
        early = self.phase in (Phase.PREPARING, Phase.PREPARED) and not self.killing
        return f"job {self.title} " + ("has not started there" if early else "is ending there")
