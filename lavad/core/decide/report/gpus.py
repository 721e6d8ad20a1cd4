"""GPUs of which their agent says that something is wrong: no new job gets them, and what becomes of the jobs on them.

Rule: of a GPU that has broken (``GRAVE``) a rerunnable or checkpointable job is taken, and starts again from its old place in its
queue; any other job goes on as long as it can.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Job, PendingSignal
from lavad.core.job.reports import EndedReport, GoneReport, GpuFault
from lavad.core.lang.bounds import MAX_WHY
from lavad.core.lang.states import SUSPENDED, JobState, SignalKind, TermReason
from lavad.core.site.host import BY, HELD_BY_PROCESS, ClosedGpu, Host


class Cause(Enum):
    """Why the master closes a GPU, the gravest last; the value is what agents send."""

    HELD = HELD_BY_PROCESS
    """Processes of a job that is over still hold it: it opens when they are gone."""
    HEALTH = "health"
    """Jobs may go on, but no new one should start: it opens when it has been well for some time."""
    LOST = "lost"
    """No job can go on; a reset may bring it back: it opens when it has been well for some time."""
    FAULT = "fault"
    """No job can rely on it, and that it seems well proves nothing: it stays closed until ``badmin gpuopen``."""

    def is_graver_than(self, other: Cause) -> bool:
        """By their order here."""
        order = list(Cause)
        return order.index(self) > order.index(other)

    def is_news_after(self, other: Cause) -> bool:
        """Whether one for which ``other`` was acted upon has to be acted upon again."""
        return self is not other and (self in GRAVE or self is Cause.HELD or self.is_graver_than(other))


GRAVE = frozenset({Cause.LOST, Cause.FAULT})


def cause_of(name: str) -> Cause:
    """By the name that an agent sent; one that is not known is taken for the mildest that is no process."""
    return next((cause for cause in Cause if cause.value == name), Cause.HEALTH)


def closed_gpu(cluster: Cluster, host: str, gpu: str) -> ClosedGpu | None:
    """What closed it, None: it is open."""
    row = cluster.hosts.rows.get(host)
    return None if row is None else next((one for one in row.closed_gpus if one.uuid == gpu), None)


def accepted(cluster: Cluster, host: str, gpu: str) -> Cause | None:
    """With what an administrator has opened it, and it has not been well since; None: with nothing."""
    row = cluster.hosts.rows.get(host)
    return None if row is None else next((cause_of(one.cause) for one in row.opened_gpus if one.uuid == gpu), None)


def close_gpu(cluster: Cluster, host: str, gpu: str, cause: Cause, why: str, now: float, ended: int = 0) -> list[ev.Event]:
    """Close a GPU for what its agent says; again, where it was closed for something less grave.

    What an administrator has opened it with changes nothing. ``ended``: the key of a job whose end says it.
    """
    known = accepted(cluster, host, gpu)
    if known is not None and not cause.is_news_after(known):
        return []
    events = _close(cluster, host, gpu, cause, why, now)
    return events + (_start_again(cluster, host, gpu, why, now, ended) if cause in GRAVE else [])


def _close(cluster: Cluster, host: str, gpu: str, cause: Cause, why: str, now: float) -> list[ev.Event]:
    found = closed_gpu(cluster, host, gpu)
    graver = found is None or (found.by == BY and cause.is_graver_than(cause_of(found.cause)))
    if not graver or host not in cluster.hosts.rows:
        return []
    return [ev.GpuSwitched(at=now, host=host, gpu=gpu, closed=True, by=BY, comment=why[:MAX_WHY], cause=cause.value)]


def open_gpu(cluster: Cluster, host: str, gpu: str, why: str, now: float) -> list[ev.Event]:
    """Open one that the master has closed for what passes, or that an administrator has opened before that was over."""
    found = closed_gpu(cluster, host, gpu)
    passes = found is not None and found.by == BY and found.cause != Cause.FAULT.value
    if not passes and accepted(cluster, host, gpu) is None:
        return []
    return [ev.GpuSwitched(at=now, host=host, gpu=gpu, closed=False, by=BY, comment=why)]


def _start_again(cluster: Cluster, host: str, gpu: str, why: str, now: float, but: int) -> list[ev.Event]:
    """End the jobs on a broken GPU that may run again: they wait for others at their old places. ``but``: one that has ended."""
    use, rows = cluster.use.hosts.get(host), cluster.jobs.rows
    said = sentence(cluster, host, gpu, why)
    return [
        ev.SignalRequested(at=now, key=key, pending=_again(rows[key], said, now))
        for key in sorted(use.jobs if use is not None else ())
        if key != but and _is_on(cluster.hosts.rows[host], rows[key], gpu) and _may_again(cluster, rows[key])
    ]


def _again(job: Job, said: str, now: float) -> PendingSignal:
    state = JobState.PSUSP if job.state is JobState.USUSP else JobState.PEND
    return PendingSignal(kind=SignalKind.REQUEUE, at=now, reason=TermReason.TERM_OTHER, state=state, said=said)


def _is_on(host: Host, job: Job, gpu: str) -> bool:
    """Whether a job has this GPU, or an instance of it."""
    gpus = {gpu, *(one.uuid for one in host.facts.gpus if one.parent == gpu)}
    return job.run is not None and any(part.host == host.name and gpus.intersection(part.gpus) for part in job.run.parts)


def _may_again(cluster: Cluster, job: Job) -> bool:
    spec, run = cluster.specs.rows[job.spec], job.run
    runs = job.state is JobState.RUN or job.state in SUSPENDED
    return runs and run is not None and not run.is_ending and (spec.rerunnable or spec.checkpoint is not None)


def reported(cluster: Cluster, report: EndedReport | GoneReport, now: float) -> list[ev.Event]:
    """What the end of a part says of its GPUs, in the commit that frees them: so none is given before it is closed."""
    events: list[ev.Event] = []
    for fault in report.gpu_faults:
        events += close_gpu(cluster, report.host, fault.uuid, cause_of(fault.cause), fault.error, now, report.key)
    return events


def befell(cluster: Cluster, host: str, gpus: Iterable[str], faults: Iterable[GpuFault]) -> str:
    """What broke of these GPUs of a job while it ran, "" for nothing. ``faults``: what its end says of them."""
    row = cluster.hosts.rows.get(host)
    if row is None:
        return ""
    parents = {gpu.uuid: gpu.parent for gpu in row.facts.gpus if gpu.parent}
    own = dict.fromkeys(one for gpu in gpus for one in (gpu, parents.get(gpu, "")))
    grave = {cause.value for cause in GRAVE}
    known = {gpu.uuid: gpu.why for gpu in row.closed_gpus if gpu.by == BY and gpu.cause in grave}
    known |= {fault.uuid: fault.error for fault in faults if cause_of(fault.cause) in GRAVE}
    return "; ".join(sentence(cluster, host, gpu, known[gpu]) for gpu in own if gpu in known)


def sentence(cluster: Cluster, host: str, gpu: str, why: str) -> str:
    """What happened to a GPU, for users: ``GPU 2 of host h1 was lost (Xid 79)``."""
    row = cluster.hosts.rows.get(host)
    index = next((str(one.index) for one in row.facts.gpus if one.uuid == gpu), gpu) if row is not None else gpu
    return f"GPU {index} of host {host} {'was ' if why.startswith('lost') else 'failed: '}{why}"
