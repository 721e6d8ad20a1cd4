"""When a job is asked for a checkpoint (method ``app``), and what follows from a new one.

Rule: pure; the caller gives the times (seconds of CLOCK_BOOTTIME). A checkpoint is complete when its generation folder is seen.
"""

from __future__ import annotations

import signal

import msgspec
from msgspec.structs import replace

from agent.core.effects import Answer, Effect, KillAll, ReportCheckpoint, Send

SIGNAL = signal.SIGUSR1
CATCH_WITHIN = 60.0
"""Seconds within which a process of the job must have a handler for the signal."""
WAIT = 600.0
"""Seconds after which a requested checkpoint counts as failed."""


class PendingRequest(msgspec.Struct, frozen=True, gc=False):
    """A request of the master that waits for the next generation; ``until``: when it fails."""

    request: int
    kill_after: bool
    until: float


class Checkpoints(msgspec.Struct, frozen=True):
    """The checkpoints of one part: the newest generation known (-1: none), when the next is due (0: never), pending requests."""

    uid: str
    known: int = -1
    period: float = 0.0
    due: float = 0.0
    pending: tuple[PendingRequest, ...] = ()


Decided = tuple[Checkpoints, list[Effect]]


def begin(uid: str, known: int, period: float, initial: float, now: float) -> Checkpoints:
    """The part runs. ``initial``: seconds to the first periodic checkpoint, 0: as ``period``; ``period`` 0: there are none."""
    return Checkpoints(uid, known, period, now + (initial or period) if period else 0.0)


def ask(now: float, state: Checkpoints, request: int, kill_after: bool) -> Decided:
    """The master requests a checkpoint: signal the job's tasks. A repeated request changes nothing."""
    if any(one.request == request for one in state.pending):
        return state, []
    pending = (*state.pending, PendingRequest(request, kill_after, now + WAIT))
    return replace(state, pending=pending), [Send(state.uid, SIGNAL, True)]


def set_period(state: Checkpoints, period: float, now: float) -> Checkpoints:
    """Change the period (seconds, 0: no periodic checkpoints); the same period again changes nothing."""
    if period == state.period:
        return state
    return replace(state, period=period, due=now + period if period else 0.0)


def tick(now: float, state: Checkpoints) -> Decided:
    """Ask for the periodic checkpoint if it is due and none is pending; fail requests whose time is over."""
    effects: list[Effect] = []
    late = [one for one in state.pending if one.until <= now]
    if late:
        why = f"no checkpoint was written within {WAIT:.0f} seconds"
        effects += [Answer(state.uid, one.request, False, why) for one in late]
        state = replace(state, pending=tuple(one for one in state.pending if one.until > now))
    if state.due and now >= state.due:
        if not state.pending:
            effects.append(Send(state.uid, SIGNAL, True))
        state = replace(state, due=now + state.period)
    return state, effects


def signal_ignored(state: Checkpoints) -> Decided:
    """No process of the job catches the signal, so it was not sent: every pending request fails."""
    why = f"no process of the job catches {SIGNAL.name}"
    return replace(state, pending=()), [Answer(state.uid, one.request, False, why) for one in state.pending]


def found(state: Checkpoints, generation: int) -> Decided:
    """The newest complete generation in the folder is ``generation``; -1: there is none."""
    if generation <= state.known:
        return state, []
    effects: list[Effect] = [ReportCheckpoint(state.uid, generation)]
    effects += [Answer(state.uid, one.request) for one in state.pending]
    if any(one.kill_after for one in state.pending):
        effects.append(KillAll(state.uid))
    return replace(state, known=generation, pending=()), effects
