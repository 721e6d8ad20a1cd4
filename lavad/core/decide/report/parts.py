"""Decisions on reports about parts: prepared, started, refused, ended, gone, and hosts that leave a running job.

Reports about other attempts than the current one are dropped. A host leaves a job because of a shrink, or because it was lost
while the job can continue with fewer hosts.
Rule: where a report makes several events, the state between them is computed by the same folds that apply them.
"""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.report import copies
from lavad.core.decide.report.array_ends import find_kill
from lavad.core.decide.report.clocks import begin, end_in_time
from lavad.core.decide.report.ending import after_last_part
from lavad.core.decide.report.gpus import befell, reported
from lavad.core.events.part import with_end, with_fence, with_part
from lavad.core.events.resize import left, shrank
from lavad.core.job.checkpoints import PERIOD, Checkpoints, Generation, made
from lavad.core.job.chunk import RUNS
from lavad.core.job.endpoint import endpoint_text
from lavad.core.job.job import Attempt, End, Job, Part, PendingSignal
from lavad.core.job.places import places_of
from lavad.core.job.reports import (
    CheckpointReport,
    EndedReport,
    GoneReport,
    GrantedReport,
    PartReport,
    PreparedReport,
    RefusedReport,
    ResizeReport,
    StartedReport,
    StoppedReport,
)
from lavad.core.job.resize import is_complete, may_lose, portion, uid_of
from lavad.core.job.spec import Spec
from lavad.core.lang.bounds import MAX_WHY
from lavad.core.lang.states import OVER, JobState, PartState, SignalKind
from lavad.core.rules.checkpoint_interval import differs, period_of
from lavad.core.rules.effects import is_released


def find_part(cluster: Cluster, report: PartReport) -> tuple[Job, Attempt, Part] | None:
    """The live part that a report is about."""
    job = cluster.jobs.rows.get(report.key)
    if job is None or job.run is None:
        return None
    for at in places_of(job.run, report.host):
        part = job.run.parts[at]
        if part.state not in OVER and uid_of(job.run, part) == report.uid:
            return job, job.run, part
    return None


def prepared(cluster: Cluster, report: PreparedReport, now: float, whole: bool = True) -> list[ev.Event]:
    """A host has prepared its part; when all have, and none is silent, the gang is released.

    ``whole``: what follows for the whole job, too, which is looked at once for reports that are decided together (``gang``).
    """
    found = find_part(cluster, report)
    if found is None or found[2].state is not PartState.OFFERED:
        return []
    job, run, part = found
    address = endpoint_text(report.endpoint)
    events: list[ev.Event] = [
        ev.PartPrepared(
            at=now, key=job.key, attempt=run.number, host=part.host, address=address, attach_address=report.attach_address
        )
    ]
    if part.grown:
        return events if part.leaving else [*events, ev.GangReleased(at=now, key=job.key, attempt=run.number)]
    if whole and job.state is not JobState.UNKWN and may_go(run, part):
        events.append(ev.GangReleased(at=now, key=job.key, attempt=run.number))
    return events


def may_go(run: Attempt, now_prepared: Part | None = None) -> bool:
    """Whether every part of the gang is prepared, or is this one."""
    # hosts report more or less in their order: until the end one of the last has not
    ready = all(part.state is PartState.PREPARED or part is now_prepared for part in reversed(run.parts))
    return ready and not run.refused and run.verdict is None


def started(cluster: Cluster, report: StartedReport, now: float) -> list[ev.Event]:
    """A part runs."""
    found = find_part(cluster, report)
    if found is None or found[2].state is PartState.RUNNING or found[2].end is not None:
        return []
    job, run, part = found
    begun = begin(run, report.started, now)
    events: list[ev.Event] = [
        ev.PartStarted(at=now, key=job.key, attempt=run.number, host=part.host, pid=report.pid, started=begun, cwd=report.cwd)
    ]
    if run.resize is not None:
        events += _grown(job.key, with_part(run, part.host, state=PartState.RUNNING), now)
    if part is run.parts[0]:
        events += _checkpoint_period(cluster, job, run, job.checkpoints, now)
        events += copies.holder(cluster, job, run, now)
    return events


def stopped(cluster: Cluster, report: StoppedReport, now: float) -> list[ev.Event]:
    """The processes of a part were stopped or resumed."""
    found = find_part(cluster, report)
    if found is None or found[2].stopped == report.stopped:
        return []
    job, run, part = found
    return [ev.PartStopped(at=now, key=job.key, attempt=run.number, host=part.host, stopped=report.stopped)]


def granted(cluster: Cluster, report: GrantedReport, now: float) -> list[ev.Event]:
    """A pending signal was carried out on a host; one that ends the attempt stays until then, but a migration that failed.

    A checkpoint that the job is to end with has become a kill.
    """
    found = find_part(cluster, report)
    if found is None:
        return []
    job, run, part = found
    pending = next((pending for pending in run.pending_signals if pending.number == report.number), None)
    if pending is None or (pending.kind is SignalKind.CHECKPOINT and part is not run.parts[0]):
        return []  # the first host alone knows when a checkpoint is there
    runs_on = pending.kind is SignalKind.MIGRATE and not report.ok and run.verdict is None and not job.preempted_for_good
    handled = ev.SignalHandled(at=now, key=job.key, attempt=run.number, number=report.number, ok=report.ok, why=report.why)
    if pending.unless_begun and not report.ok:
        held = pending.state is JobState.PSUSP and job.state in RUNS
        stop = ev.JobSuspended(at=now, key=job.key, state=JobState.USUSP, by=pending.by, why=pending.said)
        return [handled, stop] if held else [handled]
    if pending.ends and not runs_on:
        return []
    if not (report.ok and pending.kind is SignalKind.CHECKPOINT and pending.kill_after):
        return [handled]
    kill = PendingSignal(kind=SignalKind.KILL, at=now, by=pending.by, reason=pending.reason)
    return [handled, ev.SignalRequested(at=now, key=job.key, pending=kill)]


def checkpointed(cluster: Cluster, report: CheckpointReport, now: float) -> list[ev.Event]:
    """A checkpoint is whole on disk, or is not."""
    found = find_part(cluster, report)
    if found is None:
        return []
    key, attempt, seconds = report.key, found[1].number, max(0.0, report.seconds)
    if report.staged:
        return copies.staged(cluster, found[0], found[1], report, now)
    if report.why:
        newest = None if report.newest is None else min(report.newest, found[1].checkpoint)
        known = found[0].checkpoints
        why = report.why if newest is None else copies.why_gone(cluster, known, report.generation, report.why)
        event = ev.CheckpointFailed(
            at=now,
            key=key,
            attempt=attempt,
            generation=report.generation,
            seconds=seconds,
            why=why[:MAX_WHY],
            newest=newest,
        )
        return [event]
    if found[1].checkpoint >= report.generation:
        return []
    whole = ev.CheckpointMade(
        at=now,
        key=key,
        attempt=attempt,
        generation=report.generation,
        seconds=seconds,
        size=max(0, report.size),
        method=report.method,
    )
    now_known = made(found[0].checkpoints, Generation(report.generation, now, attempt, seconds))
    period = _checkpoint_period(cluster, found[0], found[1], now_known, now)
    return [whole, *period, *copies.holder(cluster, found[0], found[1], now)]


def _checkpoint_period(cluster: Cluster, job: Job, run: Attempt, known: Checkpoints | None, now: float) -> list[ev.Event]:
    """-k auto: another period, where it differs from the one that its first host has."""
    asked = cluster.specs.rows[job.spec].checkpoint
    if asked is None or not asked.auto:
        return []
    period, cost, mean = period_of(cluster, run, known, now)
    before = int(dict(run.amended).get(PERIOD, "0"))
    if not differs(period, before):
        return []
    return [ev.CheckpointPeriodSet(at=now, key=job.key, attempt=run.number, period=period, cost=cost, between_failures=mean)]


def resized(cluster: Cluster, report: ResizeReport, now: float) -> list[ev.Event]:
    """The notification command of a resize has ended on the first host."""
    found = find_part(cluster, report)
    if found is None or found[1].resize is None or found[1].resize.number != report.number:
        return []
    run = found[1]
    return [ev.JobResized(at=now, key=report.key, attempt=run.number, number=report.number, ok=report.ok, why=report.why)]


def refused(cluster: Cluster, report: RefusedReport, now: float, whole: bool = True) -> list[ev.Event]:
    """A host refused its part: the gang is over; the job is requeued or exits with the reason. ``whole``: as for ``prepared``."""
    found = find_part(cluster, report)
    return [] if found is None else _refused(cluster, *found, report.code, report.why, now, whole)


def _refused(
    cluster: Cluster, job: Job, run: Attempt, part: Part, code: str, why: str, now: float, whole: bool = True
) -> list[ev.Event]:
    # what was refused before is not released any more
    if part.end is not None or (not run.refused and is_released(run)):
        end = End(at=now, lost=f"host {part.host} would not go on with it: {why}")
        return _ended(cluster, job, run, part, end, True, now, whole)
    event = ev.PartRefused(at=now, key=job.key, attempt=run.number, host=part.host, code=code, why=why)
    if not whole:
        return [event]
    run = replace(with_part(run, part.host, state=PartState.GONE), refused=why, refused_code=code)
    return [event, *after_last_part(cluster, replace(job, run=run, avoid=(*job.avoid, part.host)), now)]


def ended(cluster: Cluster, report: EndedReport, now: float, whole: bool = True) -> list[ev.Event]:
    """The job process of a part ended. If its lease ended it, the part counts as lost. ``whole``: as for ``prepared``."""
    found = find_part(cluster, report)
    if found is None:
        return []
    gpus = found[2].gpus
    end = end_in_time(found[1], report.end, now)
    if gpus and end.status:
        end = replace(end, gpu_fault=befell(cluster, report.host, gpus, report.gpu_faults))
    return reported(cluster, report, now) + _ended(cluster, *found, end, report.gone, now, whole)


def _ended(
    cluster: Cluster, job: Job, run: Attempt, part: Part, end: End, gone: bool, now: float, whole: bool = True
) -> list[ev.Event]:
    host = part.host
    if end.first_reason == "lease" and not end.lost:
        end = replace(end, lost=f"host {host} did not hear the master for the lease of the job")
    if run.elastic and _goes_on_without(job, cluster.specs.rows[job.spec], part, end):
        return _leaves(cluster, job, part, end, gone, now)
    if len(run.parts) == 1 and gone and part.end is None and not run.spent[2]:
        return after_last_part(cluster, replace(job, run=_final(run, part, end)), now, end)
    events: list[ev.Event] = []
    if part.end is None:
        events.append(ev.PartEnded(at=now, key=job.key, attempt=run.number, host=host, end=end))
    if gone:
        events.append(ev.PartGone(at=now, key=job.key, attempt=run.number, host=host))
    if not (whole and gone) or any(other.state not in OVER and other is not part for other in reversed(run.parts)):
        return events
    run = with_part(with_end(run, host, end) if part.end is None else run, host, state=PartState.GONE)
    return events + after_last_part(cluster, replace(job, run=run), now)


def _final(run: Attempt, part: Part, end: End) -> Attempt:
    return replace(run, verdict=run.verdict if run.judged else end, parts=(replace(part, end=end, state=PartState.GONE),))


def gone(cluster: Cluster, report: GoneReport, now: float, whole: bool = True) -> list[ev.Event]:
    """Nothing of a part is left on its host. A part that may have run and reported no end is lost.

    ``whole``: as for ``prepared``; False: only of an attempt that ``is_to_end``.
    """
    found = find_part(cluster, report)
    return [] if found is None else reported(cluster, report, now) + _gone(cluster, *found, report, now, whole)


def is_to_end(run: Attempt) -> bool:
    """Whether it is decided that the attempt ends, so that a part may be gone without an end."""
    return run.verdict is not None or bool(run.refused) or find_kill(run) is not None


def _gone(cluster: Cluster, job: Job, run: Attempt, part: Part, report: GoneReport, now: float, whole: bool) -> list[ev.Event]:
    host = part.host
    if part.leaving:
        return _leaves(cluster, job, part, part.end, True, now)
    never_began = part.state is PartState.OFFERED and run.is_ending
    if part.end is None and not is_to_end(run) and not never_began:
        if len(run.parts) > 1 and not is_released(run):
            return _refused(cluster, job, run, part, "gone", "the host no longer had it", now)
        return _ended(cluster, job, run, part, End(at=now, lost=f"host {host} no longer had it"), True, now)
    event = ev.PartGone(at=now, key=job.key, attempt=run.number, host=host, post=report.post)
    if not whole:
        return [event]
    run = with_part(run, host, state=PartState.GONE, post=report.post)
    return [event, *after_last_part(cluster, replace(job, run=run), now)]


def unknown(cluster: Cluster, job: Job, run: Attempt, part: Part, now: float) -> list[ev.Event]:
    """A host that reconnects no longer knows a part: the gang is over, or the part is lost."""
    if part.state in OVER:
        return []
    if len(run.parts) > 1 and not is_released(run):
        return _refused(cluster, job, run, part, "gone", f"host {part.host} no longer has it prepared", now)
    end = End(at=now, lost=f"host {part.host} no longer has it: the host or its starter was restarted")
    return _ended(cluster, job, run, part, end, True, now)


def fenced(cluster: Cluster, key: int, host: str, now: float) -> list[ev.Event]:
    """The lease of a silent host has expired: its part can no longer run there."""
    job = cluster.jobs.rows[key]
    assert job.run is not None
    run = job.run
    part = next(part for part in run.parts if part.host == host)
    lost = End(at=now, lost=f"host {host} was lost")
    if run.elastic and _goes_on_without(job, cluster.specs.rows[job.spec], part, lost):
        return _leaves(cluster, job, part, lost, True, now)
    event = ev.PartFenced(at=now, key=key, attempt=run.number, host=host)
    return [event, *after_last_part(cluster, replace(job, run=with_fence(run, host, now)), now)]


# -- a host leaves -------------------------------------------------------------------------------------------------------


def _goes_on_without(job: Job, spec: Spec, part: Part, end: End) -> bool:
    """Whether the attempt continues without a part that has ended like this."""
    if part.leaving:
        return True
    return _was_lost(part, end) and may_lose(job, spec, part.host)


def _was_lost(part: Part, end: End) -> bool:
    # a rank below 0: its shepherd ended it because the link to the first host was lost
    unlinked = bool(end.status) and end.first_rank < 0 and bool(end.first_reason)
    return bool(end.lost) or unlinked or (part.grown and part.state is not PartState.RUNNING)


def _leaves(cluster: Cluster, job: Job, part: Part, end: End | None, gone: bool, now: float) -> list[ev.Event]:
    """A host leaves the attempt, which may complete a resize or end the attempt."""
    run = job.run
    assert run is not None
    events: list[ev.Event] = []
    why = end.lost or end.first_reason if end is not None else ""
    began = not part.grown or part.state is PartState.RUNNING
    if not part.leaving and (began or not gone):
        shrink = shrink_now(job, run, part, why, now)
        events.append(shrink)
        run = shrank(run, shrink)
    if part.end is None and end is not None and not gone:
        events.append(ev.PartEnded(at=now, key=job.key, attempt=run.number, host=part.host, end=end))
        run = with_part(run, part.host, end=end)
    if gone:
        event = ev.PartLeft(at=now, key=job.key, attempt=run.number, host=part.host, end=end, why=why)
        events.append(event)
        run = left(run, event)
    grown = _grown(job.key, run, now)
    run = replace(run, resize=None) if grown else run
    return events + grown + after_last_part(cluster, replace(job, run=run), now)


def shrink_now(job: Job, run: Attempt, part: Part, why: str, now: float) -> ev.JobShrank:
    """A forced shrink, as a host is lost; the job is notified."""
    return ev.JobShrank(
        at=now,
        key=job.key,
        attempt=run.number,
        number=run.resizes + 1,
        parts=(portion(part, part.slots),),
        forced=True,
        why=why,
    )


def _grown(key: int, run: Attempt, now: float) -> list[ev.Event]:
    """A growth whose hosts all run is complete, unless a notification command must run first."""
    if run.resize is None or run.resize.command or not is_complete(run):
        return []
    return [ev.JobResized(at=now, key=key, attempt=run.number, number=run.resize.number)]
