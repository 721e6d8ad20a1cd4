"""bchkpnt: ask a running job for a checkpoint."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.asks import Caller, Checkpoint, Refused
from lavad.core.cluster import Cluster
from lavad.core.decide.control import NOT_STARTED, each
from lavad.core.decide.decided import Decided
from lavad.core.job import Job, Wish
from lavad.core.states import STARTED, TermReason


def checkpoint(cluster: Cluster, ask: Checkpoint, caller: Caller, now: float) -> Decided:
    """One checkpoint now; a second while one is under way is refused."""

    if ask.period >= 0:
        raise Refused("option -p is not supported by lava")

    def on_job(job: Job) -> list[ev.Event] | str:
        if cluster.specs.rows[job.spec].checkpoint is None:
            return "Job is not checkpointable"
        if job.state not in STARTED or job.run is None:
            return NOT_STARTED
        if any(wish.kind == "checkpoint" for wish in job.run.wishes):
            return "A checkpoint of the job is under way already"
        reason = TermReason.TERM_CHKPNT if ask.kill else TermReason.NONE
        wish = Wish(kind="checkpoint", at=now, by=caller.user, kill_after=ask.kill, reason=reason)
        return [ev.JobWished(at=now, key=job.key, wish=wish)]

    return each(cluster, ask.jobs, caller, on_job, lambda array, elements: NOT_STARTED)
