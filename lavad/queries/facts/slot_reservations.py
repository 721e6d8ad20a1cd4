"""Slots reserved for waiting jobs, and when these start at the latest: the RSV columns, and lines of bjobs -l and bhist."""

from __future__ import annotations

from collections.abc import Sequence

from lavad.core.job.job import Job
from lavad.core.lang.ids import job_of
from lavad.core.plan.volatile import ReservedStart
from lavad.queries.frame.view import View


def find(view: View, job: Job) -> ReservedStart | None:
    """The reserved start of a waiting job; of an array, of its first element that has one."""
    reservations = view.soft.promises
    found = reservations.get(job.key)
    if found is None and job.key in view.cluster.arrays.rows:
        found = next((other for key, other in reservations.items() if job_of(key) == job.key), None)
    return found


def held_sentence(view: View, job: Job) -> str:
    """The sentence about the slots that are reserved for a job; "" if none are."""
    reserved = find(view, job)
    held = [*(reserved.held if reserved is not None else ()), *((part.host, part.slots) for part in job.promised)]
    if not held:
        return ""
    return sentence(held)


def sentence(held: Sequence[tuple[str, int]]) -> str:
    """``Reserved <3> job slots on host(s) <2*ol1> <1*ol2>;`` of hosts and slots."""
    hosts = " ".join(f"<{slots}*{host}>" for host, slots in held)
    total = sum(slots for _, slots in held)
    return f"Reserved <{total}> job slot{'s' if total > 1 else ''} on host(s) {hosts};"
