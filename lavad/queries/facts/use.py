"""What a job asked for and used, in all, on each host and of each GPU: live from the hosts' reports, or as it ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lavad.core.job.chunk import slots_in
from lavad.core.job.gpu_use import GpuUse
from lavad.core.job.job import Job
from lavad.core.job.run_time import run_time
from lavad.core.job.spec import Spec
from lavad.core.lang.states import JobState
from lavad.queries.facts import jobfacts
from lavad.queries.frame.view import View
from proto.advice import Use


class HostUse(NamedTuple):
    """On one host: CPU time in seconds, memory in KB (``asked`` 0: none is reserved there)."""

    host: str
    slots: int
    cpu: float
    max_mem: int
    asked_mem: float
    gpus: tuple[GpuUse, ...]


def by_host(job: Job, view: View) -> list[HostUse]:
    """In the order of its hosts. A host that has reported nothing yet has used nothing."""
    live = jobfacts.Usage(job, view).parts
    found = []
    for part in jobfacts.parts_of(job):
        asked = sum(amount for name, amount in part.reserved if name == "mem") * 1024
        use, end = live.get(part.host), part.end
        if use is not None:
            found.append(HostUse(part.host, slots_in(part), use.cpu, max(use.max_mem, use.rss), asked, use.gpus))
        elif end is not None:
            found.append(HostUse(part.host, slots_in(part), end.utime + end.stime, end.max_mem, asked, end.gpus))
        else:
            found.append(HostUse(part.host, slots_in(part), 0.0, 0, asked, ()))
    return found


def of_job(job: Job, spec: Spec, view: View, now: float, hosts: Iterable[HostUse] | None = None) -> Use:
    """Its newest attempt, as bacct counts it; CPU time and slots of hosts that have left a resizable job are in it."""
    found = by_host(job, view) if hosts is None else list(hosts)
    ran = run_time(job, now)
    slots = sum(host.slots for host in found)
    asked = sum(host.asked_mem for host in found) or float(spec.limits.mem or 0) * len(found)
    return Use(
        ran=ran,
        slots=slots,
        cpu=sum(host.cpu for host in found) + jobfacts.cpu_left(job),
        max_mem=sum(host.max_mem for host in found),
        asked_mem=asked,
        run_limit=jobfacts.run_limit(job, spec, view) or 0.0,
        succeeded=job.state is JobState.DONE,
        held=jobfacts.slot_seconds(job, now),
        hosts=[(host.host, host.slots, host.cpu) for host in found],
        gpus=[(gpu.known, gpu.idle) for host in found for gpu in host.gpus],
    )
