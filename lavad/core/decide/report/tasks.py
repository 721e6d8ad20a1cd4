"""Decisions on reports about single tasks of jobs with roles: a restart, or the verdict of the job.

Rule: reports about other starts than the task's current one are dropped; no task is restarted in a job that must end.
"""

from __future__ import annotations

import signal

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.report.array_ends import end_others, restarts_so_far
from lavad.core.decide.report.parts import find_part
from lavad.core.events.task import ended, recalled, with_task
from lavad.core.job.job import Attempt, End, Job
from lavad.core.job.reports import TaskEndReport, TaskReport, TaskStartReport
from lavad.core.job.roles import Judgement, Later, Recall, Retry, may_return, on_end, task_name
from lavad.core.job.spec import Spec
from lavad.core.job.task_run import TaskRun
from lavad.core.lang.ids import index_of, job_of
from lavad.core.lang.states import TASK_OVER, TaskState, TermReason

ENDS_TASKS = 2
"""The first protocol by which agents are told to end a task."""


def _find(cluster: Cluster, report: TaskReport) -> tuple[Job, Attempt, TaskRun] | None:
    found = find_part(cluster, report)
    if found is None or not 0 <= report.rank < len(found[1].tasks):
        return None
    job, run, part = found
    task = run.tasks[report.rank]
    return (job, run, task) if run.parts[task.place] is part and task.number == report.number else None


def task_started(cluster: Cluster, report: TaskStartReport, now: float) -> list[ev.Event]:
    """A task that was started late, or restarted, runs."""
    found = _find(cluster, report)
    if found is None or found[2].state is not TaskState.WAITING:
        return []
    job, run, task = found
    name = task_name(cluster.specs.rows[job.spec], task)
    return [
        ev.TaskStarted(at=now, key=job.key, attempt=run.number, rank=report.rank, number=report.number, pid=report.pid, name=name)
    ]


def task_ended(cluster: Cluster, report: TaskEndReport, now: float) -> list[ev.Event]:
    """A task ended: it is restarted, or decides the verdict of the job, or neither."""
    found = _find(cluster, report)
    if found is None or found[2].state in TASK_OVER:
        return []
    job, run, task = found
    spec = cluster.specs.rows[job.spec]
    key, rank, status, limit = job.key, report.rank, report.status, report.limit
    event = ev.TaskEnded(
        at=now,
        key=key,
        attempt=run.number,
        rank=rank,
        number=report.number,
        status=status,
        limit=limit,
        name=task_name(spec, task),
    )
    if run.verdict is not None or run.refused:
        return [event] if run.leave else []  # it was ended with the job
    run = ended(run, event)
    if run.is_ending:
        over = all(task.state in TASK_OVER or task.state is TaskState.WAITING for task in run.tasks)
        end = End(status=status or int(signal.SIGTERM), at=now, limit=limit)
        return [event, ev.JobJudged(at=now, key=key, attempt=run.number, end=end)] if over else [event]
    if task.recalled:
        return [event, *_returned(spec, run, key, rank, now)]
    return [event, *_after(cluster, job, run, rank, limit, now)]


def postponed(cluster: Cluster, now: float) -> Decided:
    """What was to follow from ends of tasks after some time, and is due now."""
    specs = cluster.specs.rows
    delayed = {number for number in cluster.timed if specs[number].has_delays}
    events: list[ev.Event] = []
    for key in cluster.started if delayed else ():  # others are not looked through: there may be very many
        job = cluster.jobs.rows[key]
        run = job.run if job.spec in delayed else None
        if run is None or run.verdict is not None or run.refused or run.is_ending:
            continue
        due = [(task.due, rank) for rank, task in enumerate(run.tasks) if 0.0 < task.due <= now]
        if due:  # one at a time, as others may start again with it
            rank = min(due)[1]
            events.append(ev.ActionDue(at=now, key=key, attempt=run.number, rank=rank))
            limit, run = run.tasks[rank].limit, with_task(run, rank, due=0.0)
            events += _after(cluster, job, run, rank, limit, now, waited=True)
    return Decided(events=events)


def _after(
    cluster: Cluster, job: Job, run: Attempt, rank: int, limit: TermReason, now: float, waited: bool = False
) -> list[ev.Event]:
    """What follows from the end of a task, which ``run`` has."""
    spec, key, number = cluster.specs.rows[job.spec], job.key, run.number
    match on_end(spec, run, rank, limit, restarts_so_far(cluster, job, spec), now, waited):
        case Retry(delay=delay, why=why):
            start = run.tasks[rank].number + 1
            return [ev.TaskRetried(at=now, key=key, attempt=number, rank=rank, number=start, delay=delay, why=why)]
        case Later(action=action, delay=delay, why=why):
            return [
                ev.ActionPostponed(at=now, key=key, attempt=number, rank=rank, delay=delay, action=action, limit=limit, why=why)
            ]
        case Recall(ranks=ranks, delay=delay, why=why, counts=counts) if _can_recall(cluster, run):
            recall = ev.TasksRecalled(at=now, key=key, attempt=number, ranks=ranks, delay=delay, why=why, counts=counts)
            return [recall, *_returned(spec, recalled(run, recall), key, rank, now)]
        case Recall(why=why, counts=counts):  # a host of the release before: all start again
            end = End(status=run.tasks[rank].status or 1 << 8, at=now, first_rank=rank, first_reason=why, limit=limit)
            return [ev.JobJudged(at=now, key=key, attempt=number, end=end, again=why, uncounted=not counts)]
        case Judgement(end=verdict, again=again, uncounted=free, array=whole):
            why = f"element {index_of(key)} failed: {verdict.first_reason}"
            others = end_others(cluster, job_of(key), {key}, why, now) if whole and index_of(key) else []
            return [ev.JobJudged(at=now, key=key, attempt=number, end=verdict, again=again, uncounted=free), *others]
    return []


def _returned(spec: Spec, run: Attempt, key: int, rank: int, now: float) -> list[ev.Event]:
    """Tasks that were recalled start again once all of them are over."""
    ranks = may_return(spec, run, rank)
    return [ev.TasksReturned(at=now, key=key, attempt=run.number, ranks=ranks)] if ranks else []


def _can_recall(cluster: Cluster, run: Attempt) -> bool:
    """Whether all hosts of an attempt can be told to end single tasks."""
    rows = cluster.hosts.rows
    return all(part.host not in rows or rows[part.host].facts.starter >= ENDS_TASKS for part in run.parts)
