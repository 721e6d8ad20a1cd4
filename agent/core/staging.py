"""When a generation of a job's checkpoints is copied (``bsub -k "DIR stage"``) to the shared folder or a host, and what follows.

Rule: pure; the caller gives the times (seconds of CLOCK_BOOTTIME). One is copied at a time, the newest; the job waits for none.
"""

from __future__ import annotations

import math

import msgspec
from msgspec.structs import replace

from agent.core.checkpoint import OF_USERS
from agent.core.effects import Effect, ReportStaged, StageGeneration

RETRY = 60.0
"""Seconds after a copy that failed until the next one is begun."""
FIRST_RETRY = 5.0
"""The same of a copy to another host, the first that failed: its agent has been started again since, or another host is named."""
LONGEST_RETRY = 16 * RETRY
"""Of more of them in a row, as each host may be full: twice as long each time, at most so long."""


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
    named: bool = False
    """Of a job on several hosts: all of them copy the generation that the master names, ``wanted`` (-1: none yet)."""
    wanted: int = -1
    first: bool = True
    """This is the job's first host, which tells the master."""


Decided = tuple[Staging, list[Effect]]


def look(now: float, state: Staging, newest: int) -> Decided:
    """``newest`` is the newest whole generation, -1: there is none. What is there already is found so by who copies."""
    newest = state.wanted if state.named else newest
    if not is_due(now, state, newest):
        return state, []
    return replace(state, under_way=newest, since=now, towards=state.holder), [StageGeneration(state.uid, newest)]


def is_due(now: float, state: Staging, newest: int) -> bool:
    """Whether a copy is to be begun."""
    return newest > state.staged and state.under_way < 0 and now >= state.retry and bool(state.holder or not state.away)


def to_host(state: Staging, host: str) -> Staging:
    """The master has named the host that holds copies: another one has none yet."""
    return state if host == state.holder else replace(state, holder=host, staged=-1)


def name(state: Staging, generation: int) -> Staging:
    """The master has named the generation that all hosts of the job copy; it is named again where it could not be copied."""
    if generation == state.wanted:
        return state
    return replace(state, wanted=generation, retry=0.0 if state.retry < math.inf else state.retry, why="", failed=0)


def is_given_up(state: Staging, newest: int = -1) -> bool:
    """Whether another generation is copied than is wanted: by an end that waits, the ``newest`` whole one."""
    if state.named:
        return state.under_way >= 0 and state.under_way != state.wanted
    return state.ended > 0.0 and 0 <= state.under_way < newest


def found(now: float, state: Staging, generation: int) -> Staging:
    """A copy is being made that was begun before the agent started."""
    return replace(state, under_way=generation, since=now, towards="")


def done(now: float, state: Staging, size: int, why: str, by_host: bool = False, newest: int = -1) -> Decided:
    """The copy is whole, of ``size`` bytes, or ``why`` it is not (``by_host``: for its holder); the same reason is told once.

    ``newest``: as in ``is_given_up``.
    """
    generation, host = state.under_way, state.towards
    seconds = now - state.since
    if is_given_up(state, newest if why else -1):
        return replace(state, under_way=-1), []
    if state.away and not host:
        return replace(state, under_way=-1), []  # begun before the agent started, and made again: it finds what is there already
    if why:
        if not state.first:
            return replace(state, under_way=-1, retry=now + RETRY, why=why), []  # the first host tells, which waits for all parts
        blamed = host if by_host else ""
        told: list[Effect] = [] if why == state.why else [ReportStaged(state.uid, generation, seconds, why=why, host=blamed)]
        return replace(state, under_way=-1, retry=now + _pause(state), why=why, failed=min(state.failed + 1, 9)), told
    whole = replace(state, staged=generation if host == state.holder else -1, under_way=-1, why="", failed=0)
    return whole, [] if not state.first else [ReportStaged(state.uid, generation, seconds, size, host=host)]


def _pause(state: Staging) -> float:
    """Seconds until the next copy after one that has just failed."""
    if not state.away:
        return RETRY
    return min(RETRY * 2 ** (state.failed - 1), LONGEST_RETRY) if state.failed else FIRST_RETRY


def part_ended(state: Staging, now: float) -> Staging:
    """The end of the part waits for its newest generation: what failed just before is tried once more."""
    return state if state.ended else replace(state, ended=now, retry=0.0)


def given_up(state: Staging) -> Staging:
    """No further copy is begun."""
    return replace(state, retry=math.inf)


def is_waited_for(status: int, reason: str, first: bool = True) -> bool:
    """Whether the end of a part is told only when its newest generation is copied: the job may start again elsewhere.

    ``status``: a wait status; ``reason``: for which it was ended on request (the name of a TermReason), "" if it was not. How the
    job ends is said by its first host.
    """
    return bool(status or not first) and not reason.endswith(OF_USERS)


def awaits(now: float, state: Staging, newest: int) -> bool:
    """Whether the end of a part waits for the master, or for what was copied last: on a first host for the newest to be named,
    on others for the first host, as the master ends them after it.
    """
    return state.named and (not state.first or (newest > state.staged and now >= state.retry))
