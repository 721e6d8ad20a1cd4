"""What to do with a part when something is asked of it, when it used too much, or when time has passed.

Every function takes the part and returns the changed part with what is to be done; a wish is done once for each number.
"""

from __future__ import annotations

import signal

from msgspec.structs import replace

from agent.core.effects import AskCheckpoint, Effect, Grant, Keep, KillAll, Run, SayStopped, Send
from agent.core.part import KILL, TERMINATE, Part, Stage, Step, Wish, WishKind, run_time

Decided = tuple[Part, list[Effect]]

_OVER = (Stage.ENDED, Stage.GONE)
SOFT_STOP = 1.0
"""Seconds that a parallel job has after SIGTSTP to stop in order."""
MEMORY_GRACE = 2.0
"""Seconds from SIGTERM to SIGKILL for a part over its memory limit: it must not go on growing for long."""


def kill_steps(part: Part, now: float) -> tuple[Step, ...]:
    """LSF's kill sequence: CONT and INT, then TERM, then KILL."""
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


def ended(part: Part) -> Part:
    """Its job process ended: nothing more is asked of what may be left, the shepherd clears that."""
    return replace(part, stage=max(part.stage, Stage.ENDED), steps=(), since=-1.0)


def gone(part: Part) -> Part:
    """Nothing of it is left."""
    return replace(part, stage=Stage.GONE, steps=(), since=-1.0)


def asked(part: Part, wish: Wish, now: float) -> Decided:
    """A wish of the master."""
    if wish.number in part.wishes:
        return part, [Grant(part.uid, wish.number)]
    part = replace(part, wishes=part.wishes | {wish.number})
    if part.stage in _OVER:
        return part, [Grant(part.uid, wish.number, False, "Job has already finished")]
    granted: list[Effect] = [Keep(part.uid), Grant(part.uid, wish.number)]
    if wish.kind is WishKind.CHECKPOINT or (wish.kind is WishKind.MIGRATE and part.rules.checkpoint):
        return _checkpoint(part, wish, granted)
    if wish.kind in (WishKind.REQUEUE, WishKind.MIGRATE):
        part = replace(part, killing=True, reason=part.reason or wish.reason, steps=())
        return part, [KillAll(part.uid), *granted]
    if wish.kind is WishKind.KILL and part.stage < Stage.RUNNING:
        # Nothing of the command runs that could want to end in good order.
        part = replace(part, killing=True, reason=part.reason or wish.reason, steps=())
        return part, [KillAll(part.uid), *granted]
    if wish.kind is WishKind.KILL and not wish.signal:
        part = _to_be_killed(part, now, wish.reason)
        part, effects = tick(part, now)
        return part, effects + granted
    part, effects = _signalled(part, wish)
    return part, effects + granted


def leave(part: Part, grace: float, now: float) -> Decided:
    """The job goes on without this host: what runs here may end in good order, and is killed after ``grace`` seconds."""
    if part.killing or part.stage in _OVER:
        return part, []
    part = replace(part, killing=True, steps=(Step(now, signal.SIGCONT), Step(now, signal.SIGTERM), Step(now + grace, KILL)))
    return tick(part, now, [Keep(part.uid)])


def stop(part: Part, stopped: bool, now: float) -> Decided:
    """Stop the part, or let it go on. Repeating it is harmless: the master asks until it hears that it is so."""
    if part.stage in _OVER:
        return part, []
    part = replace(part, stopped=stopped, ran=run_time(part, now), since=_since(part, stopped, now))
    own = part.rules.suspend if stopped else part.rules.resume
    if own:
        return part, [*_control(part, own), Keep(part.uid), SayStopped(part.uid, stopped)]
    number = signal.SIGCONT
    steps = tuple(step for step in part.steps if step.signal != signal.SIGSTOP)
    if stopped and part.rules.soft_stop:
        # The kernel drops SIGTSTP for a session without a terminal, unless the program catches it.
        number = signal.SIGTSTP
        steps = (*steps, Step(now + SOFT_STOP, signal.SIGSTOP))
    elif stopped:
        number = signal.SIGSTOP
    part = replace(part, steps=steps)
    return part, [Send(part.uid, number), Keep(part.uid), SayStopped(part.uid, stopped)]


def _control(part: Part, action: str) -> list[Effect]:
    """The queue's own way to stop a job or let it go on; a command runs on the first host."""
    if action.isdigit():
        return [Send(part.uid, int(action))]
    return [Run(part.uid, action)] if part.rules.first else []


def used(part: Part, now: float, cpu: float, rss: int, swap: int, processes: int, threads: int = 0) -> Decided:
    """A usage sample: CPU seconds, memory and swap in KB, numbers of processes and threads."""
    rules = part.rules
    if part.stage is not Stage.RUNNING or part.limit:
        return part, []
    if rules.mem and rules.enforce_memory and rss > rules.mem:
        steps = (Step(now, signal.SIGCONT), Step(now, signal.SIGTERM), Step(now + MEMORY_GRACE, KILL))
        return tick(replace(part, limit="TERM_MEMLIMIT", killing=True, steps=steps), now, [Keep(part.uid)])
    if rules.swap and swap > rules.swap:
        return tick(replace(_to_be_killed(part, now, ""), limit="TERM_SWAP"), now, [Keep(part.uid)])
    if rules.processes and processes > rules.processes:
        return tick(replace(_to_be_killed(part, now, ""), limit="TERM_PROCESSLIMIT"), now, [Keep(part.uid)])
    if rules.threads and threads > rules.threads:
        return tick(replace(_to_be_killed(part, now, ""), limit="TERM_THREADLIMIT"), now, [Keep(part.uid)])
    if rules.cpu and cpu > rules.cpu:
        xcpu = (Step(now, signal.SIGCONT), Step(now, signal.SIGXCPU), *_later(part, now + rules.interval))
        return tick(replace(part, limit="TERM_CPULIMIT", killing=True, steps=xcpu), now, [Keep(part.uid)])
    return part, []


def tick(part: Part, now: float, before: list[Effect] | None = None) -> Decided:
    """All that is due at ``now``: the run limit, then the steps of a sequence under way."""
    effects: list[Effect] = before or []
    rules = part.rules
    if _is_time_to_warn(part, now):
        part = replace(part, warned=True)
        effects += [*_warning(part), Keep(part.uid)]
    if rules.run and part.stage is Stage.RUNNING and not part.limit and run_time(part, now) >= rules.run:
        # a job that was warned in time is ended now; SIGUSR2 is the warning of all others
        steps = (Step(now, signal.SIGUSR2), *_later(part, now + rules.warning))
        if part.warned:
            steps = _later(part, now)
        part = replace(part, limit="TERM_RUNLIMIT", steps=part.steps if part.killing else steps)
        effects.append(Keep(part.uid))
    due = [step for step in part.steps if step.at <= now]
    if due:
        part = replace(part, steps=tuple(step for step in part.steps if step.at > now))
        for step in due:
            if step.signal == TERMINATE:
                effects += _control(part, rules.terminate)
            else:
                effects.append(KillAll(part.uid) if step.signal == KILL else Send(part.uid, step.signal))
    return part, effects


def _warns(part: Part) -> bool:
    return bool(part.rules.warn and part.rules.warn_before) and part.stage is Stage.RUNNING and not part.warned


def _is_time_to_warn(part: Part, now: float) -> bool:
    rules = part.rules
    if not _warns(part):
        return False
    if rules.deadline and now >= rules.deadline - rules.warn_before:
        return True
    return bool(rules.run) and run_time(part, now) >= rules.run - rules.warn_before


def _warning(part: Part) -> list[Effect]:
    warn = part.rules.warn
    if warn == "CHKPNT":
        return [Send(part.uid, signal.SIGUSR1, True)] if part.rules.checkpoint and part.rules.first else []
    if warn.isdigit():
        return [Send(part.uid, int(warn))]
    return [Run(part.uid, warn)] if part.rules.first else []


def limited(part: Part, run: int, cpu: int, mem: int, swap: int, processes: int, now: float) -> Decided:
    """The job has other limits now; what it has done wrong before stays as it is."""
    rules = replace(part.rules, run=run, cpu=cpu, mem=mem, swap=swap, processes=processes)
    if part.stage in _OVER or rules == part.rules:
        return part, []
    later = bool(run) and run_time(part, now) < run - rules.warn_before
    part = replace(part, rules=rules, warned=part.warned and not later)
    return tick(part, now, [Keep(part.uid)])


def wake_at(part: Part) -> float | None:
    """When ``tick`` has something to do next."""
    times = [step.at for step in part.steps]
    if part.rules.run and not part.limit and part.since >= 0:
        times.append(part.since + part.rules.run - part.ran)
        if _warns(part):
            times.append(part.since + part.rules.run - part.rules.warn_before - part.ran)
    if part.rules.deadline and _warns(part):
        times.append(part.rules.deadline - part.rules.warn_before)
    return min(times, default=None)


def resumed(part: Part, now: float) -> Part:
    """The part as read back after a restart of the agent: of the steps that passed meanwhile, only the last is done."""
    past = [step for step in part.steps if step.at <= now]
    return replace(part, steps=(*past[-1:], *(step for step in part.steps if step.at > now)))


def limit_of_end(part: Part, status: int, cpu: float, max_mem: int) -> str:
    """The limit behind an end that the kernel enforced (RLIMIT_CPU, a cgroup's memory), else what was noted."""
    if part.limit or part.killing:
        return part.limit
    number = status & 0x7F or max(0, (status >> 8 & 0xFF) - 128)
    rules = part.rules
    if rules.cpu and (number == signal.SIGXCPU or (number == signal.SIGKILL and cpu >= rules.cpu)):
        return "TERM_CPULIMIT"
    if rules.mem and rules.enforce_memory and number == signal.SIGKILL and max_mem >= 0.95 * rules.mem:
        return "TERM_MEMLIMIT"
    return ""


def _checkpoint(part: Part, wish: Wish, granted: list[Effect]) -> Decided:
    rules = part.rules
    if not rules.first and rules.checkpoint:
        return part, granted
    if not rules.checkpoint or part.stage is not Stage.RUNNING:
        why = "Job has not started yet" if rules.checkpoint else "Job is not checkpointable"
        return part, [Grant(part.uid, wish.number, False, why)]
    kill_after = wish.kill_after or wish.kind is WishKind.MIGRATE
    if kill_after:
        part = replace(part, reason=part.reason or wish.reason or "TERM_CHKPNT")
    # Not noted as done: after a restart of the agent it is asked for again.
    part = replace(part, wishes=part.wishes - {wish.number})
    return part, [Keep(part.uid), AskCheckpoint(part.uid, wish.number, kill_after)]


def _to_be_killed(part: Part, now: float, reason: str) -> Part:
    if part.killing:
        return part
    own = part.rules.terminate
    if not own:
        return replace(part, killing=True, reason=part.reason or reason, steps=kill_steps(part, now))
    first = Step(now, int(own) if own.isdigit() else TERMINATE)
    steps = (Step(now, signal.SIGCONT), first, *kill_steps(part, now + 3 * part.rules.interval))
    return replace(part, killing=True, reason=part.reason or reason, steps=steps)


def _signalled(part: Part, wish: Wish) -> Decided:
    number = wish.signal
    if number == signal.SIGKILL:
        reason = part.reason or wish.reason
        return replace(part, killing=True, reason=reason, steps=()), [KillAll(part.uid)]
    return part, [Send(part.uid, number)] if number else []


def _later(part: Part, at: float) -> tuple[Step, ...]:
    return kill_steps(part, at)


def _since(part: Part, stopped: bool, now: float) -> float:
    return now if part.stage is Stage.RUNNING and not stopped else -1.0
