"""Job exceptions: a job that runs too long, ended too soon, or does nothing, as its queue says (JOB_OVERRUN and its kin)."""

from __future__ import annotations

from config.model.queue import QueueConfig
from lavad.core.job.job import Job
from lavad.core.lang.states import FINAL
from lavad.queries.facts import jobfacts
from lavad.queries.frame.view import View


def of(job: Job, view: View, now: float) -> list[str]:
    """``overrun``, ``underrun``, ``idle``; nothing for a job that has not started."""
    queue = view.queue(view.spec(job).queue)
    if job.run is None or not job.run.started or not _has_thresholds(queue):
        return []
    ran = jobfacts.run_time(job, now)
    found = []
    if job.state in FINAL:
        if queue.job_underrun is not None and ran < queue.job_underrun:
            found.append("underrun")
        return found
    if queue.job_overrun is not None and ran > queue.job_overrun:
        found.append("overrun")
    looked_at = ran >= view.params.detect_idle_job_after
    if queue.job_idle is not None and looked_at and jobfacts.Usage(job, view).cpu / ran < queue.job_idle:
        found.append("idle")
    return found


def _has_thresholds(queue: QueueConfig) -> bool:
    return (queue.job_overrun, queue.job_underrun, queue.job_idle) != (None, None, None)


def table(view: View, queue: str, now: float) -> str:
    """The paragraph of bqueues -l, "" for a queue without thresholds."""
    conf = view.queue(queue)
    if not _has_thresholds(conf):
        return ""
    counts = dict.fromkeys(("overrun", "underrun", "idle"), 0)
    for key in view.cluster.started:
        job = view.cluster.jobs.rows[key]
        if view.spec(job).queue == queue:
            for name in of(job, view, now):
                counts[name] += 1
    limits = (
        conf.job_overrun and f"{conf.job_overrun / 60:g}",
        conf.job_underrun and f"{conf.job_underrun / 60:g}",
        conf.job_idle and f"{conf.job_idle:.2f}",
    )
    cells = [(limit or "-", str(count) if limit else "-") for limit, count in zip(limits, counts.values(), strict=True)]
    rows = ((" Threshold ", [cell[0] for cell in cells]), (" Jobs      ", [cell[1] for cell in cells]))
    lines = [f"{title}{values[0]:>8}{values[1]:>16}{values[2]:>18}\n" for title, values in rows]
    return "\nJOB EXCEPTION PARAMETERS:\n             OVERRUN(min)   UNDERRUN(min)    IDLE(cputime/runtime)\n" + "".join(lines)
