"""When a job is asked for a checkpoint, and what follows when a new one is whole: the ``app`` method, decided.

Rule: as in ``decide``: pure, times are given; a checkpoint counts when its generation is seen.
"""

from __future__ import annotations

import signal

import msgspec
from msgspec.structs import replace

from agent.core.effects import Effect, Grant, KillAll, SayCheckpoint, Send

SIGNAL = signal.SIGUSR1
CATCH_WITHIN = 60.0
"""Seconds in which a process of the job must be ready for the signal."""
WAIT = 600.0
"""Seconds after which a checkpoint that was asked for has failed."""


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A wish that waits for the next generation."""

    wish: int
    kill_after: bool
    until: float


class Checkpoints(msgspec.Struct, frozen=True):
    """Of one part: the newest generation known, when the next is due (0: never), and the wishes that wait."""

    uid: str
    known: int = -1
    period: float = 0.0
    due: float = 0.0
    asked: tuple[Asked, ...] = ()


Decided = tuple[Checkpoints, list[Effect]]


def begin(uid: str, known: int, period: float, initial: float, now: float) -> Checkpoints:
    """The part runs; the first one is due after ``initial`` seconds, else after a period."""
    return Checkpoints(uid, known, period, now + (initial or period) if period else 0.0)


def ask(now: float, state: Checkpoints, wish: int, kill_after: bool) -> Decided:
    """A wish: the job's tasks are signalled."""
    if any(one.wish == wish for one in state.asked):
        return state, []
    asked = (*state.asked, Asked(wish, kill_after, now + WAIT))
    return replace(state, asked=asked), [Send(state.uid, SIGNAL, True)]


def every(state: Checkpoints, period: float, now: float) -> Checkpoints:
    """Another period, 0: no more by itself. Hearing it once more changes nothing."""
    if period == state.period:
        return state
    return replace(state, period=period, due=now + period if period else 0.0)


def tick(now: float, state: Checkpoints) -> Decided:
    """The periodic one, when it is due and none is under way; wishes that waited in vain."""
    effects: list[Effect] = []
    late = [one for one in state.asked if one.until <= now]
    if late:
        why = f"no checkpoint was written within {WAIT:.0f} seconds"
        effects += [Grant(state.uid, one.wish, False, why) for one in late]
        state = replace(state, asked=tuple(one for one in state.asked if one.until > now))
    if state.due and now >= state.due:
        if not state.asked:
            effects.append(Send(state.uid, SIGNAL, True))
        state = replace(state, due=now + state.period)
    return state, effects


def deaf(state: Checkpoints) -> Decided:
    """No process of the job catches the signal: it would only have ended it."""
    why = f"no process of the job catches {SIGNAL.name}"
    return replace(state, asked=()), [Grant(state.uid, one.wish, False, why) for one in state.asked]


def found(state: Checkpoints, generation: int) -> Decided:
    """This is the newest whole generation in the folder; -1: there is none."""
    if generation <= state.known:
        return state, []
    effects: list[Effect] = [SayCheckpoint(state.uid, generation)]
    effects += [Grant(state.uid, one.wish) for one in state.asked]
    if any(one.kill_after for one in state.asked):
        effects.append(KillAll(state.uid))
    return replace(state, known=generation, asked=()), effects
