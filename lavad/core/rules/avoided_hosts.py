"""Hosts that a job which waits again stays away from: ``Job.avoid``, those that it left, that were lost, or where it failed, and
``Job.barred``, those that EXCLUDE(…) of an exit value forbids it.

Rule: of the former it prefers others. Only one that was migrated stays away for a time even where no other host can run it.
"""

from __future__ import annotations

from lavad.core.job.job import Job
from lavad.core.site.conf import Params
from lavad.core.site.pend_reason import PendReason

STAYS_AWAY = 60.0
"""Seconds."""


def returns_at(job: Job) -> float:
    """From when on a job may run on the hosts of its ``avoid`` where no other can run it; 0: at any time."""
    return job.since + STAYS_AWAY if job.reason == PendReason.JOB_MIG else 0.0


def barred_from(job: Job, params: Params, now: float) -> tuple[frozenset[str], float]:
    """The hosts on which a job must not start now, and when the first is open again, 0: never (LSB_EXCLUDE_HOST_PERIOD)."""
    period = params.lsb_exclude_host_period
    if period is None or not job.barred:
        return frozenset(job.barred), 0.0
    ends = {host: at + period * params.mbd_sleep_time for host, at in zip(job.barred, job.barred_at, strict=False)}
    ends = {host: end for host, end in ends.items() if end > now}
    return frozenset(ends), min(ends.values(), default=0.0)
