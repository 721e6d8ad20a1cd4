"""bjobs -aps: waiting jobs in the order of their absolute priority, those of other queues after them."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.job.job import Job
from lavad.core.lang.states import WAITING
from lavad.queries.frame import times
from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.jobs import bjobs_rows
from lavad.sched.line.queue_iterator import absolute_priority
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.scheduler_cache import SchedulerCache

HEADER = "JOBID   USER    STAT  QUEUE      FROM_HOST   JOB_NAME   SUBMIT_TIME    APS"


def show(request: Request, form: bjobs_rows.Form, jobs: Iterator[Job]) -> Iterator[Shown]:
    """One line for each waiting job."""
    state = CycleState(request.cluster, request.view.soft, request.now, times.week_second(request.now), SchedulerCache())
    rows: list[tuple[tuple[bool, float, float, int], Job, str]] = []
    for job in jobs:
        if job.state in WAITING:
            value = absolute_priority(state, job.spec, job.submitted)
            shown = "-" if value is None else f"{value:.2f}"
            place = (value is None, -(value or 0.0), job.submitted, job.key)
            rows.append((place, job, shown))
    if form.header:
        yield out(HEADER + "\n")
    for _, job, shown in sorted(rows, key=lambda row: row[0]):
        spec = request.view.spec(job)
        yield out(
            f"{job.key & 0xFFFFFFFF:<7} {spec.user:<7.7} {job.state.name:<5.5} {spec.queue:<10.10} {spec.from_host:<11.11} "
            f"{bjobs_rows.tail(job.name):<10} {times.short(job.submitted):<14} {shown}\n"
        )
