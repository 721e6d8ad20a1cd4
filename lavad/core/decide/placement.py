"""What becomes of a plan: each placement is checked again, with the scheduler's own ledger and limits, on what is now.

Rule: a job starts with all its parts or not at all; what is stale is dropped without a word: the next plan says more.
"""

from __future__ import annotations

from lavad.core.cluster import Cluster
from lavad.core.events import Event, JobDispatched
from lavad.core.ids import index_of, job_of
from lavad.core.job import Job, Placed
from lavad.core.ledger import Ledger
from lavad.core.limit_book import LimitBook
from lavad.core.limits import Limits
from lavad.core.pend_reason import PendReason
from lavad.core.plan import Placement, Plan
from lavad.core.spec import Spec
from lavad.core.states import JobState


def accept_plan(cluster: Cluster, plan: Plan, now: float, seed: str, book: LimitBook | None = None) -> list[Event]:
    """``JobDispatched`` for each placement that still holds.

    ``seed`` (random, new for each call) makes the attempts' uids; ``book`` is the limits of the configuration in force,
    for a caller that keeps them.
    """
    ledger = Ledger(cluster)
    limits = Limits(book or LimitBook(cluster.conf), ledger)
    events: list[Event] = []
    placed: set[int] = set()
    for placement in plan.placements:
        spec = None if placement.key in placed else _find_spec(cluster, placement)
        if spec is None or why_not_placed(ledger, limits, placement, spec, now):
            continue
        ledger.take(placement.key, spec, placement.parts)
        placed.add(placement.key)
        job = cluster.jobs.rows.get(placement.key)
        attempt = 1 if job is None else job.attempt + 1
        uid = f"{seed}{len(events):x}"
        events.append(JobDispatched(at=now, key=placement.key, attempt=attempt, uid=uid, parts=placement.parts))
    return events


def _find_spec(cluster: Cluster, placement: Placement) -> Spec | None:
    """The spec of a job that still waits, if it is still the one that the plan was made for."""
    job = cluster.jobs.rows.get(placement.key)
    number = -1
    if job is not None:
        number = job.spec if job.state is JobState.PEND else -1
    else:
        array = cluster.arrays.rows.get(job_of(placement.key))
        if array is not None and index_of(placement.key) in array.pending:
            number = array.spec
    return cluster.specs.rows.get(number) if placement.spec in (0, number) else None


def why_not_placed(ledger: Ledger, limits: Limits, placement: Placement, spec: Spec, now: float) -> int:
    """Why a placement does not hold on the cluster as the ledger sees it, 0: it holds."""
    cluster = ledger.cluster
    if spec.queue not in cluster.queue_conf:
        return PendReason.QUE_GONE
    if not cluster.queue_state(spec.queue).active:
        return PendReason.QUE_INACT
    if spec.begin > now:
        return PendReason.JOB_START_TIME
    job = cluster.jobs.rows.get(placement.key)
    if job is not None and _why_not_job(job, placement.parts, now):
        return PendReason.JOB_DELAY_SCHED
    if not spec.slots <= sum(part.slots for part in placement.parts) <= max(spec.slots, spec.max_slots):
        return PendReason.HOST_LESS_SLOTS
    reason = next((why for part in placement.parts if (why := ledger.why_not_part(spec, part))), 0)
    return reason or why_not_array(ledger, placement.key) or limits.why_not(spec, placement.parts)


def _why_not_job(job: Job, parts: tuple[Placed, ...], now: float) -> bool:
    # after a failed start it may go back to the same host where no other can have it
    return job.not_before > now or (not job.failures and any(part.host in job.avoid for part in parts))


def why_not_array(ledger: Ledger, key: int) -> int:
    """Whether the array of this element has as many running as ``%n`` allows."""
    array = ledger.cluster.arrays.rows.get(job_of(key)) if index_of(key) else None
    if array is None or not array.limit or ledger.array_running(array.job) < array.limit:
        return 0
    return PendReason.JOB_ARRAY_LIMIT
