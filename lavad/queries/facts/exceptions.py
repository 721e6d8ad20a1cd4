"""Job exceptions: a job that runs too long, ended too soon, or does nothing, as its queue says (JOB_OVERRUN and its kin)."""

from __future__ import annotations

from lavad.core.job.job import Job
from lavad.core.lang.states import FINAL
from lavad.core.site.conf import ExceptionConf
from lavad.queries.facts import jobfacts
from lavad.queries.frame.view import View

_NOTHING = ExceptionConf()


def of(job: Job, view: View, now: float) -> list[str]:
    """``overrun``, ``underrun``, ``idle``; nothing for a job that has not started."""
    rule = view.queue(view.spec(job).queue).exceptions or _NOTHING
    if job.run is None or not job.run.started or rule == _NOTHING:
        return []
    ran = jobfacts.run_time(job, now)
    found = []
    if job.state in FINAL:
        if rule.underrun is not None and ran < rule.underrun:
            found.append("underrun")
        return found
    if rule.overrun is not None and ran > rule.overrun:
        found.append("overrun")
    if rule.idle is not None and ran >= rule.idle_after and jobfacts.Usage(job, view).cpu / ran < rule.idle:
        found.append("idle")
    return found


def table(view: View, queue: str, now: float) -> str:
    """The paragraph of bqueues -l, "" for a queue without thresholds."""
    rule = view.queue(queue).exceptions
    if rule is None:
        return ""
    counts = dict.fromkeys(("overrun", "underrun", "idle"), 0)
    for key in view.cluster.started:
        job = view.cluster.jobs.rows[key]
        if view.spec(job).queue == queue:
            for name in of(job, view, now):
                counts[name] += 1
    limits = (
        rule.overrun and f"{rule.overrun / 60:g}",
        rule.underrun and f"{rule.underrun / 60:g}",
        rule.idle and f"{rule.idle:.2f}",
    )
    cells = [(limit or "-", str(count) if limit else "-") for limit, count in zip(limits, counts.values(), strict=True)]
    rows = ((" Threshold ", [cell[0] for cell in cells]), (" Jobs      ", [cell[1] for cell in cells]))
    lines = [f"{title}{values[0]:>8}{values[1]:>16}{values[2]:>18}\n" for title, values in rows]
    return "\nJOB EXCEPTION PARAMETERS:\n             OVERRUN(min)   UNDERRUN(min)    IDLE(cputime/runtime)\n" + "".join(lines)
