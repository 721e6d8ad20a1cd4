"""What agents say of attempts: prepared, started, refused, ended, gone. A report of another attempt than the current is dropped.

An attempt ends when every part is over; then the job is finished, or waits again.
"""

from __future__ import annotations

import os

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.report import leave, suspect
from lavad.core.events.part import with_end, with_fence, with_part
from lavad.core.job.job import Attempt, End, Job, Part, Wish
from lavad.core.job.resize import uid_of
from lavad.core.job.roles import delay_of
from lavad.core.job.spec import Spec
from lavad.core.lang.states import OVER, JobState, PartState, TermReason
from lavad.core.rules.effects import is_released
from lavad.core.site.pend_reason import PendReason
from lavad.core.site.requeue_exit import ExitRule, exit_rule

_USERS_FAULT = {
    "no_user": TermReason.TERM_OTHER,
    "cwd": TermReason.TERM_CWD_NOTEXIST,
    "output": TermReason.TERM_OTHER,
    "input": TermReason.TERM_OTHER,
    "secret": TermReason.TERM_OTHER,
    "pre_abort": TermReason.TERM_OTHER,
}
"""Refusals that every host would repeat: the job ends with the reason, instead of failing for ever."""
_REFUSED = {"cwd": 2}
"""Exit codes of what could not start; LSF documents this one (bsub -cwd)."""
MAX_BACKOFF = 300.0


def find_part(cluster: Cluster, key: int, uid: str, host: str) -> tuple[Job, Attempt, Part] | None:
    """The live part that a report is about."""
    job = cluster.jobs.rows.get(key)
    if job is None or job.run is None:
        return None
    for part in job.run.parts:
        if part.host == host and part.state not in OVER and uid_of(job.run, part) == uid:
            return job, job.run, part
    return None


def prepared(cluster: Cluster, key: int, uid: str, host: str, address: str, now: float, door: str = "") -> list[ev.Event]:
    """A host is ready for its part; when all are, and none is silent, the gang is told to go."""
    found = find_part(cluster, key, uid, host)
    if found is None or found[2].state is not PartState.OFFERED:
        return []
    job, run, part = found
    events: list[ev.Event] = [ev.PartPrepared(at=now, key=key, attempt=run.number, host=host, address=address, door=door)]
    if part.grown:
        return events if part.leaving else [*events, ev.GangReleased(at=now, key=key, attempt=run.number)]
    if job.state is not JobState.UNKWN and may_go(with_part(run, host, state=PartState.PREPARED)):
        events.append(ev.GangReleased(at=now, key=key, attempt=run.number))
    return events


def may_go(run: Attempt) -> bool:
    """Whether a gang waits for nothing but to be told to go."""
    ready = all(part.state is PartState.PREPARED for part in run.parts)
    return ready and not run.refused and run.verdict is None


def started(cluster: Cluster, key: int, uid: str, host: str, pid: int, at: float, cwd: str, now: float) -> list[ev.Event]:
    """A part runs."""
    found = find_part(cluster, key, uid, host)
    if found is None or found[2].state is PartState.RUNNING or found[2].end is not None:
        return []
    job, run, _ = found
    events: list[ev.Event] = [ev.PartStarted(at=now, key=key, attempt=run.number, host=host, pid=pid, started=at, cwd=cwd)]
    if run.resize is not None:
        events += leave.settled(job.key, with_part(run, host, state=PartState.RUNNING), now)
    return events


def stopped(cluster: Cluster, key: int, uid: str, host: str, is_stopped: bool, now: float) -> list[ev.Event]:
    """A part's processes are stopped, or go on."""
    found = find_part(cluster, key, uid, host)
    if found is None or found[2].stopped == is_stopped:
        return []
    return [ev.PartStopped(at=now, key=key, attempt=found[1].number, host=host, stopped=is_stopped)]


def granted(cluster: Cluster, key: int, uid: str, host: str, wish: int, ok: bool, why: str, now: float) -> list[ev.Event]:
    """A wish was carried out on a host; a kill stays until the end shows it."""
    found = find_part(cluster, key, uid, host)
    if found is None:
        return []
    _, run, _ = found
    for asked in run.wishes:
        if asked.number == wish and asked.kind not in ("kill", "requeue", "migrate"):
            return [ev.WishGranted(at=now, key=key, attempt=run.number, number=wish, ok=ok, why=why)]
    return []


def checkpointed(cluster: Cluster, key: int, uid: str, host: str, generation: int, now: float) -> list[ev.Event]:
    """A whole checkpoint is on disk."""
    found = find_part(cluster, key, uid, host)
    if found is None or found[1].checkpoint >= generation:
        return []
    return [ev.CheckpointMade(at=now, key=key, attempt=found[1].number, generation=generation)]


def resized(cluster: Cluster, key: int, uid: str, host: str, number: int, ok: bool, why: str, now: float) -> list[ev.Event]:
    """The notification command of a resize has ended on the first host."""
    found = find_part(cluster, key, uid, host)
    return [] if found is None else leave.notified(found[0], number, ok, why, now)


def refused(cluster: Cluster, key: int, uid: str, host: str, code: str, why: str, now: float) -> list[ev.Event]:
    """A host would not start its part; the gang is over, and waits again or ends with the reason."""
    found = find_part(cluster, key, uid, host)
    if found is None:
        return []
    job, run, part = found
    if part.end is not None or is_released(run):
        end = End(at=now, lost=f"host {host} would not go on with it: {why}")
        return ended(cluster, key, uid, host, end, True, now)
    event = ev.PartRefused(at=now, key=key, attempt=run.number, host=host, code=code, why=why)
    run = replace(with_part(run, host, state=PartState.GONE), refused=why, refused_code=code)
    return [event, *_over(cluster, replace(job, run=run, avoid=(*job.avoid, host)), now)]


def ended(cluster: Cluster, key: int, uid: str, host: str, end: End, gone: bool, now: float) -> list[ev.Event]:
    """A part's job process ended. One that its lease ended is lost: the job would have gone on."""
    if end.first_reason == "lease" and not end.lost:
        end = replace(end, lost=f"host {host} did not hear the master for the lease of the job")
    found = find_part(cluster, key, uid, host)
    if found is None:
        return []
    job, run, part = found
    if run.elastic and leave.goes(job, cluster.specs.rows[job.spec], part, end):
        return _leaves(cluster, job, part, end, gone, now)
    if len(run.parts) == 1 and gone and part.end is None and not run.spent[2]:
        return _over(cluster, replace(job, run=_final(run, part, end)), now, end)
    events: list[ev.Event] = []
    if part.end is None:
        events.append(ev.PartEnded(at=now, key=key, attempt=run.number, host=host, end=end))
        run = with_end(run, host, end)
    if gone:
        events.append(ev.PartGone(at=now, key=key, attempt=run.number, host=host))
        run = with_part(run, host, state=PartState.GONE)
    return events + _over(cluster, replace(job, run=run), now)


def _final(run: Attempt, part: Part, end: End) -> Attempt:
    return replace(run, verdict=run.verdict if run.judged else end, parts=(replace(part, end=end, state=PartState.GONE),))


def gone(cluster: Cluster, key: int, uid: str, host: str, now: float, post: int = 0) -> list[ev.Event]:
    """Nothing of a part is left on its host. Without an end before it, a part that may have run is lost."""
    found = find_part(cluster, key, uid, host)
    if found is None:
        return []
    job, run, part = found
    if part.leaving:
        return _leaves(cluster, job, part, part.end, True, now)
    if run.verdict is None and part.end is None and not run.refused and _killed(run) is None:
        if len(run.parts) > 1 and not is_released(run):
            return refused(cluster, key, uid, host, "gone", "the host no longer had it", now)
        return ended(cluster, key, uid, host, End(at=now, lost=f"host {host} no longer had it"), True, now)
    event = ev.PartGone(at=now, key=key, attempt=run.number, host=host, post=post)
    return [event, *_over(cluster, replace(job, run=with_part(run, host, state=PartState.GONE, post=post)), now)]


def fenced(cluster: Cluster, key: int, host: str, now: float) -> list[ev.Event]:
    """The lease of a silent host is over: its part can no longer run there."""
    job = cluster.jobs.rows[key]
    assert job.run is not None
    run = job.run
    part = next(part for part in run.parts if part.host == host)
    lost = End(at=now, lost=f"host {host} was lost")
    if run.elastic and leave.goes(job, cluster.specs.rows[job.spec], part, lost):
        return _leaves(cluster, job, part, lost, True, now)
    event = ev.PartFenced(at=now, key=key, attempt=run.number, host=host)
    return [event, *_over(cluster, replace(job, run=with_fence(run, host, now)), now)]


def _leaves(cluster: Cluster, job: Job, part: Part, end: End | None, gone: bool, now: float) -> list[ev.Event]:
    """A host leaves the attempt, which may be the last thing that it waited for."""
    events, run = leave.leaves(job, part, end, gone, now)
    return events + _over(cluster, replace(job, run=run), now)


def _is_lost(part: Part) -> bool:
    """Whether its host was lost before it had ended there."""
    return part.state is PartState.FENCED if part.end is None else bool(part.end.lost)


def _killed(run: Attempt) -> Wish | None:
    return next((wish for wish in run.wishes if wish.kind == "kill"), None)


def _over(cluster: Cluster, job: Job, now: float, end: End | None = None) -> list[ev.Event]:
    """If every part is over: how the job goes on."""
    run = job.run
    assert run is not None
    if any(part.state not in OVER for part in run.parts):
        return []
    spec = cluster.specs.rows[job.spec]
    again = _again(cluster, job, run, spec, now, end)
    if again is not None:
        return [again]
    return [_finish(job, run, now, end, exit_rule(cluster.conf, spec))]


def _again(cluster: Cluster, job: Job, run: Attempt, spec: Spec, now: float, end: End | None) -> ev.JobRequeued | None:
    """The event that lets the job wait again, if it is to."""
    if _killed(run) is not None:
        return None
    verdict = run.verdict
    done = verdict is not None and not verdict.lost and verdict.status == 0
    for wish in run.wishes:
        if done and (wish.kind == "requeue" or spec.checkpoint is None):
            break  # it was done before the wish came to it
        if wish.kind == "requeue":
            return ev.JobRequeued(at=now, key=job.key, reason=PendReason.JOB_REQUEUED, state=wish.state, end=end, top=True,
                                  avoid=suspect.hung(run), why="requeued by " + wish.by)  # fmt: skip
        if wish.kind == "migrate":
            return ev.JobRequeued(at=now, key=job.key, reason=PendReason.JOB_MIG, end=end, why="migrated by " + wish.by,
                                  avoid=tuple(part.host for part in run.parts))  # fmt: skip
    if run.again:
        return ev.JobRequeued(at=now, key=job.key, reason=PendReason.JOB_REQUEUED, why=run.again, end=end,
                              not_before=now + delay_of(job.retries - 1))  # fmt: skip
    if run.refused:
        if run.refused_code in _USERS_FAULT:
            return None
        return _start_again(cluster, job, run, spec, now, end)
    if verdict is None:
        return None
    lost = tuple(part for part in run.parts if _is_lost(part))
    if verdict.lost or (lost and verdict.status):
        restarts = spec.rerunnable or spec.checkpoint is not None
        return ev.JobRequeued(at=now, key=job.key, reason=PendReason.JOB_REQUEUED, avoid=suspect.lost(run), end=end,
                              why=verdict.lost or f"host {lost[0].host} was lost") if restarts else None  # fmt: skip
    exit_code = os.waitstatus_to_exitcode(verdict.status)
    rule = exit_rule(cluster.conf, spec)
    often = rule.most is not None and job.requeues >= rule.most
    if verdict.limit is TermReason.NONE and rule.requeue.wants(exit_code) and not often:
        barred = tuple(part.host for part in run.parts) if rule.requeue.excludes(exit_code) else ()
        # the first time at once, then ever later: a job that always ends so must not keep the cluster busy with itself
        return ev.JobRequeued(
            at=now,
            key=job.key,
            reason=PendReason.JOB_REQUEUED,
            end=end,
            requeues=job.requeues + 1,
            barred=barred,
            avoid=suspect.first_failed(run, spec),
            not_before=now + delay_of(job.requeues),
            why=f"Requeued job is waiting for rescheduling;(exit code {exit_code})",
        )
    return None


def _start_again(cluster: Cluster, job: Job, run: Attempt, spec: Spec, now: float, end: End | None) -> ev.JobRequeued | None:
    """After a start that failed: later and elsewhere; held, or no more, where the queue says so of pre-execution."""
    state, delay = JobState.PEND, min(MAX_BACKOFF, 2.0 ** min(job.failures, 8))
    reason, why = PendReason.JOB_START_FAIL, run.refused
    queue = cluster.queue_conf.get(spec.queue)
    if run.refused_code == "pre_exec":
        reason = PendReason.JOB_PRE_EXEC
        if queue is not None and queue.local_max_preexec_retry is not None and job.failures >= queue.local_max_preexec_retry:
            if queue.local_max_preexec_retry_action == "EXIT":
                return None
            state, why = JobState.PSUSP, f"{why}: it was retried LOCAL_MAX_PREEXEC_RETRY times"
    return ev.JobRequeued(at=now, key=job.key, reason=reason, why=why, failures=job.failures + 1, state=state,
                          not_before=now + delay, avoid=tuple(dict.fromkeys(job.avoid)), end=end)  # fmt: skip


def _finish(job: Job, run: Attempt, now: float, end: End | None, rule: ExitRule) -> ev.JobFinished:
    verdict = run.verdict
    killed = _killed(run)
    if verdict is None:
        reason = killed.reason if killed is not None else _USERS_FAULT.get(run.refused_code, TermReason.TERM_OTHER)
        status = 9 if killed else _REFUSED.get(run.refused_code, 255) << 8
        return ev.JobFinished(
            at=now, key=job.key, state=JobState.EXIT, status=status, reason=reason,
            why=run.refused or (killed.said if killed is not None else ""), end=end,
        )  # fmt: skip
    reason, why = verdict.limit, f"the job was lost: {verdict.lost}" if verdict.lost else ""
    if reason is TermReason.NONE and killed is not None and verdict.status:
        reason = killed.reason
    if verdict.lost:
        reason = TermReason.TERM_UNKNOWN
    elif verdict.first_rank >= 0 and verdict.status:
        why = verdict.first_reason if run.tasks else f"rank {verdict.first_rank} failed first: {verdict.first_reason}"
    elif killed is not None and reason is killed.reason:
        why = killed.said
    good = verdict.status == 0 or rule.is_success(os.waitstatus_to_exitcode(verdict.status))
    ok = good and not verdict.lost and reason is TermReason.NONE
    status = verdict.status if not verdict.lost else 255 << 8
    if killed is not None and killed.done and not verdict.lost:
        ok, status, reason, why = True, 0, TermReason.NONE, ""  # bkill -d: whoever waits for it goes on
    state = JobState.DONE if ok else JobState.EXIT
    post = next((part.post or (part.end.post if part.end is not None else 0) for part in run.parts), 0)
    return ev.JobFinished(at=now, key=job.key, state=state, status=status, reason=reason, why=why, end=end, post=post)
