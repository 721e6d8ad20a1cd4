"""lava's addition to bjobs -l for jobs with roles: their conditions with times and reasons, and how each role's tasks stand."""

from __future__ import annotations

from lavad.core.job.job import Job
from lavad.core.job.roles import counts
from lavad.core.job.spec import Spec
from lavad.core.lang.states import SUSPENDED, JobState, TermReason
from lavad.queries.facts import jobfacts
from lavad.queries.frame import times

Condition = tuple[float, str, str]
"""(when it came to be so, what, why)."""


def conditions(job: Job, spec: Spec) -> list[Condition]:
    """What the job has been, by time: Created, Running, Restarting, Suspended, Succeeded or Failed."""
    found: list[Condition] = [(job.submitted, "Created", f"submitted by {spec.user}")]
    run = job.run
    if run is not None and run.started:
        hosts = f"{len(run.parts)} host{'s' if len(run.parts) > 1 else ''}"
        found.append((run.started, "Running", f"{len(run.tasks)} tasks on {hosts}, attempt {run.number}"))
    if job.retried:
        found.append((job.retried, "Restarting", job.retried_why))
    if job.state in SUSPENDED or job.state is JobState.PSUSP:
        found.append((job.since, "Suspended", "by the system" if job.state is JobState.SSUSP else "by user or administrator"))
    outcome = job.outcome
    if outcome is not None:
        why = outcome.why
        if not why and outcome.reason is not TermReason.NONE:
            why = jobfacts.term_text(outcome.reason)
        if job.state is JobState.DONE:
            why = f"success is {spec.policy.success}"
        found.append((outcome.at, "Succeeded" if job.state is JobState.DONE else "Failed", why or "-"))
    return sorted(found, key=lambda one: one[0])


def table(job: Job, spec: Spec) -> str:
    """Both tables, "" for a job without roles."""
    if not spec.roles:
        return ""
    lines = ["\n CONDITIONS:\n TYPE         SINCE                    REASON\n"]
    lines += [f" {what:<12} {times.full(at):<24} {why}\n" for at, what, why in conditions(job, spec)]
    lines.append("\n ROLES:\n NAME             TASKS  WAITING  ACTIVE  SUCCEEDED  FAILED  RESTARTS\n")
    over = job.outcome is not None  # what still ran or waited then was ended
    for one in counts(spec, job.run):
        waiting, active = (0, 0) if over else (one.waiting, one.active)
        lines.append(
            f" {one.name:<16} {one.wanted:>5} {waiting:>8} {active:>7} {one.succeeded:>10} {one.failed:>7} {one.restarts:>9}\n"
        )
    return "".join(lines)
