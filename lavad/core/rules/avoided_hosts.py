"""Hosts that a job which waits again stays away from (``Job.avoid``): those that it left, that were lost, or where it failed.

Rule: it prefers others. Only one that was migrated stays away for a time even where no other host can run it.
"""

from __future__ import annotations

from lavad.core.job.job import Job
from lavad.core.site.pend_reason import PendReason

STAYS_AWAY = 60.0
"""Seconds."""


def returns_at(job: Job) -> float:
    """From when on a job may run on the hosts of its ``avoid`` where no other can run it; 0: at any time."""
    return job.since + STAYS_AWAY if job.reason == PendReason.JOB_MIG else 0.0
