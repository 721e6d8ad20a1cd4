"""How long an attempt has run, in whole seconds between events as LSF counts them, so that all reports have the same number.

Rule: it runs from its dispatch on, its pre-execution command included, as its state is RUN from then on; suspensions do not
count. Its run limit counts from the start of its first process.
"""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core.job.chunk import its_turn
from lavad.core.job.job import Attempt, Job
from lavad.core.job.spec import Spec
from lavad.core.lang.states import SUSPENDED, JobState

_SILENT = frozenset({JobState.UNKWN, JobState.ZOMBI})


def _is_suspended(job: Job) -> bool:
    """A job whose host is silent goes on, or stays suspended, as it was when the host was last heard."""
    return (job.before if job.state in _SILENT else job.state) in SUSPENDED


def suspended_until(job: Job, at: float) -> float:
    """Seconds that its attempt has been suspended until ``at``, now or before."""
    if job.run is None:
        return 0.0
    return job.run.paused + (max(0, int(at) - int(job.since)) if _is_suspended(job) else 0)


def with_suspension(job: Job, at: float) -> Attempt | None:
    """Its attempt as the job leaves its state at ``at``: a suspension that is over then counts."""
    run = job.run
    return replace(run, paused=suspended_until(job, at)) if run is not None and _is_suspended(job) else run


def start_of(job: Job) -> float:
    """When its attempt got its slots; 0.0: it never did."""
    return its_turn(job.run) if job.run is not None else 0.0


def has_started(job: Job) -> bool:
    """Whether a process of its attempt has started; of a short one the host tells only with its end."""
    run = job.run
    return run is not None and bool(run.started or any(part.end is not None and part.end.started for part in run.parts))


def run_time(job: Job, now: float) -> int:
    """Seconds in state RUN, or UNKWN after it, until its end, or until ``now``; 0 before its start."""
    begin = start_of(job)
    end = job.outcome.at if job.outcome is not None else now
    return max(0, int(end) - int(begin) - int(suspended_until(job, end))) if begin else 0


def limit_of(job: Job, spec: Spec) -> int | None:
    """The run limit of its attempt, in seconds as limits are given; None: it has none."""
    run = job.run
    return spec.limits.run if run is None or run.limits is None else run.limits.run


def expected_of(job: Job, spec: Spec) -> int | None:
    """Seconds that its attempt is expected to run, by its estimate, else its run limit; None: unknown."""
    limit = limit_of(job, spec)
    if limit is None or limit == spec.limits.run:
        return spec.estimate or limit
    return min(spec.estimate or limit, limit)


def counted(job: Job, now: float) -> float:
    """Seconds that count for its run limit."""
    run = job.run
    if run is None or job.state is JobState.WAIT:
        return 0.0
    return max(0.0, now - (run.started or run.dispatched) - suspended_until(job, now))
