"""Records of lsb.events and lsb.acct in LSF 10.1's form: blank-separated fields, texts in double quotes.

Rule: the order of the fields is as documented by IBM; fields that lava does not know have LSF's empty value.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from config.model.values import Limits
from lavad.core.job.chunk import slots_in
from lavad.core.job.job import Attempt, End, Job, Part, PendingSignal
from lavad.core.job.run_time import run_time, start_of
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.ids import index_of, job_of
from lavad.core.lang.states import JobState, SignalKind, TermReason
from lavad.core.lang.text_cache import SHORT

VERSION = "10.1"
MOST_TEXT = 4094
"""Characters of a text in a record, as many as LSF takes of a job's name.

All elements of an array have the same ones, each in its own line.
"""
Field = str | int | float | None
_RUSAGE = 19
_EXCLUSIVE, _RERUNNABLE, _DEPEND, _JOB_NAME, _RES_REQ = 0x40, 0x4000, 0x8000, 0x1, 0x40000
_QUEUE, _OUT_FILE, _ERR_FILE, _IN_FILE, _CHKPNT = 0x2, 0x10, 0x20, 0x8, 0x400
HOLD = 0x1
"""Bit of options2 in JOB_NEW: submitted to be held (bsub -H)."""
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
    return " ".join([f'"{kind}" "{VERSION}" {int(at)}', *[_SHOWN.get(field.__class__, _shown)(field) for field in fields]]) + "\n"


def _quoted(text: str) -> str:
    return _short(text) if len(text) <= SHORT else _quote(text)


def _quote(text: str) -> str:
    text = text[:MOST_TEXT]
    if '"' in text or "\n" in text:
        text = text.replace('"', '""').replace("\n", ";")
    return f'"{text}"'


_short = lru_cache(maxsize=4096)(_quote)
"""Kept, as the lines of most jobs have the same texts; a command may have a megabyte."""


def _shown(field: Field) -> str:
    """One that is a number of a kind, or yes or no."""
    return '""' if field is None else str(int(field))


class _Shown(str):
    """Fields as they are shown."""

    __slots__ = ()


_SHOWN: dict[type, Callable[..., str]] = {str: _quoted, int: str, float: "{:.6f}".format, _Shown: str}


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


def job_status(
    key: int, at: float, state: int, reason: int = 0, end: End | None = None, status: int = 0, why: int = 0, over: float = 0.0
) -> str:
    """JOB_STATUS; with the end's usage where there is one. ``over``: when it ended, if that was before ``at``."""
    when = int(at)
    # its fields in one text: two for each job that ends
    told = "0.000000 0 0"
    if end is not None:
        told = f"{end.utime + end.stime:.6f} {int(over) or when} 1 {end.utime:.6f} {end.stime:.6f} {end.max_mem} {_UNKNOWN}"
    about = f"{job_of(key)} {state} {reason:d} 0 {told} 0 {status} {index_of(key)} {why} 0"
    return f'"JOB_STATUS" "{VERSION}" {when} {about}\n'


_UNKNOWN = _Shown(" ".join(["-1"] * (_RUSAGE - 3)))


_HOST_FIELDS = 5


def _host_usage(part: Part) -> list[Field]:
    """hostRusage: what the job used on one of its hosts."""
    end = part.end or End()
    return [part.host, end.max_mem, end.max_swap, int(end.utime), int(end.stime)]


class OfClass:
    """What the lines of lsb.acct of all jobs with this spec and this text say alike, in the pieces in which they say it."""

    __slots__ = ("options", "pieces", "slots", "uid")

    def __init__(self, spec: Spec, text: JobText, uid: int) -> None:
        self.uid, self.slots = uid, spec.slots
        self.options = options_of(spec, text, "", False)
        asked = asked_hosts(spec)
        pieces: tuple[list[Field], ...] = (
            [int(spec.begin), int(spec.deadline)],
            [spec.user, spec.queue, spec.resreq],
            [text.pre_exec, spec.from_host, text.cwd, text.input, text.output, text.error],
            [len(asked), *asked],
            [text.mail_user, spec.project],
            [spec.max_slots, text.login_shell, ""],
            ["", "", spec.reservation, spec.service_class, 0, ""],
            [text.warn_action, text.warn_before or -1, "", "", spec.app, text.post_exec, -1, spec.group, spec.requeue, 0,
             spec.resize_command],
            ["", text.description, 0],
            [0, spec.limits.run or 0],
            [spec.resreq, "", -1, "", -1, 0, "", 0, 0, text.output_dir],
            [text.cwd, 0, "", 0.0, 0.0, 0.0, 0.0, 0.0],
            [text.command],
        )  # fmt: skip
        self.pieces = [_joined(piece) for piece in pieces]


def job_start(key: int, at: float, hosts: Sequence[str]) -> str:
    """JOB_START; ``hosts``: a name for each slot."""
    about = f"{job_of(key)} {JobState.RUN:d} 0 0 1.000000 {_joined([len(hosts), *hosts])}"
    return f'"JOB_START" "{VERSION}" {int(at)} {about} "" "" 0 "" {index_of(key)} "" 0\n'


def _joined(fields: Sequence[Field]) -> _Shown:
    """Fields that stand side by side, as they are shown."""
    return _Shown(" ".join([_SHOWN.get(field.__class__, _shown)(field) for field in fields]))


_LAST = _Shown("-1 0 0 0 0 0")


class _Totals(NamedTuple):
    """Of all parts: their times and the greatest memory of one of them as one field; what all of them used of memory in KB."""

    usage: str
    max_mem: int
    max_swap: int
    avg_mem: int


_UNUSED = _Totals("-1.000000 -1.000000 -1", 0, 0, 0)


def _totals(run: Attempt | None) -> _Totals:
    ends = [part.end for part in run.parts if part.end is not None] if run is not None else []
    if run is None or not ends:
        return _UNUSED
    # what hosts that left the job used is known as one number
    utime, stime = sum([end.utime for end in ends]) + run.spent[2], sum([end.stime for end in ends])
    mem = sum([end.max_mem for end in ends])
    usage = f"{utime:.6f} {stime:.6f} {max([end.max_mem for end in ends])}"
    return _Totals(usage, mem, sum([end.max_swap for end in ends]), sum([end.avg_mem for end in ends]))


def job_finish(job: Job, alike: OfClass) -> str:
    """JOB_FINISH of lsb.acct."""
    run, outcome = job.run, job.outcome
    hosts = [part.host for part in run.parts for _ in range(slots_in(part))] if run is not None else []
    usage, mem, swap, average = _totals(run)
    status = outcome.status if outcome is not None else 0
    reason = exit_info(outcome.reason) if outcome is not None else 0
    used = [field for part in run.parts for field in _host_usage(part)] if run is not None and len(run.parts) > 1 else []
    depend = job.depend.text if job.depend is not None else ""
    options = alike.options | (_JOB_NAME if job.name else 0) | (_DEPEND if depend else 0)
    number, submitted, when = job_of(job.key), int(job.submitted), int(job.since)
    dispatched = int(start_of(job))
    times, owner, files, asked, project, shell, reserved, after, described, limit, required, rest, command = alike.pieces
    named = _joined([len(hosts), *hosts])
    # all in one text, as the line of each job that ends has a hundred fields
    return (
        f'"JOB_FINISH" "{VERSION}" {when} {number} {alike.uid} {options} {alike.slots} {submitted} {times} {dispatched} {owner}'
        f' {_quoted(depend)} {files} "{submitted}.{number}" {asked} {named} {job.state:d} 1.000000 {_quoted(job.name)} {command}'
        f" {usage} {_UNKNOWN} {project} {status} {shell} {index_of(job.key)} {mem} {swap} {reserved} {reason} {after}"
        f" {dispatched} {described} {_joined([len(used) // _HOST_FIELDS, *used])} {limit} {average} {required}"
        f" {run_time(job, when)} {rest} {named} {_LAST}\n"
    )


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
