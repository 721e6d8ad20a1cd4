"""Slots reserved for waiting jobs, and their promised starts: the RSV columns, and lines of bjobs -l."""

from __future__ import annotations

from lavad.core.job.job import Job
from lavad.core.lang.ids import job_of
from lavad.core.plan.volatile import ReservedStart
from lavad.queries.frame.view import View


def held_slots(view: View, *, host: str = "", queue: str = "", user: str = "") -> int:
    """Slots that are held for jobs that do not fit yet, on a host, of a queue or of a user; "": any."""
    total = 0
    for key, promise in view.soft.promises.items():
        if queue or user:
            job = view.cluster.jobs.rows.get(key) or view.cluster.arrays.rows.get(job_of(key))
            spec = view.cluster.specs.rows.get(job.spec) if job is not None else None
            if spec is None or (queue and spec.queue != queue) or (user and spec.user != user):
                continue
        total += sum(slots for name, slots in promise.held if not host or name == host)
    return total


def find(view: View, job: Job) -> ReservedStart | None:
    """The reserved start of a waiting job; of an array, of its first element that has one."""
    promises = view.soft.promises
    found = promises.get(job.key)
    if found is None and job.key in view.cluster.arrays.rows:
        found = next((promise for key, promise in promises.items() if job_of(key) == job.key), None)
    return found


def held_text(view: View, job: Job) -> str:
    """``Reserved <3> job slots on host(s) <2*ol1> <1*ol2>``, "" if nothing is held for it."""
    promise = find(view, job)
    held = [*(promise.held if promise is not None else ()), *((part.host, part.slots) for part in job.promised)]
    if not held:
        return ""
    hosts = " ".join(f"<{slots}*{host}>" for host, slots in held)
    total = sum(slots for _, slots in held)
    return f"Reserved <{total}> job slot{'s' if total > 1 else ''} on host(s) {hosts};"
