"""What to do with a part when the master requests something, when it exceeds a limit, or when time has passed.

Every function takes the part and returns the changed part with the effects to carry out. ``now``: seconds of CLOCK_BOOTTIME.
"""

from __future__ import annotations

import os
import signal

from msgspec.structs import replace

from agent.core.effects import Answer, AskCheckpoint, Effect, KillAll, ReportStopped, Run, Save, Send
from agent.core.part import KILL, TERMINATE, Part, Request, RequestKind, Stage, Step, run_time

Decided = tuple[Part, list[Effect]]

_OVER = (Stage.ENDED, Stage.GONE)
_ENDS = (RequestKind.KILL, RequestKind.REQUEUE, RequestKind.MIGRATE)
SOFT_STOP = 1.0
"""Seconds from SIGTSTP to SIGSTOP for a parallel job."""
SHORT_GRACE = 2.0
"""Seconds from SIGTERM to SIGKILL for a part that has taken too much of the host's memory or disk: it must not grow for long."""


def kill_steps(part: Part, now: float) -> tuple[Step, ...]:
    """The steps of LSF's kill sequence from ``now``: CONT and INT, then TERM, then KILL."""
    rules = part.rules
    if not rules.sequential:
        return (Step(now, KILL),)
    return (
        Step(now, signal.SIGCONT),
        Step(now, signal.SIGINT),
        Step(now + rules.interval, signal.SIGTERM),
        Step(now + 2 * rules.interval, KILL),
    )


def started(part: Part, at: float) -> Part:
    """Its processes run since ``at``."""
    if part.stage >= Stage.RUNNING:
        return part
    return replace(part, stage=Stage.RUNNING, since=-1.0 if part.stopped else at)


def asked_before(part: Part, now: float) -> Decided:
    """Its command runs: what was asked for before, which it could not do then."""
    effects: list[Effect] = []
    waiting, part = part.waiting, replace(part, waiting=())
    for request in waiting:
        part, more = asked(part, request, now)
        effects += more
    return part, effects


def ended(part: Part) -> Part:
    """Its tasks have ended; the shepherd ends whatever processes are left."""
    return replace(part, stage=max(part.stage, Stage.ENDED), steps=(), since=-1.0)


def gone(part: Part) -> Part:
    """Nothing of it is left."""
    return replace(part, stage=Stage.GONE, steps=(), since=-1.0)


def asked(part: Part, request: Request, now: float) -> Decided:
    """The master requests something: carry it out, and answer. A repeated request is only answered."""
    if request.number in part.requests:
        return part, [Answer(part.uid, request.number)]
    part = replace(part, requests=part.requests | {request.number})
    if part.stage in _OVER:
        ok = request.kind in _ENDS
        return part, [Answer(part.uid, request.number, ok, "" if ok else "Job has already finished")]
    if request.kind in _ENDS:
        part = replace(part, again=request.kind is not RequestKind.KILL)
    if request.kind in (RequestKind.MIGRATE, RequestKind.KILL):
        part = replace(part, migrating=request.number if request.kind is RequestKind.MIGRATE else 0)
    answered: list[Effect] = [Save(part.uid), Answer(part.uid, request.number)]
    if request.notice and (noticed := _with_notice(part, request, now, answered)) is not None:
        return noticed
    if request.kind is RequestKind.CHECKPOINT or (request.kind is RequestKind.MIGRATE and _has_to_save(part)):
        return _checkpoint(part, request, answered)
    if request.kind in (RequestKind.REQUEUE, RequestKind.MIGRATE):
        part = replace(part, killing=True, reason=part.reason or request.reason, steps=())
        return part, [KillAll(part.uid), *answered]
    if request.kind is RequestKind.KILL and part.stage < Stage.RUNNING:
        # The command does not run yet: there is nothing to end gracefully.
        part = replace(part, killing=True, reason=part.reason or request.reason, steps=())
        return part, [KillAll(part.uid), *answered]
    if request.kind is RequestKind.KILL and not request.signal:
        part = _to_be_killed(part, now, request.reason)
        part, effects = tick(part, now)
        return part, effects + answered
    part, effects = _signalled(part, request)
    return part, effects + answered


def given_up(part: Part, request: int) -> Part:
    """A request was answered with a failure: a part that was to end with a checkpoint runs on."""
    if part.killing or part.stage in _OVER:
        return part
    return replace(part, reason="", again=False, migrating=0 if part.migrating == request else part.migrating)


def _has_to_save(part: Part) -> bool:
    """Whether a migration waits for a checkpoint: not where the command does not run yet. The first host decides for all."""
    return part.rules.checkpoint and (part.stage is Stage.RUNNING or not part.rules.first)


def _with_notice(part: Part, request: Request, now: float, answered: list[Effect]) -> Decided | None:
    """The job's warning (``-wa``), or a checkpoint of one that has none, and time before the end; None: it would not use it."""
    rules = part.rules
    if part.stage is not Stage.RUNNING or part.stopped or part.killing:
        return None
    if rules.warn in ("", "CHKPNT"):
        if not rules.checkpoint:
            return None
        if not rules.first:
            return part, answered
        within = min(request.notice, rules.warn_before) if rules.warn else request.notice
        # Not marked as carried out: after a restart of the agent the master requests it again.
        part = replace(part, reason=part.reason or request.reason, warned=True, requests=part.requests - {request.number})
        return part, [Save(part.uid), AskCheckpoint(part.uid, request.number, True, float(within))]
    at = now + min(request.notice, rules.warn_before)
    if request.kind is RequestKind.KILL:
        # Not yet marked as being killed: bkill need not wait for the end of the notice.
        ended = replace(_to_be_killed(part, at, request.reason), killing=False)
    else:
        ended = replace(part, reason=part.reason or request.reason, steps=(Step(at, KILL),))
    warning = [] if part.warned else _warning(part)
    return replace(ended, warned=True), [*warning, *answered]


def leave(part: Part, grace: float, now: float) -> Decided:
    """The job continues without this host: SIGTERM what runs here, and kill it after ``grace`` seconds."""
    if part.killing or part.stage in _OVER:
        return part, []
    part = replace(part, killing=True, steps=(Step(now, signal.SIGCONT), Step(now, signal.SIGTERM), Step(now + grace, KILL)))
    return tick(part, now, [Save(part.uid)])


def stop(part: Part, stopped: bool, now: float) -> Decided:
    """Stop or resume the part. May be repeated: the master asks until the new state is reported to it."""
    if part.stage in _OVER:
        return part, []
    part = replace(part, stopped=stopped, ran=run_time(part, now), since=_since(part, stopped, now))
    own = part.rules.suspend if stopped else part.rules.resume
    if own:
        return part, [*_control(part, own), Save(part.uid), ReportStopped(part.uid, stopped)]
    if stopped and part.rules.stop_signal == signal.SIGKILL:
        # as in LSF, which suspends by a signal that ends a job as it ends jobs
        return tick(replace(part, steps=kill_steps(part, now)), now, [Save(part.uid), ReportStopped(part.uid, stopped)])
    number: int = signal.SIGCONT
    steps = tuple(step for step in part.steps if step.signal != signal.SIGSTOP)
    if stopped and part.rules.stop_signal:
        number = part.rules.stop_signal
    elif stopped and part.rules.soft_stop:
        # The kernel drops SIGTSTP for a session without a terminal, unless the program catches it.
        number = signal.SIGTSTP
        steps = (*steps, Step(now + SOFT_STOP, signal.SIGSTOP))
    elif stopped:
        number = signal.SIGSTOP
    part = replace(part, steps=steps)
    return part, [Send(part.uid, number), Save(part.uid), ReportStopped(part.uid, stopped)]


def _control(part: Part, action: str) -> list[Effect]:
    """The queue's JOB_CONTROLS action: a signal, or a command, which runs on the first host only."""
    if action.isdigit():
        return [Send(part.uid, int(action))]
    return [Run(part.uid, action)] if part.rules.first else []


def used(part: Part, now: float, cpu: float, rss: int, swap: int, processes: int, threads: int = 0) -> Decided:
    """End the part if a usage sample exceeds a limit. CPU in seconds, memory and swap in KB.

    -v is of both together, as IBM has it ("Swap usage limit"): what the job has, wherever the kernel keeps it.
    """
    rules = part.rules
    if part.stage is not Stage.RUNNING or part.limit:
        return part, []
    if rules.mem and rules.enforce_memory and rss > rules.mem:
        return _end_soon(part, now, "TERM_MEMLIMIT")
    if rules.swap and rss + swap > rules.swap:
        return tick(replace(_to_be_killed(part, now, ""), limit="TERM_SWAP"), now, [Save(part.uid)])
    if rules.processes and processes > rules.processes:
        return tick(replace(_to_be_killed(part, now, ""), limit="TERM_PROCESSLIMIT"), now, [Save(part.uid)])
    if rules.threads and threads > rules.threads:
        return tick(replace(_to_be_killed(part, now, ""), limit="TERM_THREADLIMIT"), now, [Save(part.uid)])
    if rules.cpu and cpu > rules.cpu:
        xcpu = (Step(now, signal.SIGCONT), Step(now, signal.SIGXCPU), *_later(part, now + rules.interval))
        return tick(replace(part, limit="TERM_CPULIMIT", killing=True, steps=xcpu), now, [Save(part.uid)])
    return part, []


def wrote_too_much(part: Part, now: float, limit: str) -> Decided:
    """End the part for the output that its host keeps. ``limit``: the name of the TermReason."""
    if part.stage is not Stage.RUNNING or part.limit:
        return part, []
    return _end_soon(part, now, limit)


def _end_soon(part: Part, now: float, limit: str) -> Decided:
    steps = (Step(now, signal.SIGCONT), Step(now, signal.SIGTERM), Step(now + SHORT_GRACE, KILL))
    return tick(replace(part, limit=limit, killing=True, steps=steps), now, [Save(part.uid)])


def tick(part: Part, now: float, before: list[Effect] | None = None) -> Decided:
    """Do what is due: the warning, the run limit, the steps of a signal sequence. ``before``: effects to put first."""
    effects: list[Effect] = before or []
    rules = part.rules
    if _is_time_to_warn(part, now):
        part = replace(part, warned=True)
        effects += [*_warning(part), Save(part.uid)]
    if rules.run and part.stage is Stage.RUNNING and not part.limit and _has_run(part, now, rules.run):
        # A job that got its own warning (-wa) ends now; all others are warned by SIGUSR2 first.
        steps = (Step(now, signal.SIGUSR2), *_later(part, now + rules.warning))
        if part.warned:
            steps = _later(part, now)
        part = replace(part, limit="TERM_RUNLIMIT", steps=part.steps if _is_to_end(part) else steps)
        effects.append(Save(part.uid))
    due = [step for step in part.steps if step.at <= now]
    if due:
        part = replace(part, steps=tuple(step for step in part.steps if step.at > now))
        for step in due:
            if step.signal == TERMINATE:
                effects += _control(part, rules.terminate)
            else:
                effects.append(KillAll(part.uid) if step.signal == KILL else Send(part.uid, step.signal))
    return part, effects


def _is_to_end(part: Part) -> bool:
    return part.killing or any(step.signal != signal.SIGSTOP for step in part.steps)


def _warns(part: Part) -> bool:
    return bool(part.rules.warn and part.rules.warn_before) and part.stage is Stage.RUNNING and not part.warned


def _is_time_to_warn(part: Part, now: float) -> bool:
    rules = part.rules
    if not _warns(part):
        return False
    if rules.deadline and now >= rules.deadline - rules.warn_before:
        return True
    return bool(rules.run) and _has_run(part, now, rules.run - rules.warn_before)


def _has_run(part: Part, now: float, seconds: int) -> bool:
    """Whether it has run for so long: from the very moment that ``wake_at`` gives, or the agent would wake up for it for ever."""
    return now >= _has_run_at(part, seconds) if part.since >= 0 else part.ran >= seconds


def _has_run_at(part: Part, seconds: int) -> float:
    return part.since + seconds - part.ran


def _warning(part: Part) -> list[Effect]:
    warn = part.rules.warn
    if warn == "CHKPNT":
        return [AskCheckpoint(part.uid, 0)] if part.rules.checkpoint and part.rules.first else []
    if warn.isdigit():
        return [Send(part.uid, int(warn))]
    return [Run(part.uid, warn)] if part.rules.first else []


def limited(part: Part, run: int, cpu: int, mem: int, swap: int, processes: int, now: float) -> Decided:
    """The job has new limits (seconds and KB, 0: none); a limit exceeded before stays exceeded."""
    rules = replace(part.rules, run=run, cpu=cpu, mem=mem, swap=swap, processes=processes)
    if part.stage in _OVER or rules == part.rules:
        return part, []
    later = bool(run) and run_time(part, now) < run - rules.warn_before
    part = replace(part, rules=rules, warned=part.warned and not later)
    return tick(part, now, [Save(part.uid)])


def wake_at(part: Part) -> float | None:
    """When ``tick`` has something to do next (CLOCK_BOOTTIME); None: not until something else happens."""
    times = [step.at for step in part.steps]
    if part.rules.run and not part.limit and part.since >= 0:
        times.append(_has_run_at(part, part.rules.run))
        if _warns(part):
            times.append(_has_run_at(part, part.rules.run - part.rules.warn_before))
    if part.rules.deadline and _warns(part):
        times.append(part.rules.deadline - part.rules.warn_before)
    return min(times, default=None)


def ends_at(part: Part, now: float) -> float | None:
    """When the part must end (CLOCK_BOOTTIME): by its run limit, its deadline, or a request with notice. None: never.

    While it is stopped its run limit does not come nearer, and counts as none.
    """
    rules = part.rules
    times = [step.at for step in part.steps if step.signal != signal.SIGSTOP][:1]
    if rules.run and not part.stopped:
        times.append(max(part.since, now if part.since < 0 else 0.0) + rules.run - part.ran)
    if rules.deadline:
        times.append(rules.deadline)
    return min(times, default=None)


def resumed(part: Part, now: float) -> Part:
    """The part as read back after a restart of the agent: of the steps to its end that are past, only the last is kept."""
    ending = [step for step in part.steps if step.at <= now and step.signal != signal.SIGSTOP]
    return replace(part, steps=tuple(step for step in part.steps if step not in ending[:-1]))


def limit_of_end(part: Part, status: int, cpu: float, max_mem: int, ran_out: bool = False) -> str:
    """The limit that ended the part (the name of a TermReason, "" if none): ours, or the kernel's (RLIMIT_CPU, cgroup).

    ``status``: a wait status; ``cpu``: seconds; ``max_mem``: KB, as was seen in time; ``ran_out``: its control group tells that
    the kernel killed for its memory.
    """
    if part.limit or part.killing:
        return part.limit
    number = status & 0x7F or max(0, (status >> 8 & 0xFF) - 128)
    rules = part.rules
    if rules.cpu and (number == signal.SIGXCPU or (number == signal.SIGKILL and cpu >= rules.cpu)):
        return "TERM_CPULIMIT"
    if rules.mem and rules.enforce_memory and number == signal.SIGKILL and (ran_out or max_mem >= 0.95 * rules.mem):
        return "TERM_MEMLIMIT"
    return ""


def status_of_end(part: Part, status: int) -> int:
    """The wait status of a part as LSF tells it: one that the SIGUSR2 of its run limit killed exited with 128 + 12.

    LSF's job file is a shell that traps this signal; tools look for its exit code, 140.
    """
    if part.limit == "TERM_RUNLIMIT" and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGUSR2:
        return (128 + signal.SIGUSR2) << 8
    return status


def _checkpoint(part: Part, request: Request, answered: list[Effect]) -> Decided:
    rules = part.rules
    if not rules.first and rules.checkpoint:
        return part, answered
    if not rules.checkpoint:
        return part, [Answer(part.uid, request.number, False, "Job is not checkpointable")]
    kill_after = request.kill_after or request.kind is RequestKind.MIGRATE
    if kill_after and part.stage is Stage.RUNNING:
        part = replace(part, reason=part.reason or request.reason or "TERM_CHKPNT")
    # Not marked as carried out: after a restart of the agent the master requests it again.
    part = replace(part, requests=part.requests - {request.number})
    if part.stage is not Stage.RUNNING:
        others = tuple(one for one in part.waiting if one.number != request.number)
        return replace(part, waiting=(*others, request)), []
    return part, [Save(part.uid), AskCheckpoint(part.uid, request.number, kill_after)]


def _to_be_killed(part: Part, now: float, reason: str) -> Part:
    if part.killing:
        return part
    own = part.rules.terminate
    if not own:
        return replace(part, killing=True, reason=part.reason or reason, steps=kill_steps(part, now))
    first = Step(now, int(own) if own.isdigit() else TERMINATE)
    steps = (Step(now, signal.SIGCONT), first, *kill_steps(part, now + 3 * part.rules.interval))
    return replace(part, killing=True, reason=part.reason or reason, steps=steps)


def _signalled(part: Part, request: Request) -> Decided:
    number = request.signal
    if number == signal.SIGKILL:
        reason = part.reason or request.reason
        return replace(part, killing=True, reason=reason, steps=()), [KillAll(part.uid)]
    return part, [Send(part.uid, number)] if number else []


def _later(part: Part, at: float) -> tuple[Step, ...]:
    return kill_steps(part, at)


def _since(part: Part, stopped: bool, now: float) -> float:
    return now if part.stage is Stage.RUNNING and not stopped else -1.0
