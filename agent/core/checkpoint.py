"""When a job is asked for a checkpoint, or the site's program for one of it, and what follows from a new one.

Rule: pure; the caller gives the times (seconds of CLOCK_BOOTTIME). A checkpoint is complete when its generation folder is seen.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Sequence
from enum import Enum

import msgspec
from msgspec.structs import replace

from agent.core.effects import Answer, Effect, KillAll, MakeCheckpoint, ReportCheckpoint, Send

SIGNAL = signal.SIGUSR1
CATCH_WITHIN = 60.0
"""Seconds within which a process of the job must have a handler for the signal."""
WAIT = 600.0
"""Seconds after which a requested checkpoint counts as failed, where the site gives no other time."""
APP = "app"
"""The method by which the job's program writes its checkpoints itself."""
OF_USERS = ("_OWNER", "_ADMIN")
"""Ends of the names of the reasons (TermReason) for which users end a job themselves."""
_REQUEUED = "TERM_REQUEUE"
"""Begins the names of those after which the job starts again all the same."""
LAST_LOOK = 10.0
"""Seconds that an end waits at most for a last look into the folder."""


class Look(Enum):
    """What becomes of the last look into the folder of a part that has ended."""

    NONE = "none"
    """Nothing is waited for: it was answered, or takes too long."""
    WAIT = "wait"
    BEGIN = "begin"


class PendingRequest(msgspec.Struct, frozen=True, gc=False):
    """A request of the master that waits for the next generation; ``until``: when it fails."""

    request: int
    kill_after: bool
    until: float
    ends: bool = False
    """If it fails, the part ends without it."""


class Checkpoints(msgspec.Struct, frozen=True):
    """The checkpoints of one part: the newest generation known (-1: none), when the next is due (0: never), pending requests."""

    uid: str
    known: int = -1
    period: float = 0.0
    due: float = 0.0
    pending: tuple[PendingRequest, ...] = ()
    seen: int = -1
    """The newest generation that was looked into, whole or not."""
    listed: bool = False
    """The folder has been looked at since the part runs."""
    asked: float = 0.0
    """When the job was asked for the checkpoint that is under way; 0: none is."""
    method: str = APP
    wait: float = WAIT
    """Seconds after which a checkpoint of ``app`` counts as failed; a site's program is ended in time by who runs it."""


Decided = tuple[Checkpoints, list[Effect]]


def begin(uid: str, known: int, period: float, initial: float, now: float, method: str = APP, wait: float = WAIT) -> Checkpoints:
    """The part runs. ``initial``: seconds to the first periodic checkpoint, 0: as ``period``; ``period`` 0: there are none."""
    due = now + (initial or period) if period else 0.0
    return Checkpoints(uid, known, period, due, seen=known, method=method, wait=wait)


def ask(now: float, state: Checkpoints, request: int, kill_after: bool, within: float = 0.0) -> Decided:
    """The master requests a checkpoint. A repeated request changes nothing; one that a site's program makes already serves it.

    ``request`` and ``within``: as in ``AskCheckpoint``.
    """
    if any(one.request == request for one in state.pending) or (not request and state.asked):
        return state, []
    pending = state.pending
    if request:
        until = now + (within or (state.wait if state.method == APP else math.inf))
        pending = (*pending, PendingRequest(request, kill_after, until, bool(within)))
    if state.method != APP and state.asked:
        return replace(state, pending=pending), []
    return replace(state, pending=pending, asked=now), [_make(state, kill_after)]


def _make(state: Checkpoints, kill: bool = False) -> Effect:
    """The signal to the job's tasks, or the order to the site's program."""
    return Send(state.uid, SIGNAL, True) if state.method == APP else MakeCheckpoint(state.uid, kill)


def set_period(state: Checkpoints, period: float, now: float) -> Checkpoints:
    """Change the period (seconds, 0: no periodic checkpoints); the same period again changes nothing."""
    if period == state.period:
        return state
    return replace(state, period=period, due=now + period if period else 0.0)


def tick(now: float, state: Checkpoints) -> Decided:
    """Ask for the periodic checkpoint if it is due and none is pending; fail requests whose time is over."""
    effects: list[Effect] = []
    why = f"no checkpoint was written within {state.wait:.0f} seconds"
    late = [one for one in state.pending if one.until <= now]
    if late:
        effects += _fail(state.uid, late, why)
        state = replace(state, pending=tuple(one for one in state.pending if one.until > now))
    if state.asked and state.method == APP and now >= state.asked + state.wait:
        effects.append(ReportCheckpoint(state.uid, -1, now - state.asked, why=why))
        state = replace(state, asked=0.0)
    if state.due and now >= state.due:
        if not state.asked:
            effects.append(_make(state))
            state = replace(state, asked=now)
        state = replace(state, due=now + state.period)
    return state, effects


def signal_ignored(state: Checkpoints) -> Decided:
    """No process of the job catches the signal, so it was not sent: every pending request fails."""
    why = f"no process of the job catches {SIGNAL.name}"
    return _failed(state, why)


def not_made(now: float, state: Checkpoints, why: str) -> Decided:
    """The site's program wrote none."""
    told = ReportCheckpoint(state.uid, -1, now - state.asked if state.asked else 0.0, why=why)
    state, effects = _failed(state, why)
    return state, [told, *effects]


def under_way(state: Checkpoints, now: float) -> Checkpoints:
    """A site's program writes one that was begun before the agent started."""
    return replace(state, asked=now)


def waits_for_it(state: Checkpoints) -> bool:
    """Whether the job is to end with the checkpoint that is under way."""
    return bool(state.asked) and any(one.kill_after for one in state.pending)


def found(now: float, state: Checkpoints, generation: int, size: int = 0) -> Decided:
    """The newest whole generation in the folder is ``generation``, of ``size`` bytes; -1: there is none."""
    if generation <= state.known:
        return state, []
    seconds = now - state.asked if state.asked else 0.0
    effects: list[Effect] = [ReportCheckpoint(state.uid, generation, seconds, size)]
    effects += [Answer(state.uid, one.request) for one in state.pending]
    if any(one.kill_after for one in state.pending):
        effects.append(KillAll(state.uid))
    return replace(state, known=generation, seen=max(state.seen, generation), pending=(), asked=0.0), effects


def listed(state: Checkpoints, newest: int) -> Decided:
    """The part has just started, and ``newest`` is the newest generation that its start has left in the folder (-1: none)."""
    if state.listed or newest >= state.known:
        return replace(state, listed=True), []
    why = "it was damaged or gone when the job started again"
    told = ReportCheckpoint(state.uid, state.known, why=why, newest=newest)
    return replace(state, listed=True, known=newest, seen=newest), [told]


def damaged(now: float, state: Checkpoints, generation: int, why: str) -> Decided:
    """A new generation is not what its manifest says: it does not count, and who asked for it is told."""
    if generation <= state.seen:
        return state, []
    seconds = now - state.asked if state.asked else 0.0
    told = ReportCheckpoint(state.uid, generation, seconds, why=why)
    state, effects = _failed(replace(state, seen=generation), f"checkpoint generation {generation} is damaged: {why}")
    return state, [told, *effects]


def may_go_on(state: Checkpoints, status: int, reason: str) -> bool:
    """Whether it matters, after the end of a part, what it has written last: its job may start again, or somebody has asked.

    ``status``: a wait status; ``reason``: for which it was ended on request (the name of a TermReason), "" if it was not.
    """
    return bool(status or state.pending) and (not reason.endswith(OF_USERS) or reason.startswith(_REQUEUED))


def last_look(now: float, ended: float, under_way: bool, begun: bool, within: float = LAST_LOOK) -> Look:
    """What the end of a part of which ``may_go_on`` is true, and which waits since ``ended``, is to wait for.

    ``under_way``: a look is not answered yet; ``begun``: one was begun after the end. One from before may have missed what was
    written last, and the next begins when it is answered: both would read the same files.
    """
    if now >= ended + within or (begun and not under_way):
        return Look.NONE
    return Look.WAIT if under_way else Look.BEGIN


def after_end(decided: Decided) -> Decided:
    """The same for a part that has ended: all that could still be killed of it is its post-execution command."""
    state, effects = decided
    return state, [effect for effect in effects if not isinstance(effect, KillAll)]


def _failed(state: Checkpoints, why: str) -> Decided:
    return replace(state, pending=(), asked=0.0), _fail(state.uid, state.pending, why)


def _fail(uid: str, requests: Sequence[PendingRequest], why: str) -> list[Effect]:
    """Who asked hears that there is none; a part that was to end by now does so without."""
    effects: list[Effect] = [Answer(uid, one.request, one.ends, "" if one.ends else why) for one in requests]
    if any(one.ends for one in requests):
        effects.append(KillAll(uid))
    return effects
