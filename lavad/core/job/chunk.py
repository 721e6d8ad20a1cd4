"""Chunks: one-slot jobs that are dispatched together and run one after the other in one slot of a host (CHUNK_JOB_SIZE).

Rule: the last job of a chunk has its slot, and what is reserved with it, from the dispatch on; the others have none. So nothing
moves when one ends and the next begins. Where the last one leaves before others have ended, what it had passes to the last that
is left; one that goes to another queue while it runs has it until its end (``core.events.chunks``). Each is an
attempt of its own: what becomes of one changes nothing for the others.
"""

from __future__ import annotations

from lavad.core.job.job import Attempt, Part, Placed
from lavad.core.lang.states import JobState

RUNS = frozenset({JobState.RUN, JobState.WAIT})
"""Of a job that neither has been suspended nor has lost its host."""


def its_turn(run: Attempt) -> float:
    """When an attempt got its slot: as it was dispatched, or those before it in its chunk were over; 0.0: it has not yet."""
    if not run.chunk:
        return run.dispatched
    ends = (part.end.started for part in run.parts if part.end is not None)
    return run.started or next((at for at in ends if at), 0.0)


def end_by_limit(run: Attempt, limit: float) -> float:
    """When a run limit, in seconds, is up, suspensions that are over not counted: of a job that waits behind others, once each of
    them has run for as long.

    What counts is the last job of a chunk: it has the slot from the dispatch on, and runs after the others.
    """
    return (run.started or run.dispatched + limit * len(run.ahead)) + limit + run.paused


def slots_in(part: Part | Placed) -> int:
    """The slots that a part runs in, whichever job of its chunk has them."""
    return part.slots or 1
