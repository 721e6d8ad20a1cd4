"""A job that has exceeded a limit, and starts again where it asked for that.

Rule: only after progress. An attempt that reached its run limit without a new checkpoint would be followed by the same one
for ever, and one that reached its memory limit starts again with more memory only.
"""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.specs import spec_number
from lavad.core.job.job import Attempt, End, Job
from lavad.core.job.memory import limit_for, program_of, size_text
from lavad.core.job.spec import Spec
from lavad.core.lang.states import TermReason
from lavad.core.rules.memory_limit import next_limit
from lavad.core.rules.run_settings import extension_of
from lavad.core.site.pend_reason import PendReason


def after_run_limit(cluster: Cluster, job: Job, run: Attempt, spec: Spec, now: float, end: End | None) -> ev.JobRequeued | None:
    """The event that starts it again from the newest generation of this attempt (-k "DIR runlimit=requeue"), or as it could have
    run on if others had not needed its slots (REQUEUE[Y] of EXTENDABLE_RUNLIMIT), then behind these; or None.
    """
    if run.verdict is None or run.verdict.limit is not TermReason.TERM_RUNLIMIT:
        return None
    rule = extension_of(cluster, spec) if run.soft_limit < 0 else None
    if rule is not None and rule.requeue:
        why = "it reached its run limit as other jobs needed its slots"
        return ev.JobRequeued(at=now, key=job.key, reason=PendReason.JOB_REQUEUED, why=why, end=end, queue_time=now)
    if spec.checkpoint is None:
        return None
    made = job.checkpoints.newest(run.number) if job.checkpoints is not None else None
    if made is None or not spec.checkpoint.requeues:
        return None
    why = f"it reached its run limit; it goes on from checkpoint generation {made.number}"
    return ev.JobRequeued(at=now, key=job.key, reason=PendReason.JOB_REQUEUED, why=why, end=end)


def learnt_of(job: Job, run: Attempt, spec: Spec, now: float) -> list[ev.Event]:
    """-M auto: what the end of an attempt tells of the memory that its program needs; nothing if it failed for another reason."""
    if not spec.memory_auto or run.verdict is None or run.verdict.lost:
        return []
    limit = 0
    if reached := _reached(run, spec):
        limit = 2 * reached
    elif run.verdict.status == 0 and (used := max(part.end.max_mem for part in run.parts if part.end is not None)):
        limit = limit_for(used)
    what = program_of(spec.app, job.name)
    return [ev.MemoryLearnt(at=now, key=job.key, what=what, limit=limit)] if limit else []


def after_memory_limit(cluster: Cluster, job: Job, run: Attempt, spec: Spec, now: float, end: End | None) -> list[ev.Event]:
    """The events that start it again with twice the limit (-M auto), from its newest generation or its beginning; or nothing."""
    reached = _reached(run, spec)
    limit = next_limit(cluster, spec, reached)
    if limit <= reached or spec.never_rerun or spec.interactive:
        return []
    events: list[ev.Event] = []
    number = spec_number(cluster, replace(spec, limits=replace(spec.limits, mem=limit)), events, now)
    begin = f"checkpoint generation {run.checkpoint}" if spec.checkpoint is not None and run.checkpoint >= 0 else "its beginning"
    why = f"it reached its memory limit of {size_text(reached)}; it starts again with {size_text(limit)}, from {begin}"
    return [*events, ev.JobRequeued(at=now, key=job.key, reason=PendReason.JOB_REQUEUED, why=why, end=end, spec=number)]


def why_no_more_memory(run: Attempt, spec: Spec) -> str:
    """Why a job with -M auto that reached its limit does not start again; "" for others."""
    if not (reached := _reached(run, spec)):
        return ""
    why = "not rerunnable" if spec.never_rerun else "an interactive job" if spec.interactive else "the most that it may have"
    return f"it reached its memory limit of {size_text(reached)}, and does not start again: {why}"


def _reached(run: Attempt, spec: Spec) -> int:
    """KB of the memory limit that ended an attempt of a job with -M auto; 0: none did."""
    ends = (run.verdict, *(part.end for part in run.parts))
    over = any(end is not None and end.limit is TermReason.TERM_MEMLIMIT for end in ends)
    return (run.limits or spec.limits).mem or 0 if over and spec.memory_auto else 0
