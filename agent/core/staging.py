"""When a generation of a job's checkpoints is copied (``bsub -k "DIR stage"``) to the shared folder or a host, and what follows.

Rule: pure; the caller gives the times (seconds of CLOCK_BOOTTIME). One is copied at a time, the newest; the job waits for none.
"""

from __future__ import annotations

import math

import msgspec
from msgspec.structs import replace

from agent.core.effects import Effect, ReportStaged, StageGeneration

RETRY = 60.0
"""Seconds after a copy that failed until the next one is begun."""
LONGEST_RETRY = 16 * RETRY
"""Of copies to other hosts, each of which may be full: twice as long each time, at most so long."""
_OF_USERS = ("_OWNER", "_ADMIN")
"""Ends of the names of the reasons (TermReason) for which users end a job themselves."""


class Staging(msgspec.Struct, frozen=True):
    """Of one part: the generation that was copied last, the one that is being copied (-1: none), and since when."""

    uid: str
    staged: int = -1
    under_way: int = -1
    since: float = 0.0
    retry: float = 0.0
    """No copy is begun before."""
    why: str = ""
    """Why the last copy failed, "" where it did not."""
    ended: float = 0.0
    """When the part ended, if its end waits for a copy."""
    away: bool = False
    """Copies go to another host, ``holder``, once the master has named it."""
    holder: str = ""
    towards: str = ""
    """The host to which the one goes that is being copied."""
    failed: int = 0
    """Copies in a row that have failed."""


Decided = tuple[Staging, list[Effect]]


def look(now: float, state: Staging, newest: int) -> Decided:
    """``newest`` is the newest whole generation, -1: there is none. What is there already is found so by who copies."""
    if not is_due(now, state, newest):
        return state, []
    return replace(state, under_way=newest, since=now, towards=state.holder), [StageGeneration(state.uid, newest)]


def is_due(now: float, state: Staging, newest: int) -> bool:
    """Whether a copy is to be begun."""
    return newest > state.staged and state.under_way < 0 and now >= state.retry and bool(state.holder or not state.away)


def to_host(state: Staging, host: str) -> Staging:
    """The master has named the host that holds copies: another one has none yet."""
    return state if host == state.holder else replace(state, holder=host, staged=-1)


def found(now: float, state: Staging, generation: int) -> Staging:
    """A copy is being made that was begun before the agent started."""
    return replace(state, under_way=generation, since=now, towards="")


def done(now: float, state: Staging, size: int, why: str, by_host: bool = False) -> Decided:
    """The copy is whole, of ``size`` bytes, or ``why`` it is not (``by_host``: for its holder); the same reason is told once."""
    generation, host = state.under_way, state.towards
    seconds = now - state.since
    if state.away and not host:
        return replace(state, under_way=-1), []  # of before the agent started, and made again: what is there is found to be
    if why:
        blamed = host if by_host else ""
        told: list[Effect] = [] if why == state.why else [ReportStaged(state.uid, generation, seconds, why=why, host=blamed)]
        pause = min(RETRY * 2**state.failed, LONGEST_RETRY) if state.away else RETRY
        return replace(state, under_way=-1, retry=now + pause, why=why, failed=min(state.failed + 1, 9)), told
    whole = replace(state, staged=generation if host == state.holder else -1, under_way=-1, why="", failed=0)
    return whole, [ReportStaged(state.uid, generation, seconds, size, host=host)]


def part_ended(state: Staging, now: float) -> Staging:
    """The end of the part waits for its newest generation: what failed just before is tried once more."""
    return state if state.ended else replace(state, ended=now, retry=0.0)


def given_up(state: Staging) -> Staging:
    """No further copy is begun."""
    return replace(state, retry=math.inf)


def is_waited_for(status: int, reason: str) -> bool:
    """Whether the end of a part is told only when its newest generation is copied: the job may start again elsewhere.

    ``status``: a wait status; ``reason``: for which it was ended on request (the name of a TermReason), "" if it was not.
    """
    return bool(status) and not reason.endswith(_OF_USERS)
