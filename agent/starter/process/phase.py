"""Where a part is in its shepherd, and what may begin there then."""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    """Where a part is; the steps go down only."""

    PREPARING = "preparing"
    PREPARED = "prepared"
    RUNNING = "running"
    ENDED = "ended"
    POST = "post"
    GONE = "gone"


def why_no_task(phase: Phase, killing: bool, title: str) -> str:
    """Why no further task may be started in a part, "" when one may."""
    if phase is Phase.RUNNING and not killing:
        return ""
    early = phase in (Phase.PREPARING, Phase.PREPARED) and not killing
    return f"job {title} " + ("has not started there" if early else "is ending there")
