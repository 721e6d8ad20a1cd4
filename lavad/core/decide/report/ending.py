"""End of an attempt, when every part is over: the job is requeued or finished."""

from __future__ import annotations

import os
import re

from msgspec.structs import replace

from config.model.queue import ApplicationConfig, QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.report.array_ends import find_kill
from lavad.core.decide.report.clocks import ended_unheard
from lavad.core.decide.report.crashes import after_crash, why_given_up
from lavad.core.decide.report.limited import after_memory_limit, after_run_limit, learnt_of, why_no_more_memory
from lavad.core.job.job import Attempt, End, Job, Part, PendingSignal
from lavad.core.job.reports import UNSENDABLE
from lavad.core.job.roles import delay_of, exit_code, starts_before
from lavad.core.job.spec import Spec
from lavad.core.lang.states import OVER, WAITING, HangState, HostState, JobState, PartState, SignalKind, TermReason
from lavad.core.rules.effects import LOST_STATUS, said_by, told_apart
from lavad.core.site.pend_reason import PendReason
from lavad.core.site.requeue_exit import ExitRule, exit_rule

_FINAL = frozenset({"not_allowed", "pre_abort", UNSENDABLE})
"""Refusals that every host would repeat: the job exits with the reason instead of being retried for ever."""
_FILES = frozenset({"cwd", "output", "input", "secret", "checkpoint"})
"""Refusals for what a user's file is not, or for what the host's mounts are not: a second host tells which."""
_TRIES = 5
"""Failed starts of a job after which the one host that it can use is believed."""
NO_USER = "no_user"
"""The host has no such user. Whether the job can run elsewhere the master's own host says (``without_user``)."""
_REFUSED = {"cwd": 2}
"""Exit codes of jobs that could not start; LSF documents this one (bsub -cwd)."""
_PER_HOST = "torchrun"
"""The launch that has one rank a host."""
MAX_BACKOFF = 300.0
"""Seconds at most between two starts of a job whose starts fail."""


def after_last_part(cluster: Cluster, job: Job, now: float, end: End | None = None) -> list[ev.Event]:
    """Events once every part is over, none before. ``end``: end of the only part, where it has no event of its own."""
    run = job.run
    assert run is not None
    # the last parts first, as hosts report more or less in their order
    if any(part.state not in OVER for part in reversed(run.parts)):
        return []
    spec = cluster.specs.rows[job.spec]
    run = _with_cause(run, spec)
    rule = exit_rule(cluster.conf.app_conf.get(spec.app), cluster.queue_conf.get(spec.queue), spec)
    again = _again(cluster, job, run, spec, now, end, rule)
    if again is not None:
        return [replace(again, ended=ended_unheard(cluster, run, end, now))]
    if not spec.memory_auto or find_kill(run) is not None:
        return [_finish(cluster, job, run, now, end, rule)]
    learnt = learnt_of(job, run, spec, now)
    if more := after_memory_limit(cluster, job, run, spec, now, end):
        return [*learnt, *more]
    finished = _finish(cluster, job, run, now, end, rule)
    return [*learnt, replace(finished, why=finished.why or why_no_more_memory(run, spec))]


def _with_cause(run: Attempt, spec: Spec) -> Attempt:
    """The verdict, which is the first part's, with what only another host can say: the limit that the job reached there, or
    that the first part was only ended as that host had no link to it."""
    verdict = run.verdict
    if verdict is None or verdict.lost or run.judged or verdict.limit is not TermReason.NONE or find_kill(run) is not None:
        return run
    if (limit := _limit_of_others(run, spec)) is not TermReason.NONE:
        return replace(run, verdict=replace(verdict, limit=limit))
    if not os.WIFSIGNALED(verdict.status) or verdict.first_rank >= 0 or verdict.first_reason:
        return run
    for part in run.parts[1:]:
        if part.end is not None and told_apart(part.end):
            return replace(run, verdict=replace(verdict, status=part.end.status, first_reason=said_by(part)))
    return run


def _limit_of_others(run: Attempt, spec: Spec) -> TermReason:
    """The limit that ended the job on another host than its first: of the rank that failed first, where one did."""
    failed = first_failed_host(run, spec)
    others = (part for part in run.parts[1:] if part.end is not None and (not failed or part.host in failed))
    return next((part.end.limit for part in others if part.end and part.end.limit is not TermReason.NONE), TermReason.NONE)


def _again(
    cluster: Cluster, job: Job, run: Attempt, spec: Spec, now: float, end: End | None, rule: ExitRule
) -> ev.JobRequeued | None:
    """The event that requeues the job, or None."""
    if find_kill(run) is not None:
        return None
    if (asked := _asked(job, run, spec, now, end)) is not None:
        return asked
    if run.again:
        return _requeued(job, now, end, run.again, not_before=now + delay_of(starts_before(spec, run, job.retries)))
    if run.refused:
        return None if _is_users_fault(cluster, job, run) else _start_again(cluster, job, run, spec, now, end)
    if run.verdict is None:
        return None
    can_again = spec.rerunnable or spec.checkpoint is not None
    lost = next((part.host for part in run.parts if _is_lost(part)), "")
    if run.verdict.lost or (lost and run.verdict.status):
        why = run.verdict.lost or f"host {lost} was lost"
        return _requeued(job, now, end, why, lost_hosts(run)) if can_again else None
    if run.verdict.status and can_again and (broken := _broken_gpus(run, end)):
        return _requeued(job, now, end, broken)
    to_bottom = cluster.conf.params.lsb_requeue_to_bottom
    return (
        _after_exit_value(job, run, spec, now, end, rule, now if to_bottom else 0.0)
        or after_run_limit(cluster, job, run, spec, now, end)
        or (after_crash(cluster, job, run, now, end) if spec.checkpoint is not None else None)
    )


def _requeued(
    job: Job, now: float, end: End | None, why: str, avoid: tuple[str, ...] = (), not_before: float = 0.0
) -> ev.JobRequeued:
    """At its place, for a reason that is not the job's own."""
    reason = PendReason.JOB_REQUEUED
    return ev.JobRequeued(at=now, key=job.key, reason=reason, why=why, avoid=avoid, end=end, not_before=not_before)


def _broken_gpus(run: Attempt, end: End | None) -> str:
    """Which GPUs of the job broke while it ran, and how."""
    ends = [end, *(part.end for part in run.parts)]
    return "; ".join(dict.fromkeys(one.gpu_fault for one in ends if one is not None and one.gpu_fault))


def _asked(job: Job, run: Attempt, spec: Spec, now: float, end: End | None) -> ev.JobRequeued | None:
    """brequeue or bmig, or the master as a GPU of the job broke: then it keeps its place."""
    verdict = run.verdict
    done = verdict is not None and not verdict.lost and verdict.status == 0
    for pending in run.pending_signals:
        if done and (pending.kind is SignalKind.REQUEUE or spec.checkpoint is None):
            return None  # it had ended before the request reached it
        if pending.unless_begun and verdict is not None:
            continue
        if pending.kind is SignalKind.REQUEUE:
            return ev.JobRequeued(
                at=now,
                key=job.key,
                reason=PendReason.JOB_REQUEUED,
                state=pending.state,
                end=end,
                stopper=pending.by if pending.state is JobState.PSUSP else "",
                avoid=hung_hosts(run),
                why=f"requeued by {pending.by}" if pending.by else pending.said,
            )
        if pending.kind is SignalKind.MIGRATE:
            left = tuple(part.host for part in run.parts)
            # it may start there again at once: one whose place another job took, or for which bmig -m named hosts that it is on
            avoid = () if job.preempted_for_good or (spec.hosts and set(spec.hosts) <= set(left)) else left
            why = "migrated by " + pending.by
            return ev.JobRequeued(at=now, key=job.key, reason=PendReason.JOB_MIG, end=end, why=why, avoid=avoid)
    return None


def _is_users_fault(cluster: Cluster, job: Job, run: Attempt) -> bool:
    """Whether no other host would start it either. ``job.avoid`` has the hosts that would not, the last one now."""
    if run.refused_code not in _FILES:
        return run.refused_code in _FINAL
    others = any(
        host.state is HostState.OK and not host.closed and name not in job.avoid for name, host in cluster.hosts.rows.items()
    )
    # hosts that were lost are avoided, too: they have refused nothing, and one that refuses again is no second one
    is_second = job.failures > 0 and len(job.avoid) > 1 and job.avoid[-1] not in job.avoid[:-1]
    return is_second or not others or job.failures + 1 >= _TRIES


def without_user(cluster: Cluster, key: int, now: float) -> list[ev.Event]:
    """A job that waits again, as a host had no such user, and of whom the master's host has none either: it exits."""
    job = cluster.jobs.rows.get(key)
    if job is None or job.state not in WAITING or not job.failures:
        return []
    where = f"on host {job.avoid[-1]}" if job.avoid else "there"
    why = f"user {cluster.specs.rows[job.spec].user} is known neither {where} nor on the master's host"
    return [ev.JobFinished(at=now, key=key, state=JobState.EXIT, status=255 << 8, reason=TermReason.TERM_OTHER, why=why)]


def _start_again(cluster: Cluster, job: Job, run: Attempt, spec: Spec, now: float, end: End | None) -> ev.JobRequeued | None:
    """After a failed start: retry later and elsewhere; held or exited where the queue's pre-execution limits say so."""
    state, delay = JobState.PEND, min(MAX_BACKOFF, 2.0 ** min(job.failures, 8))
    reason, why = PendReason.JOB_START_FAIL, run.refused
    barred: tuple[str, ...] = ()
    if run.refused_code == "pre_exec":
        reason = PendReason.JOB_PRE_EXEC
        most, action = _retries(cluster, spec)
        if most is not None and job.failures >= most:
            if action == "EXIT":
                return None
            state, why = JobState.PSUSP, f"{why}: it was retried LOCAL_MAX_PREEXEC_RETRY times"
        code = _EXITED.match(run.refused)
        if code and cluster.conf.params.preexec_exclude_host_exit_values.wants(int(code.group(1))):
            barred = job.avoid[-1:]
    return ev.JobRequeued(
        at=now,
        key=job.key,
        reason=reason,
        why=why,
        failures=job.failures + 1,
        state=state,
        not_before=now + delay,
        avoid=tuple(dict.fromkeys(job.avoid)),
        barred=barred,
        end=end,
    )


_EXITED = re.compile(r"the pre-execution command exited with code ([0-9]+)")


def _retries(cluster: Cluster, spec: Spec) -> tuple[int | None, str]:
    """LOCAL_MAX_PREEXEC_RETRY and its action, each the application profile's or the queue's."""
    app = cluster.conf.app_conf.get(spec.app) or ApplicationConfig(spec.app)
    queue = cluster.queue_conf.get(spec.queue) or QueueConfig(spec.queue)
    most = queue.local_max_preexec_retry if app.local_max_preexec_retry is None else app.local_max_preexec_retry
    return most, app.local_max_preexec_retry_action or queue.local_max_preexec_retry_action


def _after_exit_value(
    job: Job, run: Attempt, spec: Spec, now: float, end: End | None, rule: ExitRule, queue_time: float
) -> ev.JobRequeued | None:
    """REQUEUE_EXIT_VALUES. ``queue_time``: as in the event."""
    verdict = run.verdict
    assert verdict is not None
    code = exit_code(verdict.status)
    slice_over = rule.at_limit and verdict.limit is TermReason.TERM_RUNLIMIT
    if not (verdict.limit is TermReason.NONE or slice_over) or not rule.requeue.wants(code) or rule.is_used_up(job.requeues):
        return None
    return ev.JobRequeued(
        at=now,
        key=job.key,
        reason=PendReason.JOB_REQUEUED,
        end=end,
        requeues=job.requeues + 1,
        barred=tuple(part.host for part in run.parts) if rule.requeue.excludes(code) else (),
        avoid=first_failed_host(run, spec),
        # at once the first time, then with growing delay, so that a job that always ends like this does not keep the cluster busy
        not_before=0.0 if slice_over else now + delay_of(job.requeues),
        why=f"Requeued job is waiting for rescheduling;(exit code {code})",
        queue_time=queue_time,
    )


def _is_lost(part: Part) -> bool:
    """Whether its host was lost before the part ended."""
    return part.state is PartState.FENCED if part.end is None else bool(part.end.lost)


def _finish(cluster: Cluster, job: Job, run: Attempt, now: float, end: End | None, rule: ExitRule) -> ev.JobFinished:
    verdict, killed = run.verdict, find_kill(run)
    if (verdict is None or run.refused) and (killed is None or not killed.done):
        return _never_ran(job, run, killed, now, end)
    ended = ended_unheard(cluster, run, end, now)
    post = next((part.post or (part.end.post if part.end is not None else 0) for part in run.parts), 0)
    if verdict is None or (killed is not None and killed.done and not verdict.lost):  # bkill -d: dependent jobs may start
        why = killed.said if killed is not None and not killed.by else ""
        return ev.JobFinished(at=now, key=job.key, state=JobState.DONE, end=end, post=post, ended=ended, why=why)
    reason, why = _cause(verdict, killed, run, end)
    state = _state_of(verdict, reason, rule)
    if not why and killed is None:
        why = (state is not JobState.DONE and why_given_up(job, run)) or verdict.note
    wanted = reason is TermReason.NONE and not verdict.lost and rule.requeue.wants(exit_code(verdict.status))
    if wanted and killed is None and job.requeues and rule.is_used_up(job.requeues):
        why = "; ".join(filter(None, (why, "it was requeued as often as it may be")))
    status = LOST_STATUS if verdict.lost else verdict.status
    return ev.JobFinished(
        at=now, key=job.key, state=state, status=status, reason=reason, why=why, end=end, post=post, ended=ended
    )


def _never_ran(job: Job, run: Attempt, killed: PendingSignal | None, now: float, end: End | None) -> ev.JobFinished:
    """It was refused, or killed before it ran."""
    if killed is not None:
        reason, status, why = killed.reason, 9, run.refused or killed.said
    else:
        reason = TermReason.TERM_CWD_NOTEXIST if run.refused_code == "cwd" else TermReason.TERM_OTHER
        status, why = _REFUSED.get(run.refused_code, 255) << 8, run.refused
    return ev.JobFinished(at=now, key=job.key, state=JobState.EXIT, status=status, reason=reason, why=why, end=end)


def _cause(verdict: End, killed: PendingSignal | None, run: Attempt, end: End | None) -> tuple[TermReason, str]:
    """(what ended it, NONE where it did so itself; the words for that, "" where there is nothing to say)."""
    if verdict.lost:
        # if the killer is known, the reason is too, even where the shepherd hung and was killed
        said = f"the job was lost: {verdict.lost}"
        return (killed.reason if killed and killed.reason is not TermReason.NONE else TermReason.TERM_UNKNOWN), said
    reason = verdict.limit
    if reason is TermReason.NONE and killed is not None and verdict.status:
        reason = killed.reason
    if reason is TermReason.NONE and verdict.status and (broken := _broken_gpus(run, end)):
        return TermReason.TERM_OTHER, broken
    if verdict.first_rank >= 0 and verdict.status:
        why = verdict.first_reason if run.tasks else f"rank {verdict.first_rank} failed first: {verdict.first_reason}"
        return reason, why
    if killed is not None:
        return reason, killed.said if reason is killed.reason else ""
    return reason, verdict.first_reason if verdict.status and reason is TermReason.NONE else ""


def _state_of(verdict: End, reason: TermReason, rule: ExitRule) -> JobState:
    good = verdict.status == 0 or rule.is_success(os.waitstatus_to_exitcode(verdict.status))
    return JobState.DONE if good and not verdict.lost and reason is TermReason.NONE else JobState.EXIT


# -- hosts that the next attempt avoids if possible -----------------------------------------------------------


def first_failed_host(run: Attempt, spec: Spec) -> tuple[str, ...]:
    """The host of the rank that failed first; () for a job on a single host, which may be the only suitable one."""
    if run.verdict is None or run.verdict.first_rank < 0 or not run.verdict.status or len(run.parts) < 2:
        return ()
    rank = run.verdict.first_rank
    if run.tasks:
        return (run.parts[run.tasks[rank].place].host,) if rank < len(run.tasks) else ()
    if spec.launch.partition("(")[0] == _PER_HOST:
        numbers = (part.node_index if run.elastic else place for place, part in enumerate(run.parts))
        return tuple(part.host for number, part in zip(numbers, run.parts, strict=True) if number == rank)
    for part in run.parts:
        rank -= part.slots
        if rank < 0:
            return (part.host,)
    return ()


def hung_hosts(run: Attempt) -> tuple[str, ...]:
    """The hosts of ranks that were named as hanging."""
    return tuple(dict.fromkeys(suspect.host for suspect in run.suspects if suspect.how is not HangState.ALL))


def lost_hosts(run: Attempt) -> tuple[str, ...]:
    """Hosts that fell silent; of a job on several hosts, also those that lost their part."""
    several = len(run.parts) > 1
    return tuple(
        part.host for part in run.parts if part.state is PartState.FENCED or (several and part.end is not None and part.end.lost)
    )
