"""What all events have in common: the two base classes, which state a job may be in (``moves``), and how a fold is registered.

Every event has ``at`` and is encoded by msgspec with its class name as tag (a class that was renamed keeps its first name there),
so an event of an older version decodes as long as fields are only added, with defaults.

Rule: an event's class, its moves and its fold stand in one file, by subject; ``lavad.core.events`` names all events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import msgspec

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Job
from lavad.core.lang.states import JobState as S

Moves = Mapping[S, S | None]
"""State in which an event may meet a job, to the state it leads to; None: the event or the job's past decides."""


def stay(*states: S) -> Moves:
    """Moves of an event that changes other fields than the state."""
    return {state: state for state in states}


STARTED = (S.RUN, S.SSUSP, S.USUSP, S.UNKWN, S.ZOMBI)
STAY_STARTED = stay(*STARTED)
STAY_PEND = stay(S.PEND)
STAY_WAITING = stay(S.PEND, S.PSUSP)
STAY_LIVE = stay(S.PEND, S.PSUSP, *STARTED)


class Event(msgspec.Struct, frozen=True, omit_defaults=True, tag=True, tag_field="is", kw_only=True):
    """A fact. ``at``: seconds since the epoch."""

    external: ClassVar[bool] = False
    """Brought about by users, administrators or hosts; a replay takes such an event over, all others it decides anew."""

    at: float


class JobEvent(Event, frozen=True):
    """A fact about one job, array or element; ``key`` as in ``core.lang.ids``."""

    moves: ClassVar[Moves] = {}
    """Empty where the event is about no started or touched job alone (its fold checks what it needs)."""

    key: int


def kind_of(kind: type[Event]) -> str:
    """The name that events of this class are stored under."""
    return str(kind.__struct_config__.tag)


class IllegalMove(Exception):
    """An event met a job in a state that its moves do not allow; nothing was changed."""


def move(job: Job, event: JobEvent, wanted: S | None = None) -> S:
    """The state that ``event`` brings ``job`` to (``wanted`` where its moves leave it open); raises IllegalMove."""
    targets = event.moves
    if job.state not in targets:
        raise IllegalMove(f"{type(event).__name__} met a job in {job.state.name}: {job}; event {event}")
    target = targets[job.state]
    if target is not None:
        return target
    return job.state if wanted is None else wanted


E = TypeVar("E", bound=Event)
FOLDS: dict[type[Event], Callable[[Cluster, Any], None]] = {}


def folds(*kinds: type[E]) -> Callable[[Callable[[Cluster, E], None]], Callable[[Cluster, E], None]]:
    """Registers the function that changes a cluster as these events say."""

    def register(fold: Callable[[Cluster, E], None]) -> Callable[[Cluster, E], None]:
        FOLDS.update(dict.fromkeys(kinds, fold))
        return fold

    return register
