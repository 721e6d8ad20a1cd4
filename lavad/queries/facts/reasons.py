"""Why a job waits or is suspended.

Rule: the codes are those that the scheduler reports; nothing is computed here.
"""

from __future__ import annotations

from lavad.core.job.depend import NEVER
from lavad.core.job.job import Array, Job
from lavad.core.lang.ids import job_of
from lavad.core.lang.states import SUSPENDED, JobState
from lavad.core.site.pend_reason import PendReason, ReasonClass, find_reason, text
from lavad.queries.frame.view import View

Reason = tuple[int, int, tuple[str, ...]]
"""Code, number of hosts (0: about the job itself), a few host names."""

_R = PendReason
_FAILED = frozenset((_R.JOB_DELAY_SCHED, _R.JOB_START_FAIL, _R.JOB_PRE_EXEC))
"""The reasons of a job that was not started by a host, and waits to be tried again."""
_SHOWN = 3
"""GPUs that a line names."""


def of(view: View, job: Job) -> list[Reason]:
    """Why a waiting job waits, most important first; never empty."""
    if job.state is JobState.PSUSP:
        return [(held(view, job), 0, ())]
    if job.blocked:
        return [(_R.JOB_DEP_INVALID if job.blocked == NEVER else _R.JOB_DEPEND, 0, ())]
    own = view.soft.why_job.get(job.key) or view.soft.why_job.get(job_of(job.key))
    if own:
        return [(own, 0, ())]
    known = view.soft.why.get(job.spec)
    if known is not None and known.reasons:
        return list(known.reasons)
    return [(job.reason or _R.JOB_NEW, 0, ())]


def held(view: View, job: Job | Array) -> int:
    """Why a job, or elements of an array, are held: by the owner, by others who may, or as the job was not started too often."""
    if not job.stopper and isinstance(job, Job) and job.failed_why:
        return job.reason
    return _R.USER_STOP if job.stopper in ("", view.spec(job).user) else _R.ADMIN_STOP


def _closed_gpus(view: View, hosts: tuple[str, ...]) -> str:
    """Which GPUs of these hosts are closed, and why: ``GPU 2 of h1 is closed: lost (Xid 79)``."""
    rows = view.cluster.hosts.rows
    found = []
    for host in (rows[name] for name in hosts if name in rows):
        index = {gpu.uuid: str(gpu.index) for gpu in host.facts.gpus}
        found += [(f"GPU {index.get(gpu.uuid, gpu.uuid)} of {host.name} is closed", gpu.why) for gpu in host.closed_gpus]
    shown = [f"{what}: {why}" if why else what for what, why in found[:_SHOWN]]
    return ", ".join([*shown, "..."] if len(found) > _SHOWN else shown)


def is_eligible(view: View, job: Job) -> bool:
    """Whether a waiting job could start if there were room (-pe), or waits for something else (-pi)."""
    return job.state is not JobState.PSUSP and _class_of(of(view, job)[0][0]) is not ReasonClass.INELIGIBLE


def _class_of(code: int) -> ReasonClass:
    reason = find_reason(code)
    return ReasonClass.WAITS if reason is None else reason.kind


def key_text(view: View, job: Job) -> str:
    """The most important reason, as ``pend_reason`` of -o and -p1 show it."""
    return _told(view, job, of(view, job)[0], False)


def pending(view: View, job: Job, level: int, names: bool) -> list[str]:
    """The lines below a job's row for -p0 to -p3 (``level``), each with its newline. ``names``: with names of hosts."""
    found = of(view, job)
    if level == 1:
        return [f" {_told(view, job, found[0], names)};\n"]
    about_hosts = [reason for reason in found if reason[1]]
    if level == 0 or not about_hosts:
        return [f" {_told(view, job, reason, names)};\n" for reason in found]
    main = [f" {_told(view, job, reason, False)};\n" for reason in found if not reason[1]]
    return main + _categories(view, about_hosts, level, names)


def _told(view: View, job: Job, reason: Reason, names: bool) -> str:
    """The line of a reason, with what the host said that did not start the job."""
    words = _line(view, reason, names)
    return f"{words}: {job.failed_why.rstrip('.;')}" if job.failed_why and reason[0] in _FAILED else words


def _categories(view: View, found: list[Reason], level: int, names: bool) -> list[str]:
    total = sum(count for _, count, _ in found)
    lines: list[str] = []
    for title, wanted in (("Candidate", False), ("Non-candidate", True)):
        chosen = sorted((r for r in found if (_class_of(r[0]) is ReasonClass.NO_CANDIDATE) is wanted), key=lambda r: -r[1])
        if wanted and level < 3:
            break
        count = sum(reason[1] for reason in chosen)
        if wanted:
            lines.append("\n")
        lines.append(f" {title} host pending reasons ({count} of {total} hosts){':' if chosen else '.'}\n")
        lines += [f"   {_line(view, reason, names)};\n" for reason in chosen]
    return lines


def text_of(view: View, code: int) -> str:
    """The text of a reason, without host counts."""
    return text(code, view.cluster.conf)


def _line(view: View, reason: Reason, names: bool) -> str:
    """``names``: with names of hosts."""
    code, count, about = reason
    hosts = about if names else ()
    words = text(code, view.cluster.conf)
    if code == _R.GPU_CLOSED and (closed := _closed_gpus(view, about)):
        words = f"{words} ({closed})"
    if not count:
        return words
    if hosts and len(hosts) == count:
        return f"{words}: {', '.join(hosts)}"
    more = f" ({', '.join(hosts)}, ...)" if hosts else ""
    return f"{words}: {count} {'host' if count == 1 else 'hosts'}{more}"


def suspended(view: View, job: Job) -> list[str]:
    """The suspend reasons of a suspended job, each with its newline."""
    if job.state not in SUSPENDED:
        return []
    last = view.last_suspension(job)
    if last is not None and last.why:
        return [f" {last.why};\n"]
    if job.state is JobState.SSUSP:
        return [" The job was suspended by the system;\n"]
    owner = view.spec(job).user
    by_admin = last is not None and last.by not in ("", owner)
    return [f" The job was suspended by {'LSF admin or root' if by_admin else 'user'};\n"]
