"""Acceptance of a plan: each placement is re-checked with the scheduler's ledger and limits on the current state.

Rule: a job starts with all its parts and all its preemptions, or not at all. Stale proposals are dropped silently, as the next
plan replaces them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.placement import grow, preempt
from lavad.core.decide.placement import incremental_alloc as piecemeal
from lavad.core.decide.placement.alike import count_alike
from lavad.core.decide.placement.chunks import room_for, starts
from lavad.core.events import Event, JobDispatched, JobSuspended, RunLimitMoved, SignalRequested, SlotsReleased, SlotsReserved
from lavad.core.job.job import Job, PendingSignal, Placed
from lavad.core.job.spec import Spec
from lavad.core.lang.ids import index_of, job_of
from lavad.core.lang.states import JobState, PreemptionAction, SignalKind
from lavad.core.plan.cycle_record import RecordedCycle
from lavad.core.plan.plan import Chunks, Placement, Plan, Preemption, RunLimit, Suspension, split
from lavad.core.rules.avoided_hosts import barred_from, returns_at
from lavad.core.rules.ledger import Ledger
from lavad.core.rules.limits import Limits
from lavad.core.rules.reserved import Reserved
from lavad.core.site.conf import Params
from lavad.core.site.limit_book import LimitBook
from lavad.core.site.pend_reason import PendReason

AT_ONCE = 128
"""Hosts of jobs that one decision starts, about: with their commit 5 ms, in which no user is answered."""


def accept(
    cluster: Cluster, plan: Plan, now: float, seed: str, book: LimitBook, configured: int = 0
) -> tuple[Decided, Plan | None]:
    """As ``accept_part``, with the recorded inputs of the plan; the answer says whether they are kept.

    A plan older than ``configured``, the version of the newest configuration, is dropped.
    """
    if not plan.decides or plan.version < configured:
        return Decided(), None
    events, rest = accept_part(cluster, plan, now, seed, book)
    recorded = plan.recorded
    if not events or recorded is None:
        return Decided(events=events), rest
    cycle = RecordedCycle(
        version=plan.version if recorded.data else cluster.version,
        first=cluster.version + 1,
        count=len(events),
        at=now,
        seed=seed,
        anew=recorded.anew,
        data=recorded.data,
    )
    return Decided(events=events, cycles=[cycle], answer={"kept": True}), rest


def accept_plan(cluster: Cluster, plan: Plan, now: float, seed: str, book: LimitBook | None = None) -> list[Event]:
    """Events for the proposals that still hold.

    ``seed``: random, new for each call, prefix of the attempts' uids; ``book``: cached limits of the current configuration.
    """
    draft = _Acceptance(cluster, now, seed, book or LimitBook(cluster.conf))
    draft.take(plan)
    return draft.events


def accept_part(cluster: Cluster, plan: Plan, now: float, seed: str, book: LimitBook) -> tuple[list[Event], Plan | None]:
    """As ``accept_plan``, of as many first proposals that there are events, and the rest of the plan; None: there is none."""
    draft = _Acceptance(cluster, now, seed, book)
    rest: Plan | None = plan
    while rest is not None and not draft.events:
        first, rest = split(rest, AT_ONCE)
        draft.take(first)
    return draft.events, rest


class _Acceptance:
    """The proposals of a plan that are accepted so far."""

    def __init__(self, cluster: Cluster, now: float, seed: str, book: LimitBook) -> None:
        self.cluster = cluster
        self.now = now
        self.seed = seed
        self.ledger = Ledger(cluster)
        self.limits = Limits(book, self.ledger)
        self.reserved = Reserved(self.ledger, now)
        self.events: list[Event] = []
        self.victims: defaultdict[int, list[Preemption]] = defaultdict(list)
        self.placed: set[int] = set()
        self.used: set[int] = set()
        """Jobs that are preempted."""
        self.run_limits: dict[int, int] = {}

    def take(self, plan: Plan) -> None:
        """All of a plan, or of a part of it that comes after what was taken."""
        self.suspend(plan)
        self.run_limits = plan.run_limits
        self.victims.clear()
        for preemption in plan.preemptions:
            self.victims[preemption.beneficiary].append(preemption)
        at = 0
        while at < len(plan.placements):
            at += self.place(plan.placements, at)
        for chunks in plan.chunks:
            self._start_chunks(chunks)
        for growth in plan.growths:
            if growth.key not in self.used:
                self.events += grow.accept(self.cluster, self.ledger, self.limits, growth, self.now, self.reserved)
        self.events += piecemeal.held(self.limits, plan.holds, lambda hold: _find_spec(self.cluster, hold), self.now)
        self.events += piecemeal.deadlocked(self.cluster, plan.deadlocked, self.now)
        self._move_limits(plan.extensions)
        self.events += preempt.resumed(self.limits, plan.resumes, self.used, self.now)

    def suspend(self, plan: Plan) -> None:
        """Suspensions by the system, and reserved slots that must be released."""
        for one in plan.suspensions:
            run = preempt.running(self.cluster, one.key, one.uid)
            if run is not None and not any(pending.kind is SignalKind.KILL for pending in run.pending_signals):
                self.events.append(self._stop(one))
                self.used.add(one.key)
        for key in plan.releases:
            waiting = self.cluster.jobs.rows.get(key)
            if waiting is not None and waiting.promised:
                why = preempt.why_given_up(self.ledger, key, waiting.promised) or "it may not start now"
                self.events.append(SlotsReleased(at=self.now, key=key, why=why))

    def _stop(self, one: Suspension) -> Event:
        """Suspend the job, or kill it where TERMINATE_WHEN of its queue says so."""
        queue = self.cluster.queue_conf.get(self.cluster.spec_of(one.key).queue)
        word = one.reason.name.removeprefix("TERM_")
        if queue is not None and word in queue.terminate_when:
            notice = self.cluster.conf.params.lava_warning_max
            pending = PendingSignal(kind=SignalKind.KILL, at=self.now, by="", reason=one.reason, notice=notice)
            return SignalRequested(at=self.now, key=one.key, pending=pending)
        return JobSuspended(at=self.now, key=one.key, state=JobState.SSUSP, why=one.why)

    def _move_limits(self, extensions: Sequence[RunLimit]) -> None:
        """EXTENDABLE_RUNLIMIT."""
        for one in extensions:
            run = preempt.running(self.cluster, one.key, one.uid)
            if run is not None and one.key not in self.used:
                self.events.append(RunLimitMoved(at=self.now, key=one.key, attempt=run.number, soft=one.soft, hard=one.hard))

    def place(self, placements: Sequence[Placement], at: int) -> int:
        """Start a job, or reserve the slots of its victims for it, if that is still possible; how many were looked at.

        Elements of its array, or separate jobs of its class, that follow it and hold as it does are started with it.
        """
        placement = placements[at]
        spec = None if placement.key in self.placed else _find_spec(self.cluster, placement)
        if spec is None:
            return 1
        unit = self.victims.get(placement.key, []) if self.victims else []
        for_good = any(one.how is not PreemptionAction.SUSPEND for one in unit) if unit else False
        count = 1
        if not self.victims and _is_followed(placements, at) and not self._why_not(placement, spec):
            count = count_alike(self.ledger, self.limits, placements, at, spec, self.placed)
        if count > 1:
            self.ledger.take_alike(placement.key, spec, placement.parts, count)
        elif not self._take(placement, spec, unit, for_good):
            return 1
        self.placed.add(placement.key)
        if unit:
            self.used.update(one.key for one in unit)
            self.events += preempt.preempted(self.cluster, unit, self.now)
        if for_good:
            self.events.append(SlotsReserved(at=self.now, key=placement.key, parts=placement.parts))
            return 1
        for one in placements[at : at + count]:
            self._start(one)
        return count

    def _start(self, placement: Placement) -> None:
        self._add(
            JobDispatched(
                at=self.now,
                key=placement.key,
                attempt=self._attempt(placement.key),
                uid=self._uid(),
                parts=placement.parts,
                way=placement.way,
                alone=placement.alone,
                run_limit=self.run_limits.get(placement.key, 0),
            )
        )

    def _attempt(self, key: int) -> int:
        job = self.cluster.jobs.rows.get(key)
        return 1 if job is None else job.attempt + 1

    def _uid(self) -> str:
        return f"{self.seed}{len(self.events):x}"

    def _add(self, event: JobDispatched) -> None:
        self.placed.add(event.key)
        self.events.append(event)

    def _start_chunks(self, chunks: Chunks) -> None:
        """Start those of the jobs that still wait, in as many of the slots as are still free."""
        waiting = [one for one in (Placement(key, (chunks.part,), chunks.spec) for key in chunks.keys) if self._waits(one)]
        if not waiting or self.reserved.rows:
            return
        spec = self.cluster.specs.rows[chunks.spec]
        if self._why_not(waiting[0], spec):
            return
        slots, count = room_for(self.ledger, self.limits, chunks, spec, len(waiting))
        chunk_of: dict[int, str] = {}
        for one in starts(chunks, [one.key for one in waiting[:count]], slots) if slots else ():
            uid = self._uid()
            if one.is_first:
                chunk_of[one.key] = uid
            self.ledger.take(one.key, spec, one.parts)
            self._add(
                JobDispatched(
                    at=self.now,
                    key=one.key,
                    attempt=self._attempt(one.key),
                    uid=uid,
                    parts=one.parts,
                    chunk=uid if one.is_first else chunk_of.get(one.behind, ""),
                    waits=bool(one.behind),
                    ahead=one.ahead,
                )
            )

    def _waits(self, placement: Placement) -> bool:
        return placement.key not in self.placed and _find_spec(self.cluster, placement) is not None

    def _why_not(self, placement: Placement, spec: Spec) -> int:
        return why_not_placed(self.ledger, self.limits, placement, spec, self.now, self.reserved)

    def _take(self, placement: Placement, spec: Spec, unit: list[Preemption], for_good: bool) -> bool:
        """Whether the placement holds; it is then counted in the ledger."""
        cluster, ledger = self.cluster, self.ledger
        if preempt.promised(cluster, placement):
            return preempt.may_redeem(ledger, placement, spec)
        if unit and (self.used.intersection(one.key for one in unit) or not preempt.may_preempt(cluster, unit)):
            return False
        preempt.shift(self.limits, unit, -1)
        with self.limits.preempting() if unit else nullcontext():
            why = self._why_not(placement, spec)
        if why or for_good:
            preempt.shift(self.limits, unit, 1)
        if why:
            return False
        if for_good:
            preempt.hold(self.limits, unit, placement, spec)
        else:
            ledger.take(placement.key, spec, placement.parts, placement.alone)
        return True


def _is_followed(placements: Sequence[Placement], at: int) -> bool:
    """Whether another element of the same array comes next, or behind a separate job one of its class."""
    if at + 1 == len(placements):
        return False
    one, other = placements[at], placements[at + 1]
    return job_of(other.key) == job_of(one.key) if index_of(one.key) else other.spec == one.spec > 0 and not index_of(other.key)


def _find_spec(cluster: Cluster, placement: Placement) -> Spec | None:
    """The spec of a job that is still pending, if the plan was made for this spec."""
    job = cluster.jobs.rows.get(placement.key)
    number = -1
    if job is not None:
        number = job.spec if job.state is JobState.PEND and not job.blocked else -1
    else:
        array = cluster.arrays.rows.get(job_of(placement.key))
        if array is not None and array.starts(index_of(placement.key)):
            number = array.spec
    return cluster.specs.rows.get(number) if placement.spec in (0, number) else None


def why_not_placed(ledger: Ledger, limits: Limits, placement: Placement, spec: Spec, now: float, reserved: Reserved) -> int:
    """Pend reason why a placement does not hold in the ledger's state; 0: it holds."""
    cluster = ledger.cluster
    if spec.queue not in cluster.queue_conf:
        return PendReason.QUE_GONE
    if not cluster.queue_state(spec.queue).active:
        return PendReason.QUE_INACT
    if spec.begin > now:
        return PendReason.JOB_START_TIME
    job = cluster.jobs.rows.get(placement.key)
    if job is not None and _why_not_job(job, placement.parts, cluster.conf.params, now):
        return PendReason.JOB_DELAY_SCHED
    if not spec.slots <= sum(part.slots for part in placement.parts) <= max(spec.slots, spec.max_slots):
        return PendReason.HOST_LESS_SLOTS
    if placement.alone and ledger.why_not_alone(placement.alone):
        return PendReason.HOST_NONEXCLUSIVE
    reason = next((why for part in placement.parts if (why := ledger.why_not_part(spec, part))), 0)
    if not reason and reserved.rows:
        reason = why_not_reserved(reserved, placement, spec)
    return reason or ledger.why_not_array(placement.key) or limits.why_not(spec, placement.parts)


def why_not_reserved(reserved: Reserved, placement: Placement, spec: Spec) -> int:
    """Pend reason why advance reservations prevent this start; 0: they do not."""
    return reserved.why_not_job(spec) or next((why for part in placement.parts if (why := reserved.why_not_part(spec, part))), 0)


def _why_not_job(job: Job, parts: tuple[Placed, ...], params: Params, now: float) -> bool:
    barred, _ = barred_from(job, params, now)
    if barred and any(part.host in barred for part in parts):
        return True
    return job.not_before > now or (now < returns_at(job) and any(part.host in job.avoid for part in parts))
