"""The cluster now: jobs by state, hosts with what is used of them, why jobs wait."""

from __future__ import annotations

from collections import Counter

from lavad.core.job.job import Job
from lavad.core.lang.states import HostState, JobState
from lavad.core.site.pend_reason import PendReason
from lavad.queries.facts import hostfacts, reasons
from lavad.queries.frame.request import Request
from lavad.queries.frame.view import View
from lavad.queries.records import hosts, queues, rows
from proto.records import Counts
from proto.site_records import Overview, Reason

MOST_HOSTS = 2000
MOST_REASONS = 10


def read(request: Request) -> Overview:
    view = request.view
    names = hostfacts.all_hosts(view)
    found = [hosts.row(view, name, request.now) for name in names]
    up = [row for row in found if hostfacts.host_of(view, row.name).state is HostState.OK]
    why: Counter[str] = Counter()
    counts = _counts(view, why)
    return Overview(
        cluster=view.name,
        version=view.cluster.version,
        now=request.now,
        counts=counts,
        slots=sum(max(row.slots, 0) for row in up),
        used=sum(row.used for row in up),
        mem=float(sum(row.max_mem for row in up)),
        mem_free=sum(row.mem or 0.0 for row in up),
        gpus=sum(row.gpus for row in up),
        gpus_used=sum(row.gpus_used for row in up),
        hosts=found[:MOST_HOSTS],
        host_count=len(found),
        hosts_by_status=dict(Counter(row.status for row in found)),
        reasons=[Reason(text=text, jobs=jobs) for text, jobs in why.most_common(MOST_REASONS)],
        queues=queues.read(request).queues,
    )


def _counts(view: View, why: Counter[str]) -> Counts:
    """Jobs and elements by state. Classes of waiting jobs are counted as one; only jobs with a reason of their own one by one."""
    cluster = view.cluster
    jobs, arrays = cluster.jobs.rows, cluster.arrays.rows
    states = Counter(jobs[key].state for key in cluster.started)
    queued = 0

    def add(state: JobState, reason: str, count: int) -> None:
        states[state] += count
        why[reason] += count

    for number, pending in cluster.pending.items():
        some = [arrays[key] for key in pending if key in arrays] if arrays else []
        queued += len(pending) - len(some)
        size = len(pending) - len(some) + sum(len(array.pending) for array in some)
        add(JobState.PEND, reasons.key_text(view, Job(key=0, spec=number, name="", submitted=0.0)), size)
    for key, own in view.soft.why_job.items():
        array, job = arrays.get(key), cluster.find_job(key)
        if array is not None:
            spec, size = array.spec, len(array.pending) if array.may_start else 0
        elif job is not None and job.state is JobState.PEND and not job.blocked:
            spec, size = job.spec, 1
        else:
            continue
        why[reasons.text_of(view, own)] += size
        why[reasons.key_text(view, Job(key=0, spec=spec, name="", submitted=0.0))] -= size
    depends = reasons.text_of(view, PendReason.JOB_DEPEND)
    if len(jobs) > len(cluster.started) + queued:
        blocked = sum(job.state is JobState.PEND and bool(job.blocked) for job in jobs.values())
        add(JobState.PEND, depends, blocked)
        stopped = Counter(reasons.held(view, job) for job in jobs.values() if job.state is JobState.PSUSP)
        for reason, size in stopped.items():
            add(JobState.PSUSP, reasons.text_of(view, reason), size)
    for array in arrays.values():
        if not array.may_start:
            add(JobState.PEND, depends, len(array.pending))
        if array.held:
            add(JobState.PSUSP, reasons.text_of(view, reasons.held(view, array)), len(array.held))
    for text in [text for text, count in why.items() if count <= 0]:
        del why[text]
    return rows.counts_of(states)
