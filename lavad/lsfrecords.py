"""Records of lsb.events and lsb.acct in LSF 10.1's form: blank-separated fields, texts in double quotes.

Rule: the order of the fields is the one that IBM documents; what lava does not know has LSF's word for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from lavad.core import events as ev
from lavad.core.ids import index_of, job_of
from lavad.core.job import End, Job
from lavad.core.spec import JobText, Limits, Spec
from lavad.core.states import JobState

VERSION = "10.1"
Field = str | int | float | None
_RUSAGE = 19
_EXCLUSIVE, _RERUNNABLE, _DEPEND, _JOB_NAME, _RES_REQ = 0x40, 0x4000, 0x8000, 0x1, 0x40000
_QUEUE, _OUT_FILE, _ERR_FILE, _IN_FILE, _CHKPNT = 0x2, 0x10, 0x20, 0x8, 0x400


def record(kind: str, at: float, fields: Sequence[Field]) -> str:
    """One line."""
    return " ".join([f'"{kind}" "{VERSION}" {int(at)}', *map(_shown, fields)]) + "\n"


def _shown(field: Field) -> str:
    if field is None:
        return '""'
    if isinstance(field, str):
        return '"' + field.replace('"', '""').replace("\n", ";") + '"'
    return f"{field:.6f}" if isinstance(field, float) else str(int(field))


def options_of(spec: Spec, text: JobText, name: str, depends: bool) -> int:
    """LSF's bits of the options that were given."""
    pairs = (
        (name, _JOB_NAME), (True, _QUEUE), (text.input, _IN_FILE), (text.output, _OUT_FILE), (text.error, _ERR_FILE),
        (spec.exclusive, _EXCLUSIVE), (spec.checkpoint, _CHKPNT), (spec.rerunnable, _RERUNNABLE), (depends, _DEPEND),
        (spec.resreq, _RES_REQ),
    )  # fmt: skip
    return sum(bit for given, bit in pairs if given)


def _limits(limits: Limits) -> list[Field]:
    """CPU, file, data, stack, core, resident, open files, (spare), swap, run, processes, threads; -1: none."""
    values = (
        limits.cpu, limits.file, limits.data, limits.stack, limits.core, limits.mem, None, None, limits.swap, limits.run,
        limits.processes, None,
    )  # fmt: skip
    return [-1 if value is None else value for value in values]


def job_new(event: ev.JobSubmitted, spec: Spec, text: JobText, uid: int) -> str:
    """JOB_NEW."""
    name = event.spec_text or event.name
    depend = event.depend.text if event.depend is not None else ""
    checkpoint = spec.checkpoint
    hosts = [word.rstrip("!").partition("+")[0] for word in spec.hosts]
    fields: list[Field] = [
        job_of(event.key), uid, options_of(spec, text, name, bool(depend)), spec.slots, int(event.at), int(spec.begin),
        int(spec.deadline), 0, checkpoint.period if checkpoint is not None else 0, 0, spec.user, *_limits(spec.limits),
        spec.run_host or spec.cpu_host, 1.0, text.umask, spec.queue, spec.resreq, spec.from_host, text.cwd,
        checkpoint.folder if checkpoint is not None else "", text.input, text.output, text.error, text.home,
        f"{int(event.at)}.{job_of(event.key)}", len(hosts), *hosts, depend, name, text.command, 0, text.pre_exec,
        text.mail_user, spec.project, 0, spec.max_slots, "", text.login_shell, "", spec.user_group, "", 0, 0, "", "", "",
        spec.priority, "", spec.group, "", "", "", -1, -1, "", 0, spec.app, text.post_exec, -1, "", "",
        text.description,
    ]  # fmt: skip
    return record("JOB_NEW", event.at, fields)


def job_start(event: ev.JobDispatched) -> str:
    """JOB_START: one host name a slot."""
    hosts = [part.host for part in event.parts for _ in range(part.slots)]
    fields: list[Field] = [
        job_of(event.key), int(JobState.RUN), 0, 0, 1.0, len(hosts), *hosts, "", "", 0, "", index_of(event.key), "", 0,
    ]  # fmt: skip
    return record("JOB_START", event.at, fields)


def job_execute(event: ev.PartStarted, user: str, uid: int, home: str) -> str:
    """JOB_START_ACCEPT and JOB_EXECUTE."""
    job, index = job_of(event.key), index_of(event.key)
    accepted = record("JOB_START_ACCEPT", event.at, [job, event.pid, event.pid, index])
    fields: list[Field] = [job, uid, event.pid, event.cwd, home, user, event.pid, index, "", -1, "", "", ""]
    return accepted + record("JOB_EXECUTE", event.at, fields)


def job_status(
    key: int, at: float, state: int, reason: int = 0, end: End | None = None, status: int = 0, why: int = 0
) -> str:
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


def job_finish(job: Job, spec: Spec, text: JobText, uid: int) -> str:
    """JOB_FINISH of lsb.acct."""
    run, outcome = job.run, job.outcome
    ends = [part.end for part in run.parts if part.end is not None] if run is not None else []
    hosts = [part.host for part in run.parts for _ in range(part.slots)] if run is not None else []
    asked = [word.rstrip("!").partition("+")[0] for word in spec.hosts]
    total = End(
        utime=sum(end.utime for end in ends), stime=sum(end.stime for end in ends),
        max_mem=max((end.max_mem for end in ends), default=0),
    )  # fmt: skip
    usage: list[Field] = _usage(total) if ends else [-1.0, -1.0, *([-1] * (_RUSAGE - 2))]
    status = outcome.status if outcome is not None else 0
    reason = int(outcome.reason) if outcome is not None else 0
    depend = job.depend.text if job.depend is not None else ""
    dispatched = int(run.dispatched) if run is not None else 0
    fields: list[Field] = [
        job_of(job.key), uid, options_of(spec, text, job.name, bool(depend)), spec.slots, int(job.submitted),
        int(spec.begin), int(spec.deadline), dispatched, spec.user, spec.queue, spec.resreq, depend, text.pre_exec,
        spec.from_host, text.cwd, text.input, text.output, text.error, f"{int(job.submitted)}.{job_of(job.key)}",
        len(asked), *asked, len(hosts), *hosts, int(job.state), 1.0, job.name, text.command, *usage, text.mail_user,
        spec.project, status, spec.max_slots, text.login_shell, "", index_of(job.key), total.max_mem,
        max((end.max_swap for end in ends), default=0), "", "", "", "", 0, "", reason, "", -1, "", "", spec.app,
        text.post_exec, -1, spec.group, "", 0, "", dispatched, "", text.description, 0, 0, 0, spec.limits.run or 0,
        max((end.avg_mem for end in ends), default=0), spec.resreq, "", -1, "", -1, 0, "", 0, 0, text.output_dir,
        max(0, int(job.since) - dispatched) if dispatched else 0, "", 0,
    ]  # fmt: skip
    return record("JOB_FINISH", job.since, fields)
