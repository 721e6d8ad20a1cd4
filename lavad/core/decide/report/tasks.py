"""Decisions on reports about single tasks of jobs with roles: a restart, or the verdict of the job.

Rule: reports about other starts than the task's current one are dropped; no task is restarted in a job that must end. What
follows from ends meanwhile is decided once it need not end any more: its migration has failed.
"""

from __future__ import annotations

import signal

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.report import parts
from lavad.core.decide.report.array_ends import end_others, find_kill, restarts_so_far
from lavad.core.decide.report.parts import find_part
from lavad.core.events.task import counted, ended, recalled, retried, returned, with_task
from lavad.core.events.task import postponed as with_postponed
from lavad.core.job.job import Attempt, End, Job
from lavad.core.job.reports import GrantedReport, TaskEndReport, TaskReport, TaskStartReport
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
        if any(task.state is TaskState.RUNNING for task in run.tasks):
            return [event]
        end = End(status=status or int(signal.SIGTERM), at=now, limit=limit)
        if find_kill(run) is None and _is_well(cluster, job, run, rank, now):
            end = End(at=now)
        return [event, ev.JobJudged(at=now, key=key, attempt=run.number, end=end)]
    if task.recalled:
        return [event, *_returned(spec, run, key, rank, now)]
    return [event, *_after(cluster, job, run, rank, limit, now)]


def _is_well(cluster: Cluster, job: Job, run: Attempt, rank: int, now: float) -> bool:
    """Whether all tasks have succeeded, this one as the last, and the job with them: before what it was asked to end for."""
    if any(task.state is not TaskState.SUCCEEDED or task.recalled or task.due for task in run.tasks):
        return False
    spec = cluster.specs.rows[job.spec]
    after = on_end(spec, run, rank, TermReason.NONE, restarts_so_far(cluster, job, spec), now)
    return isinstance(after, Judgement) and not after.again and not after.end.status


def granted(cluster: Cluster, report: GrantedReport, now: float) -> list[ev.Event]:
    """What follows once a request was carried out on a host, or was not."""
    events = parts.granted(cluster, report, now)
    return events if report.ok else [*events, *_let_go_on(cluster, events, now)]


def _let_go_on(cluster: Cluster, events: list[ev.Event], now: float) -> list[ev.Event]:
    """What follows from the ends of tasks since a request that was to end the attempt, which has failed and is the last of them.

    One after the other, as others may start again with it.
    """
    handled = next((event for event in events if isinstance(event, ev.SignalHandled)), None)
    job = cluster.jobs.rows[handled.key] if handled is not None else None
    if handled is None or job is None or job.run is None or job.run.verdict is not None:
        return []
    asked = next((one for one in job.run.pending_signals if one.number == handled.number and one.ends), None)
    left = tuple(one for one in job.run.pending_signals if one.number != handled.number)
    if asked is None or any(one.ends for one in left):
        return []
    run, spec, restarts, found = replace(job.run, pending_signals=left), cluster.specs.rows[job.spec], 0, list[ev.Event]()
    ends = sorted((task.at, rank) for rank, task in enumerate(run.tasks) if task.state in TASK_OVER and task.at >= asked.at)
    for _, rank in ends:
        task = run.tasks[rank]
        if task.state not in TASK_OVER or task.due:
            continue
        if task.recalled:
            after = _returned(spec, run, job.key, rank, now)
        else:
            after = _after(cluster, job, run, rank, task.limit, now, restarts=restarts)
        found += after
        if any(isinstance(event, ev.JobJudged) for event in after):
            break
        for event in after:
            if isinstance(event, ev.TaskRetried | ev.TasksRecalled):
                restarts += counted(spec, run, event)
            run = _folded(run, event)
    return found


def _folded(run: Attempt, event: ev.Event) -> Attempt:
    match event:
        case ev.TaskRetried():
            return retried(run, event)
        case ev.TasksRecalled():
            return recalled(run, event)
        case ev.TasksReturned():
            return returned(run, event)
        case ev.ActionPostponed():
            return with_postponed(run, event)
    return run


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
    cluster: Cluster, job: Job, run: Attempt, rank: int, limit: TermReason, now: float, waited: bool = False, restarts: int = 0
) -> list[ev.Event]:
    """What follows from the end of a task, which ``run`` has. ``restarts``: those that ``job`` does not count yet."""
    spec, key, number = cluster.specs.rows[job.spec], job.key, run.number
    match on_end(spec, run, rank, limit, restarts_so_far(cluster, job, spec) + restarts, now, waited):
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
