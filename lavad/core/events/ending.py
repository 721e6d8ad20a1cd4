"""End of an attempt: the job is requeued or finished, and its usage is charged to its account."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from lavad.core.cluster.charge import account_of, charged, gpus_with_attempt
from lavad.core.cluster.cluster import Cluster
from lavad.core.events.base import STARTED, STAY_STARTED, JobEvent, Moves, folds, move
from lavad.core.events.records import array_of, drop_finished_array, live_job, put, record_of, staying
from lavad.core.job.checkpoints import died, started_again
from lavad.core.job.depend import Ended, exit_code
from lavad.core.job.job import Array, Attempt, End, Job, Outcome
from lavad.core.job.memory import learn
from lavad.core.job.pace import with_job
from lavad.core.job.run_time import start_of, with_suspension
from lavad.core.lang.ids import index_of, job_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState, PartState, SignalKind, TermReason
from lavad.core.lang.states import JobState as S


class JobRequeued(JobEvent, frozen=True):
    """The attempt is over and the job is pending again; ``state``: PEND or PSUSP."""

    moves: ClassVar[Moves] = dict.fromkeys(STARTED)

    reason: int = 0
    why: str = ""
    state: JobState = JobState.PEND
    avoid: tuple[str, ...] = ()
    failures: int = 0
    not_before: float = 0.0
    barred: tuple[str, ...] = ()
    """Hosts on which it must not start again (EXCLUDE of REQUEUE_EXIT_VALUES)."""
    end: End | None = None
    requeues: int = 0
    """Number of requeues by exit value so far, including this one."""
    deaths: int = 0
    """Crashes in a row from one checkpoint generation, including this one; 0: it did not crash."""
    back_to: int | None = None
    """The generation to go on from in place of the newest."""
    spec: int = 0
    """Number of its spec from now on, which has another memory limit; 0: its own."""
    stopper: str = ""
    """Who has it held from now on; "": the system."""
    queue_time: float = 0.0
    """The submission time by which it is queued from now on; 0: as before."""
    ended: float = 0.0
    """As of JobFinished, of the attempt."""


@folds(JobRequeued)
def _job_requeued(cluster: Cluster, event: JobRequeued) -> None:
    job = live_job(cluster, event.key)
    move(job, event, event.state)
    run = job.run
    if run is not None and event.end is not None:
        run = _with_end(run, event.end)
    _charge(cluster, job.spec, run, over_at(event))
    checkpoints = job.checkpoints
    if run is not None and run.started and cluster.specs.rows[job.spec].checkpoint is not None:
        at = run.verdict.at if run.verdict is not None and run.verdict.at else event.at
        checkpoints = started_again(checkpoints, run.number, run.started, at)
        checkpoints = died(checkpoints, event.deaths, run.checkpoint if event.back_to is not None else None)
    job = replace(
        job,
        spec=event.spec or job.spec,
        state=event.state,
        since=event.at,
        run=None,
        checkpoints=checkpoints,
        checkpoint=job.checkpoint if event.back_to is None else event.back_to,
        reason=event.reason,
        avoid=event.avoid,
        failures=event.failures,
        failed_why=event.why if event.failures else "",
        not_before=event.not_before,
        preempted_for=0,
        preempted_for_good=False,
        requeues=event.requeues or job.requeues,
        stopper=event.stopper,
        queue_time=event.queue_time or job.queue_time,
        gpus_before=gpus_with_attempt(job, run, event.at),
    )
    if event.barred:
        since = dict(zip(job.barred, job.barred_at, strict=False)) | dict.fromkeys(event.barred, event.at)
        since = dict.fromkeys(job.barred, 0.0) | since  # records of older versions do not say when
        job = replace(job, barred=tuple(since), barred_at=tuple(since.values()))
    cluster.jobs.put(job.key, job)


class MemoryLearnt(JobEvent, frozen=True):
    """A job with -M auto is over, or its attempt: with this limit (KB) it would have done."""

    moves: ClassVar[Moves] = STAY_STARTED

    what: str
    limit: int


@folds(MemoryLearnt)
def _memory_learnt(cluster: Cluster, event: MemoryLearnt) -> None:
    job = staying(cluster, event)
    user = cluster.specs.rows[job.spec].user
    cluster.learnt.put(user, learn(cluster.learnt.rows.get(user), user, event.what, event.limit))


class JobFinished(JobEvent, frozen=True):
    """DONE or EXIT: the attempt, if any, is over on every host."""

    moves: ClassVar[Moves] = dict.fromkeys((S.PEND, S.PSUSP, *STARTED))

    state: JobState
    status: int = 0
    reason: TermReason = TermReason.NONE
    why: str = ""
    end: End | None = None
    """The end of the only part, where no PartEnded event preceded."""
    by: str = ""
    post: int = 0
    """Wait status of the post-execution command."""
    ended: float = 0.0
    """When it was over, where its host was heard only later; 0: at the time of the event."""


def over_at(event: JobFinished | JobRequeued) -> float:
    """When the attempt was over; the master may have heard of that late."""
    return event.ended or event.at


@folds(JobFinished)
def _job_finished(cluster: Cluster, event: JobFinished) -> None:
    job = record_of(cluster, event.key)
    state = move(job, event, event.state)
    if job.key not in cluster.jobs.rows:
        put(cluster, job)
    finish(cluster, job, event)
    if job_of(job.key) in cluster.conditions.named:
        known = cluster.ended.rows.get(job_of(job.key)) or Ended()
        code = None if state is JobState.DONE else exit_code(event.status)
        cluster.ended.put(job_of(job.key), known.with_element(index_of(job.key) or 1, code, bool(event.post)))
    cluster.jobs.drop(job.key)
    if index_of(job.key):
        array = _noted(cluster, array_of(cluster, job.key), job, event)
        count_finished(cluster, array, int(state is JobState.DONE), 1)


def _noted(cluster: Cluster, array: Array, job: Job, event: JobFinished) -> Array:
    """With what its policy asks of an element that ends."""
    policy = cluster.specs.rows[array.spec].policy
    if policy.array_success and event.state is JobState.DONE:
        return replace(array, well=array.well.union(_only(job)))
    if policy.array_failures >= 0 and event.state is JobState.EXIT and was_let_be(job, event.by):
        return replace(array, failed=array.failed.union(_only(job)))
    return array


def _only(job: Job) -> Ranges:
    return Ranges.span(index_of(job.key), index_of(job.key))


def was_let_be(job: Job, by: str = "") -> bool:
    """Whether a job that has ended did so by itself: nobody ended it before or in its attempt. ``by``: who ends it at once."""
    kinds = [pending.kind for pending in job.run.pending_signals] if job.run is not None else [SignalKind.KILL]
    return SignalKind.KILL not in kinds and not by


def finish(cluster: Cluster, job: Job, event: JobFinished) -> None:
    """Note the last record of a job, and charge what its attempt used; the job itself is dropped by the caller."""
    at = over_at(event)
    outcome = Outcome(at=at, status=event.status, reason=event.reason, why=event.why, post=event.post)
    run = with_suspension(job, at)
    if run is not None and event.end is not None:
        run = _with_end(run, event.end)
    _charge(cluster, job.spec, run, at)
    _note_pace(cluster, job, at, event.by)
    cluster.finished[job.key] = replace(job, state=event.state, since=at, outcome=outcome, run=run)


def count_finished(cluster: Cluster, array: Array, done: int, count: int) -> None:
    """So many elements of an array have finished, ``done`` of them as DONE; all are dropped already."""
    cluster.arrays.put(array.job, replace(array, done=array.done + done, exited=array.exited + count - done))
    drop_finished_array(cluster, array.job)


def _charge(cluster: Cluster, spec: int, run: Attempt | None, at: float) -> None:
    """Add the usage of an attempt that is over to its account."""
    if run is None or not cluster.hist_hours:
        return
    value = cluster.specs.rows[spec]
    hours = cluster.hist_hours.get(value.queue)
    if hours is not None:
        account = account_of(value)
        charge = charged(cluster.charges.rows.get(account), run, value, at, hours)
        if charge is not None:
            cluster.charges.put(account, charge)


def _note_pace(cluster: Cluster, job: Job, at: float, by: str) -> None:
    """Note how long a job of a service class with goals has taken, if nobody ended it."""
    name = cluster.service_classes.with_goals(cluster.specs.rows[job.spec])
    if name and start_of(job) and was_let_be(job, by):
        cluster.paces.put(name, with_job(cluster.paces.rows.get(name), name, max(0.0, at - start_of(job))))


def _with_end(run: Attempt, end: End) -> Attempt:
    """The attempt with the end of its only part, which had no event of its own."""
    only = replace(run.parts[0], state=PartState.GONE, end=end)
    verdict = replace(run.verdict, output=end.output) if run.judged and run.verdict is not None else end
    return replace(run, verdict=verdict, parts=(only, *run.parts[1:]))
