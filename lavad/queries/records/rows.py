"""A job, or an array, as a row of records."""

from __future__ import annotations

from collections import Counter

from lavad.core.job.chunk import slots_in
from lavad.core.job.job import Array, Job
from lavad.core.job.run_time import start_of
from lavad.core.job.spec import Spec
from lavad.core.lang.ids import index_of, show
from lavad.core.lang.states import FINAL, STARTED, WAITING, JobState, TermReason
from lavad.queries.facts import jobfacts, reasons
from lavad.queries.frame.view import View
from proto import records

_FIRST = 8
_COLUMN = {
    JobState.PEND: "pend",
    JobState.WAIT: "pend",
    JobState.PSUSP: "psusp",
    JobState.RUN: "run",
    JobState.SSUSP: "ssusp",
    JobState.USUSP: "ususp",
    JobState.UNKWN: "unknown",
    JobState.ZOMBI: "unknown",
    JobState.DONE: "done",
    JobState.EXIT: "exit",
}
_ORDER = ("run", "ssusp", "ususp", "unknown", "pend", "psusp", "exit", "done")
_SHOWN = {"run": "RUN", "ssusp": "SSUSP", "ususp": "USUSP", "unknown": "UNKWN", "pend": "PEND", "psusp": "PSUSP"}


def counts_of(states: Counter[JobState]) -> records.Counts:
    """Jobs by state."""
    sums: Counter[str] = Counter()
    for state, count in states.items():
        sums[_COLUMN[state]] += count
    return records.Counts(**sums)


def elements_of(view: View, array: Array) -> records.Counts:
    """The elements of a live array by state."""
    rows = view.cluster.jobs.rows
    states = Counter(rows[key].state for key in view.cluster.elements.get(array.job, ()))
    states[JobState.PEND] += len(array.pending)
    states[JobState.PSUSP] += len(array.held)
    states[JobState.DONE] += array.done
    states[JobState.EXIT] += array.exited
    return counts_of(states)


def state_of(counts: records.Counts) -> str:
    """What stands for an array: that something of it runs, else that it waits, else how it ended."""
    for name in _ORDER:
        if getattr(counts, name):
            return _SHOWN.get(name, name.upper())
    return "DONE"


def gpus_of(job: Job | Array, spec: Spec) -> int:
    """GPUs that a job holds, or asks for on each host while it waits."""
    held = sum(len(part.gpus) for part in jobfacts.parts_of(job)) if isinstance(job, Job) else 0
    return held or (int(spec.gpu.num or 0) if spec.gpu is not None else 0)


def why(view: View, job: Job) -> str:
    """Why it waits, is suspended or ended."""
    if job.state in WAITING:
        return reasons.key_text(view, job)
    if job.outcome is not None:
        named = job.outcome.reason is not TermReason.NONE and job.state is not JobState.DONE
        return jobfacts.term_text(job.outcome.reason) if named else job.outcome.why
    if job.state in (JobState.SSUSP, JobState.USUSP):
        return job.remarks[0] or (f"suspended by {job.stopper}" if job.stopper else "suspended by the system")
    return f"its host {job.run.parts[0].host} is silent" if job.state is JobState.UNKWN and job.run is not None else ""


def row(view: View, job: Job) -> records.JobRow:
    """A job or an element."""
    spec = view.spec(job)
    parts = jobfacts.parts_of(job)
    started = start_of(job)
    return records.JobRow(
        id=show(job.key),
        kind="element" if index_of(job.key) else "job",
        name=job.name,
        user=spec.user,
        queue=spec.queue,
        project=spec.project,
        state=job.state.name,
        slots=jobfacts.slots_of(job, spec),
        gpus=gpus_of(job, spec),
        hosts=[records.OnHost(host=part.host, slots=slots_in(part)) for part in parts[:_FIRST]],
        host_count=len(parts),
        submitted=job.submitted,
        started=started if started and job.state in STARTED | FINAL else None,
        ended=jobfacts.end_of(job) or None,
        run_limit=jobfacts.run_limit(job, spec, view),
        exit_code=jobfacts.exit_code(job),
        why=why(view, job),
        elements=None,
    )


def array_row(view: View, array: Array) -> records.JobRow:
    """An array as one row."""
    spec = view.spec(array)
    found = elements_of(view, array)
    first = next(iter(array.pending), 0)
    reason = ""
    if first:
        job = Job(key=first << 32 | array.job, spec=array.spec, name=array.name, submitted=array.submitted)
        reason = reasons.key_text(view, job)
    return records.JobRow(
        id=str(array.job),
        kind="array",
        name=array.spec_text or array.name,
        user=spec.user,
        queue=spec.queue,
        project=spec.project,
        state=state_of(found),
        slots=spec.slots,
        gpus=gpus_of(array, spec),
        hosts=[],
        host_count=0,
        submitted=array.submitted,
        started=None,
        ended=None,
        run_limit=spec.limits.run,
        exit_code=None,
        why=reason,
        elements=found,
    )
