"""Events of an attempt: dispatched, suspended, resumed, signalled, lost and found, checkpointed."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.leases import lease_of
from lavad.core.events.base import STAY_STARTED, IllegalMove, JobEvent, Moves, folds, move, stay
from lavad.core.events.records import attempt_of, live_job, put, record_of, staying, staying_attempt
from lavad.core.job.checkpoints import PERIOD, Checkpoints, Generation, brought, failed, made, staged, to_copy
from lavad.core.job.job import Attempt, Job, Part, PendingSignal, Placed, Suspect
from lavad.core.job.roles import tasks_of
from lavad.core.job.run_time import with_suspension
from lavad.core.lang.rusage_decay import decayed
from lavad.core.lang.states import JobState, SignalKind
from lavad.core.lang.states import JobState as S


class JobDispatched(JobEvent, frozen=True):
    """PEND to RUN or WAIT: a new attempt. ``key`` may be an untouched element."""

    moves: ClassVar[Moves] = {S.PEND: None}

    attempt: int
    uid: str
    parts: tuple[Placed, ...]
    way: int = 0
    """Index of the alternative of its resource requirement that placed it."""
    alone: tuple[str, ...] = ()
    """Hosts without a part of it that no other job may use meanwhile (cu[excl])."""
    forced: bool = False
    """brun -f: run windows and load do not suspend it."""
    afresh: bool = False
    """brun -b: it starts from the beginning, not from its checkpoint."""
    chunk: str = ""
    """The chunk that it is a job of."""
    waits: bool = False
    """It is not the first job of its chunk."""
    ahead: tuple[int, ...] = ()
    """As in ``Attempt``."""
    run_limit: int = 0
    """Its run limit in seconds, where it started in what is held for another job (INTERRUPTIBLE_BACKFILL)."""


def dispatched(cluster: Cluster, event: JobDispatched) -> Job:
    """The record of the job once it is dispatched; raises IllegalMove."""
    job = record_of(cluster, event.key)
    state = move(job, event, JobState.WAIT if event.waits else JobState.RUN)
    spec = cluster.specs.rows[job.spec]
    elastic = spec.resizable
    parts = tuple(
        Part(
            host=one.host,
            slots=one.slots,
            gpus=one.gpus,
            reserved=one.reserved,
            decays=one.decays,
            roles=one.roles,
            binds=one.binds,
            node_index=index if elastic else 0,
        )
        for index, one in enumerate(event.parts)
    )
    known = -1 if event.afresh else job.checkpoint
    if job.checkpoints is not None and spec.checkpoint is not None and spec.checkpoint.stage and len(parts) > 1:
        known = brought(job.checkpoints, known)
    run = Attempt(
        number=event.attempt,
        uid=event.uid,
        dispatched=event.at,
        parts=parts,
        checkpoint=known,
        way=event.way,
        alone=event.alone,
        forced=event.forced,
        tasks=tasks_of(spec, event.parts) if spec.roles else (),
        elastic=elastic,
        next_node_index=len(parts) if elastic else 0,
        lease=lease_of(cluster, spec),
        chunk=event.chunk,
        ahead=event.ahead,
        limits=replace(spec.limits, run=event.run_limit) if event.run_limit else None,
    )
    return replace(
        job, state=state, since=event.at, attempt=event.attempt, run=run, reason=0, not_before=0.0, promised=(), checkpoint=known
    )


@folds(JobDispatched)
def _job_dispatched(cluster: Cluster, event: JobDispatched) -> None:
    put(cluster, dispatched(cluster, event))


class JobSuspended(JobEvent, frozen=True):
    """RUN to USUSP (by a user) or SSUSP (by the system). A job of a chunk may begin before the master has heard of it."""

    moves: ClassVar[Moves] = {S.RUN: None, S.WAIT: None, S.SSUSP: None, S.USUSP: None}

    state: JobState = JobState.USUSP
    by: str = ""
    why: str = ""
    beneficiary: int = 0
    """The job that gets its slots (preemption); 0: it keeps them."""


@folds(JobSuspended)
def _job_suspended(cluster: Cluster, event: JobSuspended) -> None:
    job = live_job(cluster, event.key)
    state = move(job, event, event.state)
    count = job.preempted + (event.beneficiary not in (0, job.key))
    beneficiary = event.beneficiary or job.preempted_for
    remarks = (event.why if state is JobState.USUSP else "", "")
    goes_on = job.state is state is JobState.USUSP
    job = replace(
        job,
        state=state,
        since=job.since if goes_on else event.at,
        run=job.run if goes_on else with_suspension(job, event.at),
        preempted_for=beneficiary,
        preempted=count,
        stopper=event.by,
        remarks=remarks,
    )
    cluster.jobs.put(job.key, job)


class JobResumed(JobEvent, frozen=True):
    """USUSP or SSUSP to RUN."""

    moves: ClassVar[Moves] = {S.USUSP: S.RUN, S.SSUSP: S.RUN}

    by: str = ""
    why: str = ""


@folds(JobResumed)
def _job_resumed(cluster: Cluster, event: JobResumed) -> None:
    job = live_job(cluster, event.key)
    run = with_suspension(job, event.at)
    remarks = (job.remarks[0], event.why)
    if job.preempted_for not in (0, job.key):
        job = replace(job, preempted_time=job.preempted_time + max(0.0, event.at - job.since))
    cluster.jobs.put(job.key, replace(job, state=move(job, event), since=event.at, preempted_for=0, run=run, remarks=remarks))


class JobLost(JobEvent, frozen=True):
    """A host of the attempt is silent: RUN (or WAIT, or suspended) to UNKWN."""

    moves: ClassVar[Moves] = {S.RUN: S.UNKWN, S.WAIT: S.UNKWN, S.SSUSP: S.UNKWN, S.USUSP: S.UNKWN}

    host: str


@folds(JobLost)
def _job_lost(cluster: Cluster, event: JobLost) -> None:
    job = live_job(cluster, event.key)
    run = with_suspension(job, event.at)
    cluster.jobs.put(job.key, replace(job, state=move(job, event), since=event.at, before=job.state, run=run))


class JobFound(JobEvent, frozen=True):
    """Its silent host is back and still has the job: from UNKWN to the state before."""

    moves: ClassVar[Moves] = {S.UNKWN: None, S.ZOMBI: None}

    state: JobState


@folds(JobFound)
def _job_found(cluster: Cluster, event: JobFound) -> None:
    job = live_job(cluster, event.key)
    state, run = move(job, event, event.state), with_suspension(job, event.at)
    cluster.jobs.put(job.key, replace(job, state=state, since=event.at, run=run))


class SignalRequested(JobEvent, frozen=True, tag="JobWished", rename={"pending": "wish"}):
    """A signal, checkpoint, kill, requeue or migration was requested of a running attempt."""

    moves: ClassVar[Moves] = {S.UNKWN: None, **stay(S.RUN, S.WAIT, S.SSUSP, S.USUSP, S.ZOMBI)}

    pending: PendingSignal
    beneficiary: int = 0
    """The job that gets its resources once it is gone (preemption by requeue); 0: none."""


@folds(SignalRequested)
def _signal_requested(cluster: Cluster, event: SignalRequested) -> None:
    job = live_job(cluster, event.key)
    kill = event.pending.kind is SignalKind.KILL
    state = move(job, event, JobState.ZOMBI if kill else job.state)
    run = job.run
    if run is None:
        raise IllegalMove(f"a pending needs an attempt: {job}")
    pending = replace(event.pending, number=run.next_signal)
    kept = tuple(old for old in run.pending_signals if not (kill and old.kind is SignalKind.KILL))
    asked = pending.signal if pending.kind is SignalKind.SIGNAL else run.signalled
    run = replace(run, pending_signals=(*kept, pending), next_signal=run.next_signal + 1, signalled=asked)
    if event.beneficiary:
        job = replace(job, preempted_for=event.beneficiary, preempted_for_good=True, preempted=job.preempted + 1)
    cluster.jobs.put(job.key, replace(job, state=state, run=run))


class SignalHandled(JobEvent, frozen=True, tag="WishGranted"):
    """A pending signal was delivered or carried out (or can no longer be)."""

    moves: ClassVar[Moves] = STAY_STARTED

    number: int
    attempt: int
    ok: bool = True
    why: str = ""


@folds(SignalHandled)
def _signal_handled(cluster: Cluster, event: SignalHandled) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    pending_signals = tuple(pending for pending in run.pending_signals if pending.number != event.number)
    cluster.jobs.put(job.key, replace(job, run=replace(run, pending_signals=pending_signals)))


class CheckpointMade(JobEvent, frozen=True):
    """A complete checkpoint of the job is on disk: ``size`` bytes, ``seconds`` after it was asked for (0.0: it was not)."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    generation: int
    seconds: float = 0.0
    size: int = 0
    method: str = ""


@folds(CheckpointMade)
def _checkpoint_made(cluster: Cluster, event: CheckpointMade) -> None:
    job = staying(cluster, event)
    run = replace(attempt_of(job, event.attempt), checkpoint=event.generation)
    known = made(job.checkpoints, Generation(event.generation, event.at, event.attempt, event.seconds, event.size, event.method))
    asked = cluster.specs.rows[job.spec].checkpoint
    if asked is not None and asked.stage and len(run.parts) > 1:
        run = replace(run, copying=to_copy(known, run.number, run.copying))
    cluster.jobs.put(job.key, replace(job, run=run, checkpoint=event.generation, checkpoints=known))


class CheckpointPeriodSet(JobEvent, frozen=True):
    """-k auto: the job writes a checkpoint every ``period`` seconds from now on."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    period: int
    cost: float
    """Seconds that one costs."""
    between_failures: float
    """Mean seconds between failures of its hosts."""


@folds(CheckpointPeriodSet)
def _checkpoint_period_set(cluster: Cluster, event: CheckpointPeriodSet) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    told = {**dict(run.amended), PERIOD: str(event.period)}
    known = replace(
        job.checkpoints or Checkpoints(),
        period=event.period,
        next_cost=event.cost,
        between_failures=event.between_failures,
    )
    cluster.jobs.put(job.key, replace(job, run=replace(run, amended=tuple(sorted(told.items()))), checkpoints=known))


class CheckpointFailed(JobEvent, frozen=True):
    """A checkpoint could not be made, or is damaged (``generation`` -1: there is none)."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    generation: int = -1
    seconds: float = 0.0
    why: str = ""
    newest: int | None = None
    """The generation that the job has gone on from instead, -1: none; None: as before."""


@folds(CheckpointFailed)
def _checkpoint_failed(cluster: Cluster, event: CheckpointFailed) -> None:
    job = staying(cluster, event)
    job = replace(job, checkpoints=failed(job.checkpoints, event.why, event.at, event.seconds))
    if event.newest is not None:
        run = replace(attempt_of(job, event.attempt), checkpoint=event.newest)
        job = replace(job, run=run, checkpoint=event.newest)
    cluster.jobs.put(job.key, job)


class CheckpointStaged(JobEvent, frozen=True):
    """The copy of a checkpoint (``bsub -k "DIR stage"``) is whole in ``size`` bytes, or ``why`` it is not."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    generation: int
    seconds: float = 0.0
    size: int = 0
    why: str = ""
    host: str = ""
    """The one that holds it, "": it is in the shared folder. With ``why``: the host that has failed."""


@folds(CheckpointStaged)
def _checkpoint_staged(cluster: Cluster, event: CheckpointStaged) -> None:
    job = staying(cluster, event)
    known, run = staged(job.checkpoints, event.generation, event.size, event.why, event.host), job.run
    if run is not None and run.copying >= 0:
        run = replace(run, copying=to_copy(known, run.number, run.copying, bool(event.why)))
    cluster.jobs.put(job.key, replace(job, run=run, checkpoints=known))


class CheckpointHolder(JobEvent, frozen=True):
    """Copies of the job's checkpoints go to this host from now on (``bsub -k "DIR stage"`` without a shared folder)."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    host: str
    port: int = 0


@folds(CheckpointHolder)
def _checkpoint_holder(cluster: Cluster, event: CheckpointHolder) -> None:
    job = staying(cluster, event)
    known = replace(job.checkpoints or Checkpoints(), holder=event.host, holder_port=event.port)
    cluster.jobs.put(job.key, replace(job, checkpoints=known))


class RusageDecayed(JobEvent, frozen=True, tag="ReservationFaded"):
    """rusage[duration=,decay=]: the reservations of the attempt have decayed by a step."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int


@folds(RusageDecayed)
def _rusage_decayed(cluster: Cluster, event: RusageDecayed) -> None:
    job, run = staying_attempt(cluster, event, event.attempt)
    changes = [decayed(part.reserved, part.decays, event.at - run.dispatched) for part in run.parts]
    parts = tuple(
        replace(part, reserved=reserved, decays=decays) for part, (reserved, decays) in zip(run.parts, changes, strict=True)
    )
    cluster.jobs.put(job.key, replace(job, run=replace(run, parts=parts)))


class RanksSuspected(JobEvent, frozen=True):
    """Ranks of an attempt that seem to hang or to hold up the others; (): none any more."""

    moves: ClassVar[Moves] = STAY_STARTED

    attempt: int
    suspects: tuple[Suspect, ...] = ()


@folds(RanksSuspected)
def _ranks_suspected(cluster: Cluster, event: RanksSuspected) -> None:
    job = staying(cluster, event)
    run = replace(attempt_of(job, event.attempt), suspects=event.suspects)
    cluster.jobs.put(job.key, replace(job, run=run))
