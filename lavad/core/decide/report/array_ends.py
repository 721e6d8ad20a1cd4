"""When an array is over before all of its elements are: too many have failed, enough have succeeded, or its time is over, as that
of a single job (its policy)."""

from __future__ import annotations

from collections.abc import Container

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.events.ending import was_let_be
from lavad.core.job.job import Attempt, Job, PendingSignal
from lavad.core.job.spec import Policy, Spec
from lavad.core.lang.ids import index_of, job_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import WAITING, JobState, SignalKind, TermReason

_REASON = TermReason.TERM_OTHER


def find_kill(run: Attempt) -> PendingSignal | None:
    """The request that ends the attempt for good."""
    return next((pending for pending in run.pending_signals if pending.kind is SignalKind.KILL), None)


def restarts_so_far(cluster: Cluster, job: Job, spec: Spec) -> int:
    """Those that count for ``backoff``: of the job, or where the policy says so, of its whole array."""
    array = cluster.arrays.rows.get(job_of(job.key)) if spec.policy.array_backoff and index_of(job.key) else None
    return job.retries if array is None else array.retries


def end_others(
    cluster: Cluster,
    job: int,
    gone: Container[int],
    why: str,
    now: float,
    state: JobState = JobState.EXIT,
    again: Container[int] = (),
    limit: TermReason = _REASON,
) -> list[ev.Event]:
    """The ends of all elements of an array but those with the keys ``gone``; none where job number ``job`` is no array.

    ``why``: one line for the user. ``state``: what they become. ``again``: keys of those whose attempt ends with it, and which
    would wait for another one. ``limit``: what ended them.
    """
    array = cluster.arrays.rows.get(job)
    if array is None:
        return []
    reason = TermReason.NONE if state is JobState.DONE else limit
    events: list[ev.Event] = []
    if untouched := array.pending.union(array.held):
        events.append(ev.ElementsKilled(at=now, key=job, elements=untouched, reason=reason, state=state, why=why))
    for key in cluster.elements.get(job, ()):
        other = cluster.jobs.rows[key]
        if key in gone:
            continue
        if other.state in WAITING or key in again:
            events.append(ev.JobFinished(at=now, key=key, state=state, reason=reason, why=why))
        elif other.run is not None and find_kill(other.run) is None:
            done = state is JobState.DONE
            pending = PendingSignal(kind=SignalKind.KILL, at=now, reason=limit, done=done, said=why)
            events.append(ev.SignalRequested(at=now, key=key, pending=pending))
    return events


def overdue(cluster: Cluster, now: float) -> Decided:
    """The ends of jobs and arrays whose time is over (time_limit). What waits to start again is ended once it does."""
    limits = {number: seconds for number in cluster.timed if (seconds := cluster.specs.rows[number].policy.time_limit)}
    events: list[ev.Event] = []
    reason = TermReason.TERM_RUNLIMIT
    for array in list(cluster.arrays.rows.values()) if limits else ():
        seconds = limits.get(array.spec, 0)
        if seconds and 0.0 < array.began <= now - seconds:
            why = f"all of the array had {seconds} seconds from the start of its first element"
            events += end_others(cluster, array.job, (), why, now, limit=reason)
    for key in cluster.started if limits else ():
        job = cluster.jobs.rows[key]
        seconds = 0 if index_of(key) else limits.get(job.spec, 0)
        if seconds and 0.0 < job.began <= now - seconds and job.run is not None and find_kill(job.run) is None:
            why = f"the job had {seconds} seconds from its first start"
            pending = PendingSignal(kind=SignalKind.KILL, at=now, reason=reason, said=why)
            events.append(ev.SignalRequested(at=now, key=key, pending=pending))
    return Decided(events=events)


def with_array_ends(cluster: Cluster, events: list[ev.Event], now: float) -> list[ev.Event]:
    """Events, and what follows for arrays from the ends of elements among them that nobody asked for."""
    policies: dict[int, Policy | None] = {}
    ended: dict[int, list[ev.JobFinished]] = {}
    for event in events:
        if not isinstance(event, ev.JobFinished) or not index_of(event.key):
            continue
        number = job_of(event.key)
        if number not in policies:
            policies[number] = _find_policy(cluster, number)
        if policies[number] is not None and (job := cluster.jobs.rows.get(event.key)) is not None and was_let_be(job):
            ended.setdefault(number, []).append(event)
    if not ended:
        return events
    again = {event.key for event in events if isinstance(event, ev.JobRequeued)}
    return events + [one for number, ends in ended.items() for one in _after(cluster, number, ends, again, now)]


def _find_policy(cluster: Cluster, number: int) -> Policy | None:
    """The policy of an array that may be over before all of its elements are; None: its policy says nothing of that."""
    array = cluster.arrays.rows.get(number)
    policy = cluster.specs.rows[array.spec].policy if array is not None else Policy()
    return policy if policy.array_success or policy.array_failures >= 0 else None


def _after(cluster: Cluster, number: int, ends: list[ev.JobFinished], again: Container[int], now: float) -> list[ev.Event]:
    """What follows from these ends of elements of one array, of which it does not know yet."""
    array = cluster.arrays.rows[number]
    policy = cluster.specs.rows[array.spec].policy
    well = [index_of(event.key) for event in ends if event.state is JobState.DONE]
    gone = {event.key for event in ends}
    failed = len(array.failed) + len(ends) - len(well)
    if 0 <= policy.array_failures < failed and len(well) < len(ends):
        why = f"{failed} elements of the array failed, and {policy.array_failures} may"
        return end_others(cluster, number, gone, why, now, again=again)
    if well and _is_enough(policy, array.well.union(Ranges.from_indices(well))):
        why = "enough elements of the array have succeeded"
        return end_others(cluster, number, gone, why, now, JobState.DONE, again)
    return []


def _is_enough(policy: Policy, well: Ranges) -> bool:
    return any(len(well.intersect(one.indices) if one.indices else well) >= one.count for one in policy.array_success)
