"""Decisions by time alone: migration (MIG), termination deadlines, and decaying rusage.

Rule of MIG (LSF): the job's own -mig overrides its application profile, which overrides its queue; a shorter MIG of one of its
hosts overrides all.
"""

from __future__ import annotations

from itertools import islice

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.job.job import Job, PendingSignal
from lavad.core.lang.states import WAITING, JobState, SignalKind, TermReason

MOST_DECAYED = 5_000
"""Jobs in one turn of the engine; the rest follows in the next turn."""


def migrations(cluster: Cluster, now: float) -> Decided:
    """Migrate jobs that the system suspended for longer than MIG, if they are rerunnable or checkpointable."""
    events: list[ev.Event] = []
    for key in cluster.suspended:
        job = cluster.jobs.rows[key]
        after = migrate_after(cluster, job)
        if after is not None and now >= job.since + after:
            pending = PendingSignal(kind=SignalKind.MIGRATE, at=now, by="system", kill_after=True)
            events.append(ev.SignalRequested(at=now, key=key, pending=pending))
    return Decided(events=events)


def migrate_after(cluster: Cluster, job: Job) -> int | None:
    """Seconds of suspension by the system after which the job migrates; None: never."""
    spec = cluster.specs.rows[job.spec]
    if job.state is not JobState.SSUSP or job.run is None or job.preempted_for_good or not (spec.rerunnable or spec.checkpoint):
        return None
    if job.run.is_ending:
        return None
    profiles = (cluster.conf.app_conf.get(spec.app), cluster.queue_conf.get(spec.queue))
    own = next((one.mig for one in profiles if one is not None and one.mig is not None), None)
    own = spec.migrate_after if spec.migrate_after >= 0 else own
    confs = [cluster.host_conf.get(part.host) for part in job.run.parts]
    hosts = [conf.mig for conf in confs if conf is not None and conf.mig is not None]
    return min([*hosts, *([] if own is None else [own])], default=None)


def deadlines(cluster: Cluster, now: float) -> Decided:
    """Termination deadlines (bsub -t): pending jobs exit, running ones are killed."""
    events: list[ev.Event] = []
    reason = TermReason.TERM_DEADLINE
    specs = cluster.specs.rows
    due = {number for number in cluster.timed if specs[number].deadline and now >= specs[number].deadline}
    if not due:
        return Decided(events=events)  # live jobs are looked through only then: there may be a million
    for job in cluster.jobs.rows.values():
        if job.spec not in due:
            continue
        key = job.key
        if job.state in WAITING:
            events.append(ev.JobFinished(at=now, key=key, state=JobState.EXIT, reason=reason))
        elif job.run is not None and not any(pending.kind is SignalKind.KILL for pending in job.run.pending_signals):
            events.append(ev.SignalRequested(at=now, key=key, pending=PendingSignal(kind=SignalKind.KILL, at=now, reason=reason)))
    for array in cluster.arrays.rows.values():
        left = array.pending.union(array.held)
        if array.spec in due and left:
            events.append(ev.ElementsKilled(at=now, key=array.job, elements=left, reason=reason))
    return Decided(events=events)


def decay_rusage(cluster: Cluster, now: float) -> Decided:
    """rusage[duration=,decay=]: an event for each job whose reservations decay now."""
    rows = cluster.jobs.rows
    due = list(islice((key for key, at in cluster.use.decaying.items() if at <= now), MOST_DECAYED))
    return Decided(events=[ev.RusageDecayed(at=now, key=key, attempt=rows[key].attempt) for key in due])
