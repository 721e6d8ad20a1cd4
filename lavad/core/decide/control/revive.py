"""Commands about finished jobs: brequeue -d and -e requeue them under their ids, brestart submits them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.charge import gpus_with_attempt
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.bulk import AT_ONCE
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.room import TOO_MANY, has_room
from lavad.core.decide.base.select import FINISHED
from lavad.core.decide.base.specs import spec_number
from lavad.core.decide.control.control import newest_live, requeue
from lavad.core.decide.submit.restart import RestartSource
from lavad.core.job.checkpoints import holds
from lavad.core.job.depend import MET
from lavad.core.job.job import Array, Job
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Caller, Refused, Requeue, Submit
from lavad.core.lang.ids import job_of, key_of, show
from lavad.core.lang.states import FINAL, JobState
from lavad.core.rules.copy_hosts import name_of
from lavad.core.site.pend_reason import PendReason
from lavad.core.site.rights import DENIED, why_not_control
from proto.answers import Answer, Result


class FinishedJobs(msgspec.Struct):
    """Finished jobs from the store, with their arrays and specs."""

    jobs: Sequence[Job] = ()
    arrays: Mapping[int, Array] = {}
    specs: Mapping[int, Spec] = {}


def requeue_all(cluster: Cluster, ask: Requeue, finished: FinishedJobs, caller: Caller, now: float) -> Decided:
    """brequeue of live and finished jobs. Where no id is given, of the job alone that was submitted last."""
    live = "" if ask.jobs.ids else newest_live(cluster, ask, caller)
    if live and finished.jobs:
        newest = int(live.partition("[")[0])
        if job_of(finished.jobs[-1].key) > newest:
            return revive(cluster, ask, finished, caller, now, Decided(answer={"results": []}))
        finished = replace(finished, jobs=[job for job in finished.jobs if job_of(job.key) == newest])
    return revive(cluster, ask, finished, caller, now, requeue(cluster, ask, caller, now))


def revive(cluster: Cluster, ask: Requeue, finished: FinishedJobs, caller: Caller, now: float, decided: Decided) -> Decided:
    """Add finished jobs to a decision about live ones: events and answers of both, in chunks."""
    if decided.more is not None:
        more = decided.more
        decided.more = lambda cluster, now: revive(cluster, ask, finished, caller, now, more(cluster, now))
        return decided
    wanted = {JobState[name] for name in ask.states} & FINAL
    answered = {result["id"] for result in decided.answer["results"] if result["ok"]}
    due = [job for job in finished.jobs if job.state in wanted and show(job.key) not in answered]
    return _part(cluster, ask, replace(finished, jobs=due), caller, now, decided, [], frozenset())


def _part(
    cluster: Cluster,
    ask: Requeue,
    finished: FinishedJobs,
    caller: Caller,
    now: float,
    decided: Decided,
    lines: list[Result],
    begun: frozenset[int],
) -> Decided:
    """The next chunk; ``lines``: answer lines so far; ``begun``: arrays of which elements are pending again."""
    lines = list(lines)
    specs: list[ev.Event] = []
    events: list[ev.Event] = []
    for job in finished.jobs[:AT_ONCE]:
        if job.key in cluster.jobs.rows:
            continue
        spec = finished.specs[job.spec]
        why = why_not_control(cluster.conf, spec, caller)
        if not why and spec.queue not in cluster.queue_conf:
            why = f"{spec.queue}: No such queue"
        if not why and job_of(job.key) in begun and job_of(job.key) not in cluster.arrays.rows:
            why = FINISHED  # earlier elements were ended meanwhile, so that the array's record is out of date
        if not why and not has_room(cluster, spec.user, AT_ONCE):
            why = TOO_MANY
        lines.append({"id": show(job.key), "ok": not why, "why": why})
        if not why:
            events.append(_revived(cluster, ask, job, finished, caller, now, specs))
    answer = decided.answer
    begun |= {job_of(event.key) for event in events if isinstance(event, ev.JobRevived) and event.key >> 32}
    rest = replace(finished, jobs=finished.jobs[AT_ONCE:])
    if rest.jobs:
        left = Decided(answer=answer)
        return Decided(
            events=[*decided.events, *specs, *events],
            more=lambda cluster, now: _part(cluster, ask, rest, caller, now, left, lines, begun),
        )
    return Decided(events=[*decided.events, *specs, *events], answer=_joined(answer, lines))


def _joined(answer: Answer, lines: list[Result]) -> Answer:
    """The answer with these lines in place of those that say that a job is no longer live."""
    if not lines:
        return answer
    names = {line["id"] for line in lines} | {line["id"].partition("[")[0] for line in lines}
    kept = [line for line in answer["results"] if line["ok"] or line["id"] not in names]
    return {"results": [*kept, *lines]}


def _revived(
    cluster: Cluster, ask: Requeue, job: Job, finished: FinishedJobs, caller: Caller, now: float, events: list[ev.Event]
) -> ev.JobRevived:
    number = spec_number(cluster, finished.specs[job.spec], events, now)
    state = JobState.PSUSP if ask.hold else JobState.PEND
    again = replace(
        job,
        spec=number,
        state=state,
        since=now,
        run=None,
        gpus_before=gpus_with_attempt(job, job.run, job.since),
        outcome=None,
        reason=int(PendReason.JOB_REQUEUED),
        blocked=MET,
        position=0.0,
        queue_time=0.0,
        avoid=(),
        barred=(),
        barred_at=(),
        failures=0,
        failed_why="",
        not_before=0.0,
        preempted_for=0,
        preempted_for_good=False,
        promised=(),
        stopper=caller.user if ask.hold else "",
    )
    array = None
    if job.key >> 32 and job_of(job.key) not in cluster.arrays.rows:
        old = finished.arrays[job_of(job.key)]
        array = replace(old, spec=spec_number(cluster, finished.specs[old.spec], events, now))
    return ev.JobRevived(at=now, key=job.key, job=again, array=array, done=job.state is JobState.DONE, by=caller.user)


def find_restart_source(
    cluster: Cluster, ask: Submit, caller: Caller, finished: FinishedJobs, text: JobText | None
) -> RestartSource:
    """The finished job that brestart names; raises Refused."""
    key = key_of(ask.restart_of, ask.restart_index)
    number = show(key)
    live = cluster.jobs.rows.get(key)
    found = live or next((job for job in finished.jobs if job.key == key), None)
    if found is None or text is None:
        if key in finished.arrays or key in cluster.arrays.rows:
            raise Refused(f"{number}: Job is an array: name one of its elements, {number}[INDEX]")
        raise Refused(f"{number}: No matching job found")
    spec = cluster.specs.rows[found.spec] if live is not None else finished.specs[found.spec]
    if spec.user != caller.user:
        raise Refused(DENIED)
    if live is not None:
        raise Refused(f"{number}: Job has not finished yet")
    if spec.checkpoint is None:
        raise Refused("Checkpoint log is not found or is corrupted")
    made = found.checkpoints.generations if found.checkpoints is not None else ()
    newest = max((one.number for one in made if one.staged), default=-1)
    held = tuple((host, tuple(numbers)) for host, numbers in holds(found.checkpoints).items())
    return RestartSource(spec, text, found.name, newest, name_of(found, spec.user), held)
