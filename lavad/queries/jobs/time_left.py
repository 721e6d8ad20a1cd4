"""lava time-left JOB: the seconds until a running job must end, or ``unlimited``.

Rule: the nearest of its run limit (less the time that it has run, without suspensions), its deadline (``-t``), the end of its
queue's run window where TERMINATE_WHEN=WINDOW, and its end by the master once it was warned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import TerminateWhen
from lavad.core.job.job import Job
from lavad.core.job.run_time import counted
from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import key_of
from lavad.core.lang.ids import show as show_key
from lavad.core.lang.job_names import ArrayError, parse_job_id
from lavad.core.lang.states import WAITING
from lavad.core.lang.windows import is_open, local_of, next_change, parse_windows
from lavad.core.rules.run_settings import text_settings, warning_of
from lavad.local_time import local_time
from lavad.queries.facts.jobfacts import run_limit
from lavad.queries.frame.request import Request, Shown, out

if TYPE_CHECKING:
    from lavad.core.job.spec import Spec


def show(request: Request) -> Iterator[Shown]:
    request.options()
    if len(request.words) != 1:
        raise Refused("lava time-left: name one job")
    job = _read(request, request.words[0])
    left = _left(request, job, request.view.spec(job))
    yield out("unlimited\n" if left is None else f"{max(0, int(left))}\n")


def _read(request: Request, word: str) -> Job:
    """A running job. Raises Refused for any other."""
    try:
        number, indices = parse_job_id(word)
    except ArrayError as error:
        raise Refused(str(error)) from error
    key = key_of(number, next(iter(indices), 0) if indices else 0)
    array = request.cluster.arrays.rows.get(number)
    if array is not None and not indices:
        raise Refused(f"Job <{word}> is an array: name one element, as {number}[1]")
    if (request.cluster.find_job(key) is None and array is None) or not request.view.is_live(key):
        raise Refused(f"Job <{word}> is not found or has finished")
    job = request.cluster.get(key)
    if not isinstance(job, Job) or job.state in WAITING or job.run is None:
        raise Refused(f"Job <{show_key(key)}> has not started yet")
    return job


def _left(request: Request, job: Job, spec: Spec) -> float | None:
    run, now = job.run, request.now
    ends: list[float] = []
    limit = run_limit(job, spec, request.view)
    if limit is not None:
        ends.append(limit - counted(job, now))
    if spec.deadline:
        ends.append(spec.deadline - now)
    queue = request.cluster.queue_conf.get(spec.queue)
    if queue is not None and queue.run_window and TerminateWhen.WINDOW in queue.terminate_when and not (run and run.forced):
        windows, local = parse_windows(queue.run_window), local_of(local_time(now))
        closes = next_change(windows, local)
        if closes is not None and is_open(windows, local):
            ends.append(closes)
    pending = [one for one in (run.pending_signals if run is not None else ()) if one.ends and one.notice]
    if pending:
        most = _notice_of(request, job, spec)
        ends += [one.at + min(one.notice, most) - now for one in pending]
    return min(ends, default=None)


def _notice_of(request: Request, job: Job, spec: Spec) -> float:
    """Seconds that a job has at most once it was warned: those of its own warning, without one what the master gives."""
    own = text_settings(request.view.texts([job])[job.key])
    queue = request.cluster.queue_conf.get(spec.queue) or QueueConfig(name=spec.queue)
    app = request.cluster.conf.app_conf.get(spec.app) or ApplicationConfig(name=spec.app)
    return warning_of(own, app, queue)[1] or math.inf
