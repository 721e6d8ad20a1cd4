"""bkill, bstop, bresume, brequeue, bmig of live jobs. One answer line for each target."""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.bulk import LEFT_OUT, Chunking, decide_each, why_none
from lavad.core.decide.base.chunk import leave_chunk
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import decides
from lavad.core.decide.base.select import has_filter, matching
from lavad.core.decide.base.specs import spec_number
from lavad.core.decide.submit.resources import known_hosts
from lavad.core.decide.submit.submit import known_names
from lavad.core.job.job import Array, Job, PendingSignal
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Caller, Kill, Migrate, Refused, Requeue, Resume, Select, Stop
from lavad.core.lang.ids import job_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import STARTED, SUSPENDED, WAITING, JobState, SignalKind, TermReason
from lavad.core.rules.checkpoint_folder import for_other_hosts
from lavad.core.site.rights import is_admin, is_queue_admin, why_not_queue

NOT_STARTED = "Job has not started yet"
_ENDING = frozenset({0, 2, 9, 15})
_CONT, _STOP, _TSTP = 18, 19, 20
MAX_SIGNAL = 64
MAX_REASON = 4095


def not_started(array: Array, elements: Ranges, now: float) -> list[ev.Event] | str:
    """The refusal of untouched elements by a command for started jobs."""
    return NOT_STARTED


def _reason(cluster: Cluster, job: Job | Array, caller: Caller) -> TermReason:
    owner = cluster.specs.rows[job.spec].user == caller.user
    return TermReason.TERM_OWNER if owner else TermReason.TERM_ADMIN


def check_reason(text: str) -> None:
    """``-C``: one line, of 4095 characters at most as in LSF."""
    if len(text) > MAX_REASON or not text.isprintable():
        raise Refused(f"The reason must be one line of at most {MAX_REASON} characters")


@decides(Kill)
def kill(cluster: Cluster, ask: Kill, caller: Caller, now: float) -> Decided:
    """bkill: the end of a job, or one signal to it; one that stops or continues it does what bstop and bresume do."""
    if not 0 <= ask.signal <= MAX_SIGNAL:
        raise Refused(f"{ask.signal}: Illegal signal value")
    check_reason(ask.reason)
    ask = _with_force(cluster, ask, caller)

    def on_job(job: Job, now: float) -> list[ev.Event] | str:
        if not ask.now and _stops(cluster, job, ask.signal):
            return _stop_job(cluster, job, caller, ask.reason, now)
        if not ask.now and ask.signal == _CONT and job.state in (*WAITING, JobState.WAIT, *SUSPENDED):
            return _resume_job(cluster, job, caller, ask.reason, now)
        reason = _reason(cluster, job, caller)
        done = ask.done and not ask.now and ask.signal == 0
        if done and (job.state in WAITING or job.state is JobState.WAIT):
            return NOT_STARTED
        if job.state in WAITING:
            return _kill_waiting(job, ask, caller, reason, now)
        if ask.now:
            force = TermReason.TERM_FORCE_OWNER if reason is TermReason.TERM_OWNER else TermReason.TERM_FORCE_ADMIN
            return [
                ev.JobFinished(at=now, key=job.key, state=JobState.EXIT, status=9, reason=force, by=caller.user, why=ask.reason)
            ]
        waits = job.state is JobState.WAIT and ask.signal in _ENDING
        kind = SignalKind.KILL if ask.signal == 0 or waits else SignalKind.SIGNAL
        pending = PendingSignal(kind=kind, at=now, by=caller.user, signal=ask.signal, reason=reason, done=done, said=ask.reason)
        return [ev.SignalRequested(at=now, key=job.key, pending=pending)]

    def on_elements(array: Array, elements: Ranges, now: float) -> list[ev.Event] | str:
        if not ask.now and _stops(cluster, array, ask.signal):
            return _stop_elements(cluster, array, elements, caller, ask.reason, now)
        if not ask.now and ask.signal == _CONT:
            return _resume_elements(cluster, array, elements, caller, ask.reason, now)
        if ask.signal not in _ENDING or (ask.done and not ask.now and not ask.signal):
            return NOT_STARTED
        reason = _reason(cluster, array, caller)
        return [ev.ElementsKilled(at=now, key=array.job, elements=elements, by=caller.user, reason=reason)]

    return decide_each(cluster, ask.jobs, caller, now, on_job, on_elements, Chunking(by_element=True))


def _with_force(cluster: Cluster, ask: Kill, caller: Caller) -> Kill:
    """The ask without -r, where that is for root and cluster administrators (PRIVILEGED_USER_FORCE_BKILL)."""
    if ask.now and cluster.conf.params.privileged_user_force_bkill and not is_admin(cluster.conf, caller):
        return replace(ask, now=False)
    return ask


def _kill_waiting(job: Job, ask: Kill, caller: Caller, reason: TermReason, now: float) -> list[ev.Event] | str:
    if ask.signal not in _ENDING:
        return NOT_STARTED
    return [ev.JobFinished(at=now, key=job.key, state=JobState.EXIT, reason=reason, by=caller.user, why=ask.reason)]


def _stops(cluster: Cluster, job: Job | Array, signal: int) -> bool:
    """Whether a signal suspends a job as bstop does: STOP, and TSTP where bstop itself sends that."""
    spec = cluster.specs.rows[job.spec]
    parallel = sum(part.slots for part in job.run.parts) > 1 if isinstance(job, Job) and job.run is not None else spec.slots > 1
    return signal == _STOP or (signal == _TSTP and (parallel or bool(spec.interactive)))


@decides(Stop)
def stop(cluster: Cluster, ask: Stop, caller: Caller, now: float) -> Decided:
    """bstop: hold pending jobs, suspend running ones."""
    check_reason(ask.reason)

    def on_job(job: Job, now: float) -> list[ev.Event] | str:
        return _stop_job(cluster, job, caller, ask.reason, now)

    def on_elements(array: Array, elements: Ranges, now: float) -> list[ev.Event] | str:
        return _stop_elements(cluster, array, elements, caller, ask.reason, now)

    return decide_each(cluster, ask.jobs, caller, now, on_job, on_elements)


def _stop_job(cluster: Cluster, job: Job, caller: Caller, why: str, now: float) -> list[ev.Event]:
    if job.state is JobState.PEND or (job.state is JobState.PSUSP and _takes_over(cluster, job, caller)):
        return [ev.JobHeld(at=now, key=job.key, by=caller.user, why=why)]
    if job.state is JobState.WAIT:
        return [leave_chunk(job, caller.user, now, JobState.PSUSP, why)]
    if job.state in (JobState.RUN, JobState.SSUSP) or (job.state is JobState.USUSP and _takes_over(cluster, job, caller)):
        return [ev.JobSuspended(at=now, key=job.key, state=JobState.USUSP, by=caller.user, why=why)]
    return []


def _stop_elements(cluster: Cluster, array: Array, elements: Ranges, caller: Caller, why: str, now: float) -> list[ev.Event]:
    stopped = array.pending.intersect(elements)
    if array.held and _takes_over(cluster, array, caller):
        stopped = stopped.union(array.held.intersect(elements))
    return [ev.ElementsHeld(at=now, key=array.job, elements=stopped, by=caller.user, why=why)] if stopped else []


def _takes_over(cluster: Cluster, job: Job | Array, caller: Caller) -> bool:
    """Whether an administrator stops a job that its owner has stopped already, so that the owner cannot resume it."""
    spec = cluster.specs.rows[job.spec]
    return job.stopper in ("", spec.user) and caller.user != spec.user and is_queue_admin(cluster.conf, spec.queue, caller)


@decides(Resume)
def resume(cluster: Cluster, ask: Resume, caller: Caller, now: float) -> Decided:
    """bresume: release held and resume suspended jobs; those stopped by others only with ENABLE_USER_RESUME."""
    check_reason(ask.reason)

    def on_job(job: Job, now: float) -> list[ev.Event] | str:
        return _resume_job(cluster, job, caller, ask.reason, now)

    def on_elements(array: Array, elements: Ranges, now: float) -> list[ev.Event] | str:
        return _resume_elements(cluster, array, elements, caller, ask.reason, now)

    return decide_each(cluster, ask.jobs, caller, now, on_job, on_elements)


def _resume_job(cluster: Cluster, job: Job, caller: Caller, said: str, now: float) -> list[ev.Event] | str:
    if job.state in (JobState.PSUSP, *SUSPENDED) and (denied := _why_not_resume(cluster, job, caller)):
        return denied
    if job.state is JobState.PSUSP:
        return [ev.JobReleased(at=now, key=job.key, by=caller.user, why=said)]
    if job.preempted_for and job.state in SUSPENDED:
        # its slots are used by another job: it resumes when they are free again
        why = "Job was preempted and waits for free slots"
        state = JobState.SSUSP
        return [] if job.state is state else [ev.JobSuspended(at=now, key=job.key, state=state, by=caller.user, why=why)]
    if job.state in SUSPENDED:
        return [ev.JobResumed(at=now, key=job.key, by=caller.user, why=said)]
    return []


def _resume_elements(
    cluster: Cluster, array: Array, elements: Ranges, caller: Caller, said: str, now: float
) -> list[ev.Event] | str:
    held = array.held.intersect(elements)
    if held and (denied := _why_not_resume(cluster, array, caller)):
        return denied
    return [ev.ElementsReleased(at=now, key=array.job, elements=held, by=caller.user, why=said)] if held else []


def _why_not_resume(cluster: Cluster, job: Job | Array, caller: Caller) -> str:
    """Why somebody may not resume what another has stopped; "": they may."""
    conf, queue = cluster.conf, cluster.specs.rows[job.spec].queue
    own = conf.params.enable_user_resume or job.stopper in ("", caller.user)
    return "" if own else why_not_queue(conf, queue, caller)


@decides(Requeue)
def requeue(cluster: Cluster, ask: Requeue, caller: Caller, now: float) -> Decided:
    """brequeue: end running jobs and queue them again, at the head of their class.

    States are a filter as the others are: jobs in another one are passed over, where no id names them.
    """
    check_reason(ask.reason)
    wanted = _wanted_states(ask)
    filters = bool(ask.states) and all(text == "0" for text in ask.jobs.ids)
    target = JobState.PSUSP if ask.hold else JobState.PEND
    jobs = ask.jobs
    if filters and not jobs.ids:
        newest = newest_live(cluster, ask, caller)
        if not newest:
            return Decided(answer={"results": [], "none": why_none(cluster, jobs, caller)})
        jobs = Select(ids=[newest])

    def on_job(job: Job, now: float) -> list[ev.Event] | str:
        if filters and (job.state in WAITING or job.state not in wanted):
            return LEFT_OUT
        if job.state in WAITING:
            return NOT_STARTED
        if job.state not in wanted:
            return f"Job is not in the wanted state ({job.state.name})"
        reason = TermReason.TERM_REQUEUE_OWNER
        if cluster.specs.rows[job.spec].user != caller.user:
            reason = TermReason.TERM_REQUEUE_ADMIN
        pending = PendingSignal(kind=SignalKind.REQUEUE, at=now, by=caller.user, reason=reason, state=target, said=ask.reason)
        return [ev.SignalRequested(at=now, key=job.key, pending=pending)]

    def on_elements(array: Array, elements: Ranges, now: float) -> list[ev.Event] | str:
        return LEFT_OUT if filters else NOT_STARTED

    return decide_each(cluster, jobs, caller, now, on_job, on_elements)


def _wanted_states(ask: Requeue) -> set[JobState]:
    for name in ask.states:
        if name not in JobState.__members__:
            raise Refused(f"{name}: Unknown job state")
    wanted = {JobState[name] for name in ask.states} or {JobState.RUN, JobState.USUSP, JobState.SSUSP}
    return wanted | {JobState.WAIT} if JobState.RUN in wanted else wanted


def newest_live(cluster: Cluster, ask: Requeue, caller: Caller) -> str:
    """The id of the job that was submitted last of the live ones that the filters take, its state with them; "": none."""
    wanted, newest, shown = _wanted_states(ask) - WAITING, 0, ""
    for found in matching(cluster, ask.jobs, caller) if has_filter(ask.jobs) else ():
        keys = [found] if isinstance(found, int) else found.keys
        if any(cluster.jobs.rows[key].state in wanted for key in keys) and job_of(keys[0]) > newest:
            newest, shown = job_of(keys[0]), str(found) if isinstance(found, int) else found.shown
    return shown


@decides(Migrate)
def migrate(cluster: Cluster, ask: Migrate, caller: Caller, now: float) -> Decided:
    """bmig: checkpoint if possible, end and restart elsewhere; only of checkpointable or rerunnable jobs."""
    if ask.hosts:
        known_hosts(ask.hosts, known_names(cluster))
    specs: list[ev.Event] = []

    def on_job(job: Job, now: float) -> list[ev.Event] | str:
        spec = cluster.specs.rows[job.spec]
        if job.state not in STARTED:
            return NOT_STARTED
        if job.state is JobState.WAIT:
            return [leave_chunk(job, caller.user, now, JobState.PEND)]
        if not may_migrate(cluster, spec):
            return "Job is not checkpointable or rerunnable"
        if job.run is not None and job.run.is_ending:
            return "Job is being migrated or ended already"
        pending = migration(cluster, spec, caller.user, now)
        events: list[ev.Event] = []
        if ask.hosts:
            number = spec_number(cluster, for_other_hosts(replace(spec, hosts=tuple(ask.hosts))), specs, now)
            change = f"Hosts change to : {' '.join(ask.hosts)}"
            events.append(ev.JobModified(at=now, key=job.key, spec=number, name=job.name, by=caller.user, changes=(change,)))
        return [*events, ev.SignalRequested(at=now, key=job.key, pending=pending)]

    return decide_each(cluster, ask.jobs, caller, now, on_job, not_started, Chunking(before=specs))


def may_migrate(cluster: Cluster, spec: Spec) -> bool:
    """Whether a job may be ended to start elsewhere: it is checkpointable or rerunnable, if only by its queue."""
    queue = cluster.queue_conf.get(spec.queue)
    in_rerunnable_queue = queue is not None and queue.rerunnable and not spec.never_rerun
    return spec.checkpoint is not None or spec.rerunnable or in_rerunnable_queue


def migration(cluster: Cluster, spec: Spec, by: str, now: float, said: str = "") -> PendingSignal:
    """The request that ends a job, to start elsewhere. A checkpoint that fails ends it, not the job: it needs no notice."""
    notice = 0 if spec.checkpoint is not None else cluster.conf.params.lava_warning_max
    return PendingSignal(kind=SignalKind.MIGRATE, at=now, by=by, kill_after=True, notice=notice, said=said)
