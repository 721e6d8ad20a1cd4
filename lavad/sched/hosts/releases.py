"""When running jobs give back what they hold, as their run limits tell; and hosts as they will be without them.

Rule: a job without a run limit, or one that is suspended, gives back nothing; what is taken away here for a look into the
future is put back before anything is decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from lavad.core.decide.placement.preempt import parts_of
from lavad.core.job.job import Job, Part, Placed
from lavad.core.job.spec import Spec
from lavad.core.lang.states import SUSPENDED
from lavad.sched.needs.rows import Row
from lavad.sched.state.cycle_state import CycleState

NEVER = math.inf
OVERDUE = 1.0
"""Seconds within which a job that has outrun its own run limit is taken to end."""
Shifted = tuple[Sequence[Placed | Part], Spec]


def end_of(state: CycleState, job: Job, spec: Spec) -> float:
    """When a started job is over at the latest."""
    run = job.run
    limit = spec.expected
    if run is None or limit is None or job.state in SUSPENDED:
        return NEVER
    paused = 0.0 if state.cluster.conf.params.abs_runlimit else run.paused
    end = (run.started or run.dispatched) + limit + paused
    return end if end > state.now else state.now + OVERDUE


def releases(state: CycleState) -> list[tuple[float, int, Shifted]]:
    """(end, key, what comes back) of all that runs or starts in this cycle, the first to end first."""
    rows, specs = state.cluster.jobs.rows, state.cluster.specs.rows
    found: list[tuple[float, int, Shifted]] = []
    for key in state.cluster.started:
        job = rows[key]
        if not job.lent and key not in state.preempted:
            spec = specs[job.spec]
            found.append((end_of(state, job, spec), key, (parts_of(state.cluster, key), spec)))
    for at, (spec, parts) in enumerate(state.ledger.placed):
        limit = spec.expected
        found.append((NEVER if limit is None else state.now + limit, -1 - at, (parts, spec)))
    found.sort(key=lambda release: release[:2])
    return found


def shift(state: CycleState, shifted: Iterable[Shifted], sign: int) -> set[int]:
    """Take these away (-1) or put them back (1); the numbers of the rows that are other than before."""
    touched: set[int] = set()
    for parts, spec in shifted:
        state.ledger.shift(parts, spec, sign)
        touched.update(state.cache.by_name[part.host].index for part in parts)
    for at in touched:
        state.renew(state.rows[at])
    return touched


def rows_of(state: CycleState, shifted: Shifted) -> list[Row]:
    """The rows of the hosts of these parts."""
    return [state.cache.by_name[part.host] for part in shifted[0]]
