"""A job that has exceeded a limit, and starts again where it asked for that.

Rule: it has got on: an attempt that reached its run limit without a new checkpoint would be followed by the same one for ever.
"""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.job.job import Attempt, End, Job
from lavad.core.job.spec import Spec
from lavad.core.lang.states import TermReason
from lavad.core.site.pend_reason import PendReason


def after_run_limit(job: Job, run: Attempt, spec: Spec, now: float, end: End | None) -> ev.JobRequeued | None:
    """The event that starts it again from the newest generation of this attempt (-k "DIR runlimit=requeue"), or None."""
    if run.verdict is None or run.verdict.limit is not TermReason.TERM_RUNLIMIT or spec.checkpoint is None:
        return None
    made = job.checkpoints.newest(run.number) if job.checkpoints is not None else None
    if made is None or not spec.checkpoint.requeues:
        return None
    why = f"it reached its run limit; it goes on from checkpoint generation {made.number}"
    return ev.JobRequeued(at=now, key=job.key, reason=PendReason.JOB_REQUEUED, why=why, end=end)
