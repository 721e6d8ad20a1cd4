"""When running jobs are over at the latest, as far as is known.

Rule: a job without a run limit, or a suspended one, has no end.
"""

from __future__ import annotations

import math

from lavad.core.job.chunk import end_by_limit
from lavad.core.job.job import Job
from lavad.core.job.run_time import expected_of
from lavad.core.job.spec import Spec
from lavad.core.lang.states import SUSPENDED
from lavad.core.rules.run_settings import soft_limit
from lavad.sched.state.cycle_state import CycleState

NEVER = math.inf
OVERDUE = 1.0
"""Seconds within which a job that is past its run limit is taken to end."""


def end_of(state: CycleState, job: Job, spec: Spec) -> float:
    """When a started job is over at the latest, by its run limit (or its estimated run time) on the slowest of its hosts."""
    run = job.run
    limit = expected_of(job, spec)
    if state.cache.rules.shortest_soft and (soft := soft_limit(state.cluster, job, spec)) is not None:
        limit = soft if limit is None else min(limit, soft)
    if run is None or limit is None or job.state in SUSPENDED:
        return NEVER
    end = end_by_limit(run, state.run_times.longest(spec, limit, (part.host for part in run.parts)))
    return end if end > state.now else state.now + OVERDUE
