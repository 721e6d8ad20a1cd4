"""brequeue -d and -e: jobs that have finished wait again, under their ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.asks import Caller, Requeue
from lavad.core.cluster import Cluster
from lavad.core.decide.control import DENIED
from lavad.core.decide.decided import Decided
from lavad.core.decide.submit import spec_number
from lavad.core.depend import MET
from lavad.core.ids import job_of, show
from lavad.core.job import Array, Job
from lavad.core.pend_reason import PendReason
from lavad.core.rights import may_control
from lavad.core.spec import Spec
from lavad.core.states import FINAL, JobState


class Finished(msgspec.Struct):
    """What the store has of them."""

    jobs: Sequence[Job] = ()
    arrays: Mapping[int, Array] = {}
    specs: Mapping[int, Spec] = {}


def revive(cluster: Cluster, ask: Requeue, finished: Finished, caller: Caller, now: float, decided: Decided) -> None:
    """Add to what was decided about live jobs the events and answers about these."""
    wanted = {JobState[name] for name in ask.states} & FINAL
    answered = {result["id"] for result in decided.answer["results"] if result["ok"]}
    for job in finished.jobs:
        shown = show(job.key)
        if job.state not in wanted or job.key in cluster.jobs.rows or shown in answered:
            continue
        spec = finished.specs[job.spec]
        why = "" if may_control(cluster.conf, spec.user, spec.queue, caller) else DENIED
        if not why and spec.queue not in cluster.queue_conf:
            why = f"{spec.queue}: No such queue"
        _answer(decided, shown, job, why)
        if not why:
            decided.events.append(_revived(cluster, ask, job, finished, caller, now, decided.events))


def _answer(decided: Decided, shown: str, job: Job, why: str) -> None:
    """The line about a job; it takes the place of the one that says that the job is no longer live."""
    results = decided.answer["results"]
    names = {shown, str(job_of(job.key))}
    results[:] = [result for result in results if result["ok"] or result["id"] not in names]
    results.append({"id": shown, "ok": not why, "why": why})
    decided.answer.pop("none", None)


def _revived(
    cluster: Cluster, ask: Requeue, job: Job, finished: Finished, caller: Caller, now: float, events: list[ev.Event]
) -> ev.JobRevived:
    number = spec_number(cluster, finished.specs[job.spec], events, now)
    state = JobState.PSUSP if ask.hold else JobState.PEND
    again = replace(
        job, spec=number, state=state, since=now, run=None, outcome=None, reason=int(PendReason.JOB_REQUEUED), blocked=MET,
        position=0.0, stand=0.0, avoid=(), barred=(), failures=0, not_before=0.0, lent=0, lent_all=False, promised=(),
    )  # fmt: skip
    array = None
    if job.key >> 32 and job_of(job.key) not in cluster.arrays.rows:
        old = finished.arrays[job_of(job.key)]
        array = replace(old, spec=spec_number(cluster, finished.specs[old.spec], events, now))
    return ev.JobRevived(at=now, key=job.key, job=again, array=array, done=job.state is JobState.DONE, by=caller.user)
