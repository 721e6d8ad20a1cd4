"""What all events share: the two base classes, the allowed states of the job (``moves``), and the registration of folds.

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
"""State that the job may be in, to the state that follows; None: it depends on the event or on the job's history."""


def stay(*states: S) -> Moves:
    """Moves of an event that does not change the state of the job."""
    return {state: state for state in states}


STARTED = (S.RUN, S.WAIT, S.SSUSP, S.USUSP, S.UNKWN, S.ZOMBI)
STAY_STARTED = stay(*STARTED)
STAY_PEND = stay(S.PEND)
STAY_WAITING = stay(S.PEND, S.PSUSP)
STAY_LIVE = stay(S.PEND, S.PSUSP, *STARTED)


class Event(msgspec.Struct, frozen=True, omit_defaults=True, tag=True, tag_field="is", kw_only=True):
    """A fact. ``at``: seconds since the epoch."""

    external: ClassVar[bool] = False
    """Caused by users, administrators or hosts: a replay takes such events as recorded and decides all others again."""

    at: float


class JobEvent(Event, frozen=True):
    """A fact about one job, array or element; ``key`` as in ``core.lang.ids``."""

    moves: ClassVar[Moves] = {}
    """Empty where the event may also be about an array or a job without a record; its fold checks what it needs."""

    key: int


def kind_of(kind: type[Event]) -> str:
    """The name that events of this class are stored under."""
    return str(kind.__struct_config__.tag)


class IllegalMove(Exception):
    """The state of the job does not allow the event; nothing was changed."""


def move(job: Job, event: JobEvent, wanted: S | None = None) -> S:
    """The state of ``job`` after ``event`` (``wanted`` where the moves leave it open). Raises IllegalMove."""
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
    """Register the function that applies events of these kinds to a cluster."""

    def register(fold: Callable[[Cluster, E], None]) -> Callable[[Cluster, E], None]:
        FOLDS.update(dict.fromkeys(kinds, fold))
        return fold

    return register
