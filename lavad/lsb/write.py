"""Records of lsb.events and lsb.acct in LSF 10.1's form: blank-separated fields, texts in double quotes.

Rule: the order of the fields is as documented by IBM; fields that lava does not know have LSF's empty value.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

from config.model.values import Limits
from lavad.core.job.job import End, Job, Part, PendingSignal
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.ids import index_of, job_of
from lavad.core.lang.states import JobState, SignalKind, TermReason

VERSION = "10.1"
Field = str | int | float | None
_RUSAGE = 19
_EXCLUSIVE, _RERUNNABLE, _DEPEND, _JOB_NAME, _RES_REQ = 0x40, 0x4000, 0x8000, 0x1, 0x40000
_QUEUE, _OUT_FILE, _ERR_FILE, _IN_FILE, _CHKPNT = 0x2, 0x10, 0x20, 0x8, 0x400
_EXIT_INFO = {
    TermReason.TERM_PREEMPT: 1, TermReason.TERM_WINDOW: 2, TermReason.TERM_LOAD: 3, TermReason.TERM_OTHER: 4,
    TermReason.TERM_RUNLIMIT: 5, TermReason.TERM_DEADLINE: 6, TermReason.TERM_PROCESSLIMIT: 7,
    TermReason.TERM_FORCE_OWNER: 8, TermReason.TERM_FORCE_ADMIN: 9, TermReason.TERM_REQUEUE_OWNER: 10,
    TermReason.TERM_REQUEUE_ADMIN: 11, TermReason.TERM_CPULIMIT: 12, TermReason.TERM_CHKPNT: 13, TermReason.TERM_OWNER: 14,
    TermReason.TERM_ADMIN: 15, TermReason.TERM_MEMLIMIT: 16, TermReason.TERM_EXTERNAL_SIGNAL: 17,
    TermReason.TERM_ZOMBIE: 19, TermReason.TERM_SWAP: 20, TermReason.TERM_THREADLIMIT: 21,
    TermReason.TERM_CWD_NOTEXIST: 25, TermReason.TERM_ORPHAN_SYSTEM: 27,
}  # fmt: skip
REASON_OF = {number: reason for reason, number in _EXIT_INFO.items()}
"""LSF's number of a termination reason to the reason; 0 is logged for reasons without a number."""


def exit_info(reason: TermReason) -> int:
    """The number of a reason in LSF's files; one that LSF does not have is TERM_OTHER there."""
    own = reason in (TermReason.TERM_OUTPUTLIMIT, TermReason.TERM_OUTPUTDISK)
    return _EXIT_INFO[TermReason.TERM_OTHER] if own else _EXIT_INFO.get(reason, 0)


def record(kind: str, at: float, fields: Sequence[Field]) -> str:
    """One line."""
    return " ".join([f'"{kind}" "{VERSION}" {int(at)}', *map(_shown, fields)]) + "\n"


def _shown(field: Field) -> str:
    if isinstance(field, str):
        if '"' in field or "\n" in field:
            field = field.replace('"', '""').replace("\n", ";")
        return f'"{field}"'
    if type(field) is int:
        return str(field)
    if field is None:
        return '""'
    return f"{field:.6f}" if isinstance(field, float) else str(int(field))


def options_of(spec: Spec, text: JobText, name: str, depends: bool) -> int:
    """LSF's bits of the options that were given."""
    pairs = (
        (name, _JOB_NAME), (True, _QUEUE), (text.input, _IN_FILE), (text.output, _OUT_FILE), (text.error, _ERR_FILE),
        (spec.exclusive, _EXCLUSIVE), (spec.checkpoint, _CHKPNT), (spec.rerunnable, _RERUNNABLE), (depends, _DEPEND),
        (spec.resreq, _RES_REQ),
    )  # fmt: skip
    return sum(bit for given, bit in pairs if given)


def asked_hosts(spec: Spec) -> list[str]:
    """The names that -m gave, without preferences and "!"."""
    return [word.rstrip("!").partition("+")[0] for word in spec.hosts]


def limits_of(limits: Limits) -> list[Field]:
    """CPU, file, data, stack, core, resident, open files, (spare), swap, run, processes; -1: none."""
    values = (
        limits.cpu, limits.file, limits.data, limits.stack, limits.core, limits.mem, None, None, limits.swap, limits.run,
        limits.processes,
    )  # fmt: skip
    return [-1 if value is None else value for value in values]


def job_status(key: int, at: float, state: int, reason: int = 0, end: End | None = None, status: int = 0, why: int = 0) -> str:
    """JOB_STATUS; with the end's usage where there is one."""
    cpu = end.utime + end.stime if end is not None else 0.0
    usage = _usage(end) if end is not None else []
    fields: list[Field] = [
        job_of(key), state, reason, 0, cpu, int(at) if end is not None else 0, int(bool(usage)), *usage, 0, status,
        index_of(key), why, 0,
    ]  # fmt: skip
    return record("JOB_STATUS", at, fields)


def _usage(end: End) -> list[Field]:
    known: list[Field] = [float(end.utime), float(end.stime), end.max_mem]
    return [*known, *([-1] * (_RUSAGE - len(known)))]


_HOST_FIELDS = 5


def _host_usage(part: Part) -> list[Field]:
    """hostRusage: what the job used on one of its hosts."""
    end = part.end or End()
    return [part.host, end.max_mem, end.max_swap, int(end.utime), int(end.stime)]


def job_finish(job: Job, spec: Spec, text: JobText, uid: int) -> str:
    """JOB_FINISH of lsb.acct."""
    run, outcome = job.run, job.outcome
    ends = [part.end for part in run.parts if part.end is not None] if run is not None else []
    hosts = [part.host for part in run.parts for _ in range(part.slots)] if run is not None else []
    asked = asked_hosts(spec)
    # what hosts that left the job used is known as one number
    left = run.spent[2] if run is not None else 0.0
    total = End(
        utime=sum(end.utime for end in ends) + left, stime=sum(end.stime for end in ends),
        max_mem=max((end.max_mem for end in ends), default=0),
    )  # fmt: skip
    usage: list[Field] = _usage(total) if ends else [-1.0, -1.0, *([-1] * (_RUSAGE - 2))]
    status = outcome.status if outcome is not None else 0
    reason = exit_info(outcome.reason) if outcome is not None else 0
    used = [field for part in run.parts for field in _host_usage(part)] if run is not None and len(run.parts) > 1 else []
    depend = job.depend.text if job.depend is not None else ""
    dispatched = int(run.dispatched) if run is not None else 0
    fields: list[Field] = [
        job_of(job.key), uid, options_of(spec, text, job.name, bool(depend)), spec.slots, int(job.submitted),
        int(spec.begin), int(spec.deadline), dispatched, spec.user, spec.queue, spec.resreq, depend, text.pre_exec,
        spec.from_host, text.cwd, text.input, text.output, text.error, f"{int(job.submitted)}.{job_of(job.key)}",
        len(asked), *asked, len(hosts), *hosts, int(job.state), 1.0, job.name, text.command, *usage, text.mail_user,
        spec.project, status, spec.max_slots, text.login_shell, "", index_of(job.key), total.max_mem,
        max((end.max_swap for end in ends), default=0), "", "", spec.reservation, "", 0, "", reason, text.warn_action,
        text.warn_before or -1, "", "", spec.app, text.post_exec, -1, spec.group, spec.requeue, 0, spec.resize_command,
        dispatched, "", text.description, 0, len(used) // _HOST_FIELDS, *used, 0, spec.limits.run or 0,
        max((end.avg_mem for end in ends), default=0), spec.resreq, "", -1, "", -1, 0, "", 0, 0, text.output_dir,
        max(0, int(job.since) - dispatched) if dispatched else 0, text.cwd, 0, "", 0.0, 0.0, 0.0, 0.0, 0.0, len(hosts),
        *hosts, -1, 0, 0, 0, 0, 0,
    ]  # fmt: skip
    return record("JOB_FINISH", job.since, fields)


def killed_waiting(key: int, at: float, by: str, uid: int) -> str:
    """JOB_SIGNAL of a job that never ran."""
    return record("JOB_SIGNAL", at, [job_of(key), uid, 0, "KILL", index_of(key), by])


def requeue_name(state: JobState) -> str:
    """LSF's name for a requeue, by the state that the job returns to."""
    return "REQUEUE_PSUSP" if state is JobState.PSUSP else "REQUEUE_PEND"


def signal_name(pending: PendingSignal) -> str:
    """``KILL``, ``STOP``, ``REQUEUE_PEND`` …; a number without a name as it is."""
    if pending.kind is SignalKind.REQUEUE:
        return requeue_name(pending.state)
    if not pending.signal:
        return "KILL"
    try:
        return signal.Signals(pending.signal).name.removeprefix("SIG")
    except ValueError:
        return str(pending.signal)
