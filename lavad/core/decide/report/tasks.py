"""What agents say of single tasks of jobs with roles, and what follows: a start again, or the job's verdict.

Rule: a report of another start than the task's current one is dropped; nothing starts again in a job that is to end.
"""

from __future__ import annotations

import signal

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.report.report import find_part
from lavad.core.events.task import ended
from lavad.core.job.job import Attempt, End, Job, TaskRun
from lavad.core.job.roles import Judgement, Retry, on_end, task_name
from lavad.core.lang.states import TASK_OVER, TaskState, TermReason

_ENDING = ("kill", "requeue", "migrate")


def _find(cluster: Cluster, key: int, uid: str, host: str, rank: int, number: int) -> tuple[Job, Attempt, TaskRun] | None:
    found = find_part(cluster, key, uid, host)
    if found is None or not 0 <= rank < len(found[1].tasks):
        return None
    job, run, part = found
    task = run.tasks[rank]
    return (job, run, task) if run.parts[task.place] is part and task.number == number else None


def task_started(cluster: Cluster, key: int, uid: str, host: str, rank: int, number: int, pid: int, now: float) -> list[ev.Event]:
    """A task runs that was started late, or again."""
    found = _find(cluster, key, uid, host, rank, number)
    if found is None or found[2].state is not TaskState.WAITING:
        return []
    name = task_name(cluster.specs.rows[found[0].spec], found[2])
    return [ev.TaskStarted(at=now, key=key, attempt=found[1].number, rank=rank, number=number, pid=pid, name=name)]


def task_ended(
    cluster: Cluster, key: int, uid: str, host: str, rank: int, number: int, status: int, limit: TermReason, now: float
) -> list[ev.Event]:
    """A task ended: it is started again, or decides the job, or is merely over."""
    found = _find(cluster, key, uid, host, rank, number)
    if found is None or found[2].state in TASK_OVER:
        return []
    job, run, task = found
    spec = cluster.specs.rows[job.spec]
    event = ev.TaskEnded(
        at=now,
        key=key,
        attempt=run.number,
        rank=rank,
        number=number,
        status=status,
        limit=limit,
        name=task_name(spec, task),
    )
    if run.verdict is not None or run.refused:
        return [event] if run.leave else []  # it was ended with the job
    run = ended(run, event)
    wishes = [wish for wish in run.wishes if wish.kind in _ENDING]
    if wishes:
        over = all(task.state in TASK_OVER or task.state is TaskState.WAITING for task in run.tasks)
        end = End(status=status or int(signal.SIGTERM), at=now, limit=limit)
        return [event, ev.JobJudged(at=now, key=key, attempt=run.number, end=end)] if over else [event]
    match on_end(spec, run, rank, limit, job.retries, now):
        case Retry(delay=delay, why=why):
            return [
                event,
                ev.TaskRetried(at=now, key=key, attempt=run.number, rank=rank, number=number + 1, delay=delay, why=why),
            ]
        case Judgement(end=verdict, again=again):
            return [event, ev.JobJudged(at=now, key=key, attempt=run.number, end=verdict, again=again)]
    return [event]
