"""bchkpnt: ask a running job for a checkpoint."""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.bulk import Chunking, decide_each
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import decides
from lavad.core.decide.base.specs import spec_number
from lavad.core.decide.control.control import NOT_STARTED, not_started
from lavad.core.job.checkpoints import PERIOD
from lavad.core.job.job import Job, PendingSignal
from lavad.core.lang.asks import Caller, Checkpoint, Refused
from lavad.core.lang.states import STARTED, SignalKind, TermReason

MAX_PERIOD = 10**6


@decides(Checkpoint)
def checkpoint(cluster: Cluster, ask: Checkpoint, caller: Caller, now: float) -> Decided:
    """One checkpoint now; a second while one is under way is refused."""
    if ask.period > MAX_PERIOD:
        raise Refused(f"{ask.period}: Illegal checkpoint period")
    specs: list[ev.Event] = []

    def on_job(job: Job, now: float) -> list[ev.Event] | str:
        spec = cluster.specs.rows[job.spec]
        if spec.checkpoint is None:
            return "Job is not checkpointable"
        if job.state not in STARTED or job.run is None:
            return NOT_STARTED
        if any(pending.kind is SignalKind.CHECKPOINT for pending in job.run.pending_signals):
            return "A checkpoint of the job is under way already"
        reason = TermReason.TERM_CHKPNT if ask.kill else TermReason.NONE
        period = ask.period * 60 if ask.period >= 0 else -1
        pending = PendingSignal(
            kind=SignalKind.CHECKPOINT, at=now, by=caller.user, kill_after=ask.kill, reason=reason, period=period
        )
        events: list[ev.Event] = []
        if period >= 0:
            changed = replace(spec, checkpoint=replace(spec.checkpoint, period=period, auto=False))
            events.append(
                ev.JobModified(
                    at=now,
                    key=job.key,
                    spec=spec_number(cluster, changed, specs, now),
                    name=job.name,
                    by=caller.user,
                    changes=(f"Checkpoint period changes to : {ask.period} min.",),
                    amended=((PERIOD, str(period)),),  # told again to an agent that has been started again
                )
            )
        return [*events, ev.SignalRequested(at=now, key=job.key, pending=pending)]

    return decide_each(cluster, ask.jobs, caller, now, on_job, not_started, Chunking(before=specs))
