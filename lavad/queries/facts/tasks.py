"""lava's additions to bjobs -l for jobs of many tasks: what each task uses, ranks that seem to hang, and roles."""

from __future__ import annotations

from lavad.core.job.job import Job, Suspect
from lavad.core.job.roles import counts
from lavad.core.job.spec import Spec
from lavad.core.lang.states import SUSPENDED, JobState, TermReason
from lavad.core.plan.volatile import PartUsage, TaskUsage
from lavad.queries.facts import jobfacts
from lavad.queries.facts.jobfacts import Usage
from lavad.queries.frame import formats

_HEADER = " RANK HOST             PID   CPU_TIME        RSS        PSS THREADS STATE    GPU_MEM GPU_UTIL\n"


def usage_table(usage: Usage) -> str:
    """The table of tasks with their sum; "" if no host has reported tasks."""
    rows = [(host, task) for host, part in usage.parts.items() for task in part.tasks]
    if not rows:
        return ""
    rows.sort(key=lambda row: (row[1].rank < 0, row[1].rank, row[0]))
    rows += [(host, _started_from_afar(part)) for host, part in usage.parts.items() if part.pids and not part.tasks]
    lines = [" TASK USAGE:\n", _HEADER]
    lines += [_usage_row(host, task) for host, task in rows]
    lines.append(_usage_sum(list(usage.parts.values()), [task for _, task in rows]))
    return "".join(lines)


def _started_from_afar(part: PartUsage) -> TaskUsage:
    """All processes of a host where blaunch alone starts some: it has no task of its own."""
    return TaskUsage(
        rank=-1,
        pid=part.pids[0],
        cpu=part.cpu,
        rss=part.rss,
        pss=part.pss,
        threads=part.threads,
        processes=len(part.pids),
        state="-",
    )


def _size(kb: float) -> str:
    return formats.unit_text(kb, "S") if kb else "-"


def _usage_row(host: str, task: TaskUsage) -> str:
    rank = str(task.rank) if task.rank >= 0 else "-"
    gpu_mem, gpu_util = (f"{task.gpu_mem}M", f"{task.gpu_util}%") if task.gpu_mem or task.gpu_util else ("-", "-")
    return (
        f" {rank:>4} {host:<12} {task.pid:>7} {task.cpu:>9.1f}s {_size(task.rss):>10} {_size(task.pss):>10} "
        f"{task.threads:>7} {task.state:<5} {gpu_mem:>10} {gpu_util:>8}\n"
    )


def _usage_sum(parts: list[PartUsage], tasks: list[TaskUsage]) -> str:
    hosts = f"{len(parts)} host{'s' if len(parts) > 1 else ''}"
    gpu_mem = sum(task.gpu_mem for task in tasks)
    busy = [task.gpu_util for task in tasks if task.gpu_mem or task.gpu_util]
    return (
        f" {'SUM':>4} {hosts:<12} {sum(task.processes for task in tasks):>7} {sum(task.cpu for task in tasks):>9.1f}s "
        f"{_size(sum(task.rss for task in tasks)):>10} {_size(sum(task.pss for task in tasks)):>10} "
        f"{sum(task.threads for task in tasks):>7} {'':<5} {f'{gpu_mem}M' if gpu_mem else '-':>10} "
        f"{f'{sum(busy) // len(busy)}%' if busy else '-':>8}\n"
    )


def suspicion(suspect: Suspect, now: float) -> str:
    """A sentence about a rank that seems to hang."""
    seconds = f"{max(0.0, now - suspect.since):.0f} seconds"
    who = f"Rank <{suspect.rank}> on host <{suspect.host}> (process <{suspect.pid}>)"
    where = f"; it waits in <{suspect.waits}>" if suspect.waits and suspect.how != "stopped" else ""
    match suspect.how:
        case "stopped":
            return f"{who} is stopped, for {seconds}"
        case "idle":
            return f"{who} seems to hang: no CPU used for {seconds}, while the other ranks are busy{where}"
        case "behind":
            return f"{who} is behind: it is busy, and the other ranks have waited for {seconds}"
        case "odd":
            return f"{who} seems to hang: no rank has used CPU for {seconds}, and it waits for something else{where}"
    return f"No rank has used CPU for {seconds}: the job seems to hang; rank <{suspect.rank}>, host <{suspect.host}>{where}"


Condition = tuple[float, str, str]
"""(since when, condition, reason)."""


def role_conditions(job: Job, spec: Spec) -> list[Condition]:
    """The conditions that the job has had, by time: Created, Running, Restarting, Suspended, Succeeded, Failed."""
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
        if job.state is JobState.DONE and not why:
            why = f"success is {spec.policy.success}"
        found.append((outcome.at, "Succeeded" if job.state is JobState.DONE else "Failed", why or "-"))
    return sorted(found, key=lambda one: one[0])


def role_tables(job: Job, spec: Spec) -> str:
    """The tables of conditions and of roles; "" for a job without roles."""
    if not spec.roles:
        return ""
    lines = ["\n CONDITIONS:\n TYPE         SINCE                    REASON\n"]
    lines += [f" {what:<12} {formats.full_time(at):<24} {why}\n" for at, what, why in role_conditions(job, spec)]
    lines.append("\n ROLES:\n NAME             TASKS  WAITING  ACTIVE  SUCCEEDED  FAILED  RESTARTS  TERMINATED\n")
    over = job.outcome is not None  # what still ran or waited then was ended
    for one in counts(spec, job.run):
        rest = one.waiting + one.active
        waiting, active, terminated = (0, 0, rest + one.terminated) if over else (one.waiting, one.active, one.terminated)
        lines.append(
            f" {one.name:<16} {one.wanted:>5} {waiting:>8} {active:>7} {one.succeeded:>10} {one.failed:>7} {one.restarts:>9}"
            f" {terminated:>11}\n"
        )
    return "".join(lines)
