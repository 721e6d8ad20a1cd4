"""When an array is over before all of its elements are: too many have failed, or enough have succeeded (its policy)."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Array, Attempt, Job, PendingSignal
from lavad.core.job.spec import Policy, Spec
from lavad.core.lang.ids import index_of, job_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import WAITING, JobState, SignalKind, TermReason

_REASON = TermReason.TERM_OTHER


def find_kill(run: Attempt) -> PendingSignal | None:
    """The request that ends the attempt for good."""
    return next((pending for pending in run.pending_signals if pending.kind is SignalKind.KILL), None)


def _array_of(cluster: Cluster, job: Job) -> Array | None:
    return cluster.arrays.rows.get(job_of(job.key)) if index_of(job.key) else None


def restarts_so_far(cluster: Cluster, job: Job, spec: Spec) -> int:
    """Those that count for ``backoff``: of the job, or where the policy says so, of its whole array."""
    array = _array_of(cluster, job) if spec.policy.array_backoff else None
    return job.retries if array is None else array.retries


def end_others(cluster: Cluster, job: Job, why: str, now: float, state: JobState = JobState.EXIT) -> list[ev.Event]:
    """The ends of all other elements of a job's array. ``why``: one line for the user. ``state``: what they become."""
    array = _array_of(cluster, job)
    if array is None:
        return []
    reason = TermReason.NONE if state is JobState.DONE else _REASON
    events: list[ev.Event] = []
    if untouched := array.pending.union(array.held):
        events.append(ev.ElementsKilled(at=now, key=array.job, elements=untouched, reason=reason, state=state, why=why))
    for key in cluster.elements.get(array.job, ()):
        other = cluster.jobs.rows[key]
        if key == job.key:
            continue
        if other.state in WAITING:
            events.append(ev.JobFinished(at=now, key=key, state=state, reason=reason, why=why))
        elif other.run is not None and find_kill(other.run) is None:
            done = state is JobState.DONE
            pending = PendingSignal(kind=SignalKind.KILL, at=now, reason=_REASON, done=done, said=why)
            events.append(ev.SignalRequested(at=now, key=key, pending=pending))
    return events


def after_element(cluster: Cluster, job: Job, spec: Spec, finished: ev.JobFinished, now: float) -> list[ev.Event]:
    """What follows for its array from the end of an element that nobody asked for."""
    policy = spec.policy
    if not policy.array_success and policy.array_failures < 0:
        return []
    array = _array_of(cluster, job)
    if array is None or job.run is None or find_kill(job.run) is not None:
        return []
    if finished.state is not JobState.DONE:
        failed = array.exited + 1
        if not 0 <= policy.array_failures < failed:
            return []
        return end_others(cluster, job, f"{failed} elements of the array failed, and {policy.array_failures} may", now)
    if not _is_enough(policy, array.well.union(Ranges.span(index_of(job.key), index_of(job.key)))):
        return []
    return end_others(cluster, job, "enough elements of the array have succeeded", now, JobState.DONE)


def _is_enough(policy: Policy, well: Ranges) -> bool:
    return any(len(well.intersect(one.indices) if one.indices else well) >= one.count for one in policy.array_success)
