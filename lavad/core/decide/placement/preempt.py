"""Preemption and resumption: the checks shared by the scheduler and ``accept_plan``, and the events.

Rule: a suspended victim gives up its slots at once, but nothing else. A victim that is requeued, migrated or killed keeps all its
resources until it is gone; they are reserved for the beneficiary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import Event, JobResumed, JobShrank, JobSuspended, SignalRequested
from lavad.core.job.job import Attempt, Job, Part, PendingSignal, Placed
from lavad.core.job.resize import slots_of, staying
from lavad.core.job.spec import Spec
from lavad.core.lang.ids import show
from lavad.core.lang.states import OVER, HostState, JobState, PreemptionAction, SignalKind, TermReason
from lavad.core.plan.plan import Placement, Preemption
from lavad.core.rules.ledger import Ledger, given_up_for
from lavad.core.rules.limits import Limits
from lavad.core.rules.reserved import Reserved
from lavad.core.site.pend_reason import PendReason


def running(cluster: Cluster, key: int, uid: str) -> Attempt | None:
    """The attempt, if it still runs and was not preempted."""
    job = cluster.jobs.rows.get(key)
    run = job.run if job is not None and job.state is JobState.RUN and not job.preempted_for else None
    return run if run is not None and run.uid == uid and run.verdict is None else None


def may_preempt(cluster: Cluster, unit: Sequence[Preemption]) -> bool:
    runs = [running(cluster, one.key, one.uid) for one in unit]
    return not any(run is None or is_giving_up(run) for run in runs) and _may_shrink(cluster, unit)


def is_giving_up(run: Attempt) -> bool:
    """Whether hosts are leaving an attempt for another job, which has been promised what it has there."""
    return any(part.preempted_for for part in run.parts)


def _may_shrink(cluster: Cluster, unit: Sequence[Preemption]) -> bool:
    """Whether shrinking victims still have the slots and keep their minimum."""
    taken: Counter[int] = Counter()
    for one in unit:
        job = cluster.jobs.rows[one.key]
        if one.how is not PreemptionAction.SHRINK or job.run is None:
            continue
        known = {part.host: part.slots for part in staying(job.run)}
        if any(placed.slots > known.get(placed.host, 0) for placed in one.parts):
            return False
        taken[one.key] += sum(placed.slots for placed in one.parts)
        if slots_of(job.run) - taken[one.key] < cluster.specs.rows[job.spec].slots:
            return False
    return True


def given(cluster: Cluster, one: Preemption) -> Sequence[Part | Placed]:
    """The parts that a victim gives up."""
    return one.parts if one.how is PreemptionAction.SHRINK else parts_of(cluster, one.key)


def leaving(cluster: Cluster, one: Preemption) -> list[Placed]:
    """The hosts that a shrinking victim gives up completely; they remain its own until nothing of it is left there."""
    run = cluster.jobs.rows[one.key].run
    known = {part.host: part.slots for part in run.parts} if run is not None else {}
    return [placed for placed in one.parts if placed.slots >= known.get(placed.host, 0)]


def shift(limits: Limits, unit: Sequence[Preemption], sign: int) -> None:
    """Free the victims' resources in the ledger and for its limits (-1), or take them back (1)."""
    ledger = limits.ledger
    for one in unit:
        parts, spec = given(ledger.cluster, one), ledger.cluster.spec_of(one.key)
        if one.how is PreemptionAction.SHRINK:
            whole = leaving(ledger.cluster, one)
            ledger.shift(whole, spec, sign)
            ledger.shift_some([part for part in one.parts if part not in whole], spec, sign)
            limits.shift(spec, parts, sign, jobs=0)
        elif one.how is PreemptionAction.SUSPEND:
            ledger.shift_slots(parts, sign)
            limits.shift_slots(spec, parts, sign)
        else:
            ledger.shift(parts, spec, sign)
            limits.shift(spec, parts, sign)


def hold(limits: Limits, unit: Sequence[Preemption], placement: Placement, spec: Spec) -> None:
    """Reserve the placement in the ledger, less what its victims still hold, and count it for limits.

    Slots of suspended victims are free at once.
    """
    ledger = limits.ledger
    shift(limits, [one for one in unit if one.how is PreemptionAction.SUSPEND], -1)
    given_up: list[Part | Placed] = []
    for one in unit:
        if one.how is PreemptionAction.SHRINK:
            whole = leaving(ledger.cluster, one)
            ledger.shift_some([part for part in one.parts if part not in whole], ledger.cluster.spec_of(one.key), -1)
            given_up += whole
        elif one.how is not PreemptionAction.SUSPEND:
            given_up += parts_of(ledger.cluster, one.key)
    for part in placement.parts:
        ledger.hold(part, spec, [other for other in given_up if other.host == part.host])
    ledger.count(placement.key, spec, placement.parts)


def parts_of(cluster: Cluster, key: int) -> list[Part]:
    """The parts of a started job that are not over."""
    run = cluster.jobs.rows[key].run
    return [] if run is None else [part for part in run.parts if part.state not in OVER]


def preempted(cluster: Cluster, unit: Sequence[Preemption], now: float) -> list[Event]:
    events: list[Event] = []
    shrinking: dict[int, list[Placed]] = {}
    for one in unit:
        if one.how is PreemptionAction.SHRINK:
            shrinking.setdefault(one.key, []).extend(one.parts)
        elif one.how is PreemptionAction.SUSPEND:
            why = f"Job was preempted by job <{show(one.beneficiary)}>"
            events.append(JobSuspended(at=now, key=one.key, state=JobState.SSUSP, why=why, beneficiary=one.beneficiary))
        else:
            kind = SignalKind(one.how)
            pending = PendingSignal(
                kind=kind,
                at=now,
                by="preemption",
                reason=TermReason.TERM_PREEMPT,
                kill_after=kind is SignalKind.MIGRATE,
                notice=cluster.conf.params.lava_warning_max,
            )
            events.append(SignalRequested(at=now, key=one.key, pending=pending, beneficiary=one.beneficiary))
    beneficiary = unit[0].beneficiary if unit else 0
    for key, parts in shrinking.items():
        job = cluster.jobs.rows[key]
        if job.run is not None:
            events.append(
                JobShrank(
                    at=now,
                    key=key,
                    attempt=job.run.number,
                    number=job.run.resizes + 1,
                    parts=tuple(parts),
                    forced=True,
                    command=cluster.specs.rows[job.spec].resize_command,
                    beneficiary=beneficiary,
                    why=f"Job <{show(beneficiary)}> needs it",
                )
            )
    return events


def resumed(limits: Limits, keys: Sequence[int], used: set[int], now: float) -> list[Event]:
    events: list[Event] = []
    ledger, cluster = limits.ledger, limits.ledger.cluster
    reserved = Reserved(ledger, now) if keys and cluster.reservations.rows else None
    for key in keys:
        job = cluster.jobs.rows.get(key)
        if job is None or job.run is None or key in used or why_not_resumed(limits, job, reserved):
            continue
        if job.preempted_for:
            ledger.shift_slots(parts_of(cluster, key), 1)
            limits.shift_slots(cluster.specs.rows[job.spec], parts_of(cluster, key), 1)
        events.append(JobResumed(at=now, key=key))
    return events


def why_not_resumed(limits: Limits, job: Job, reserved: Reserved | None = None) -> int:
    """Pend reason why a job suspended by the system cannot resume; 0: it can."""
    ledger = limits.ledger
    if job.state is not JobState.SSUSP or job.run is None or job.preempted_for_good:
        return PendReason.USER_STOP
    for part in parts_of(ledger.cluster, job.key):
        host = ledger.cluster.hosts.rows.get(part.host)
        if host is None or host.state is not HostState.OK:
            return PendReason.SBD_UNREACH
        if job.preempted_for and part.slots > ledger.host(part.host).free:
            return PendReason.HOST_JOB_LIMIT
    if not job.preempted_for:
        return 0
    spec, parts = ledger.cluster.specs.rows[job.spec], parts_of(ledger.cluster, job.key)
    reason = limits.why_not_resumed(spec, parts)
    if reason or reserved is None:
        return reason
    return reserved.why_not_resumed(spec, [(part.host, part.slots) for part in parts])


def promised(cluster: Cluster, placement: Placement) -> tuple[Placed, ...]:
    job = cluster.jobs.rows.get(placement.key)
    return job.promised if job is not None else ()


def may_redeem(ledger: Ledger, placement: Placement, spec: Spec) -> bool:
    """Whether a job can start now on its reserved slots."""
    cluster = ledger.cluster
    is_open = spec.queue in cluster.queue_conf and cluster.queue_state(spec.queue).active
    if not is_open or placement.parts != promised(cluster, placement) or holders(cluster, placement.key):
        return False
    return not why_given_up(ledger, placement.key, placement.parts)


def why_given_up(ledger: Ledger, key: int, parts: Iterable[Placed]) -> str:
    """Why a waiting job can no longer start on what is held for it; "": it can, once the jobs in its place are gone."""
    for part in parts:
        if ledger.why_not_host(part.host):
            return "a host of it went away"
        host, going = ledger.host(part.host), given_up_for(ledger.cluster, part.host, key)
        if host.taken - max(0, sum(one.slots for one in going) - part.slots) > host.slots:
            return f"host {part.host} has fewer slots than are in use"
        if set(part.gpus).intersection(host.gpu_book.closed) or not {gpu.uuid for gpu in host.gpus}.issuperset(part.gpus):
            return f"a GPU of host {part.host} is closed or gone"
        for name, amount in part.reserved:
            room = ledger.room(part.host, name)
            back = sum(value for one in going for own, value in one.reserved if own == name)
            if room is not None and room + max(0.0, back - amount) < -1e-6:
                return f"host {part.host} has less {name} than is reserved there"
    return ""


def holders(cluster: Cluster, key: int) -> list[int]:
    """The jobs preempted for good for a pending job that are not gone yet."""
    rows = cluster.jobs.rows
    found = [other for other in cluster.suspended if rows[other].preempted_for_good and rows[other].preempted_for == key]
    runs = ((other, rows[other].run) for other in cluster.use.elastic)
    return found + [other for other, run in runs if run is not None and any(part.preempted_for == key for part in run.parts)]
