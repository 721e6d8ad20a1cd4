"""How the values of ``bjobs -o`` are read off a job.

Rule: a value that does not exist is "" (the table shows ``-``, JSON ""). What lava does not have is always "".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

from lavad.core.cluster.containers import image_of
from lavad.core.job.job import Job
from lavad.core.job.run_time import limit_of, run_time, start_of
from lavad.core.job.spec import NO_TEXT, JobText, Spec
from lavad.core.lang.gpureq import GpuReq
from lavad.core.lang.job_names import one_line
from lavad.core.lang.states import WAITING, JobState, TermReason
from lavad.core.plan.volatile import ReservedStart
from lavad.core.rules.cpu_factors import is_absolute, longest_on
from lavad.queries.facts import jobfacts, paragraphs, reasons, shares, slot_reservations
from lavad.queries.facts.jobfacts import Usage
from lavad.queries.frame import formats
from lavad.queries.frame.request import Request
from lavad.queries.jobs.bjobs_rows import finish_text, left_text


class Row:
    """The job whose fields are read; reused from row to row."""

    job: Job
    spec: Spec

    def __init__(self, request: Request, hms: bool, factor: float) -> None:
        self.request = request
        self.view = request.view
        self.now = request.now
        self.hms = hms
        self.factor = factor
        self.text: JobText = NO_TEXT
        self._usage: Usage | None = None

    def take(self, job: Job, text: JobText) -> None:
        """Make this the row of a job."""
        self.job = job
        self.spec = self.view.spec(job)
        self.text = text
        self._usage = None

    @property
    def usage(self) -> Usage:
        """Its usage; computed when first asked for."""
        if self._usage is None:
            self._usage = Usage(self.job, self.view)
        return self._usage

    def seconds(self, value: float, digits: int = 0) -> str:
        """A duration: ``12 second(s)``, or hh:mm:ss with -hms, where a part of a second counts as one."""
        if not self.hms:
            return f"{value:.{digits}f} second(s)"
        return f"{'-' if value < 0 else ''}{formats.hms(math.ceil(abs(value)) if digits else abs(value))}"

    def size(self, kb: float, unit: str) -> str:
        """A size, in the unit asked for."""
        if not kb:
            return ""
        return formats.unit_text(kb, unit) if unit else formats.bytes_text(kb)

    @cached_property
    def priorities(self) -> shares.AbsolutePriorities:
        """Absolute priorities at the time of the query."""
        return shares.AbsolutePriorities(self.view, self.now)

    @property
    def gpu(self) -> GpuReq | None:
        """Its GPU requirement."""
        return self.spec.gpu


Value = Callable[[Row, str], str]
_FROM_TEXT: set[Value] = set()


def from_text(value: Value) -> Value:
    """Marks a value that is read off the job's text: the store is asked for texts only where a field needs them."""
    _FROM_TEXT.add(value)
    return value


def reads_text(value: Value) -> bool:
    """Whether a value is read off the job's text."""
    return value in _FROM_TEXT


def none(row: Row, unit: str) -> str:
    return ""


def spec(name: str) -> Value:
    return lambda row, unit: str(getattr(row.spec, name))


def service_class(row: Row, unit: str) -> str:
    return row.view.service_classes.of(row.spec)


def _reservation(row: Row) -> ReservedStart | None:
    """The slot reservation of a waiting job, if it has one that is promised a start."""
    found = slot_reservations.find(row.view, row.job) if row.job.state is JobState.PEND else None
    return found if found is not None and found.start else None


def reserved_start(row: Row, unit: str) -> str:
    found = _reservation(row)
    return formats.short_time(found.start) if found is not None else ""


def reserved_end(row: Row, unit: str) -> str:
    found, limit = _reservation(row), row.spec.limits.run
    if found is None or not limit:
        return ""
    return formats.short_time(found.start + longest_on(row.view.cluster, row.spec, limit, (host for host, _ in found.hosts)))


def is_orphan(row: Row) -> bool:
    return row.job.depend is not None and row.job.depend.orphan


def cluster(row: Row, unit: str) -> str:
    return row.view.name if row.job.run is not None else ""


@from_text
def warn_time(row: Row, unit: str) -> str:
    return f"{row.text.warn_before / 60:.1f}" if row.text.warn_before else ""


def pend_limit(eligible: bool, effective: bool = True, left: bool = False) -> Value:
    """A limit of the time that a job waits, or what is ``left`` of it (negative: so long ago it was reached).

    ``effective``: that of its profile or queue, where it has none of its own.
    """

    def value(row: Row, unit: str) -> str:
        own = (row.text.eligible_limit if eligible else row.text.pend_limit) * 60
        limit = jobfacts.pend_limits(row.view, row.spec, row.text)[eligible] if effective else own
        if not limit or (left and row.job.state not in WAITING):
            return ""
        return row.seconds(limit - (int(row.now) - int(row.job.submitted)) if left else limit)

    return from_text(value)


def text(name: str) -> Value:
    return from_text(lambda row, unit: one_line(str(getattr(row.text, name))))


def of_job(read: Callable[[Job], object]) -> Value:
    return lambda row, unit: str(read(row.job))


def dependency(row: Row, unit: str) -> str:
    depend = row.job.depend
    return depend.text if depend is not None else row.spec.dependency


def number(value: float | None) -> str:
    return "" if value is None else str(value)


def exit_reason(row: Row, unit: str) -> str:
    outcome = row.job.outcome
    if outcome is None or row.job.state is JobState.DONE:
        return ""
    if outcome.reason is TermReason.NONE:
        return outcome.why
    return jobfacts.term_text(outcome.reason)


def kill_reason(row: Row, unit: str) -> str:
    return row.job.outcome.why if row.job.outcome is not None else ""


def suspend_reason(row: Row, unit: str) -> str:
    return row.job.remarks[0]


def resume_reason(row: Row, unit: str) -> str:
    return row.job.remarks[1]


def alloc(row: Row, unit: str) -> str:
    return jobfacts.exec_hosts(row.job, row.view)


def first_host(row: Row, unit: str) -> str:
    parts = jobfacts.parts_of(row.job)
    return parts[0].host if parts else ""


def start(row: Row, unit: str) -> str:
    at = start_of(row.job)
    return formats.short_time(at) if at else ""


def at(name: str) -> Value:
    def read(row: Row, unit: str) -> str:
        at: float = getattr(row.spec, name)
        return formats.short_time(at) if at else ""

    return read


def time_left(row: Row, unit: str) -> str:
    left = jobfacts.time_left(row.job, row.spec, row.view, row.now)
    if left is None:
        return ""
    return f"{formats.hms(left[0]) if row.hms else left_text(left[0])} {left[1]}"


def finish(row: Row, unit: str) -> str:
    shown = finish_text(row.request, row.job)
    if shown == "-":
        return ""
    limited = row.job.outcome is not None and row.job.run is not None and row.spec.limits.run is not None
    return f"{shown} L" if limited else shown


def complete(row: Row, unit: str) -> str:
    share = jobfacts.complete(row.job, row.spec, row.view, row.now)
    return "" if share is None else f"{share[0]:.2f}% {share[1]}"


def pend_state(row: Row, unit: str) -> str:
    if row.job.state not in WAITING:
        return "NOTPEND"
    return "EPEND" if reasons.is_eligible(row.view, row.job) else "IPEND"


def pend_time(row: Row, unit: str) -> str:
    until = start_of(row.job) or jobfacts.end_of(row.job) or row.now
    return str(max(int(until) - int(row.job.submitted), 0))


def pend_reason(row: Row, unit: str) -> str:
    return reasons.key_text(row.view, row.job) + ";" if row.job.state in WAITING else ""


def cpu(row: Row, unit: str) -> str:
    return row.seconds(row.usage.cpu * row.factor, 1) if row.job.run is not None else ""


def ran(row: Row, unit: str) -> str:
    return row.seconds(run_time(row.job, row.now))


def idle(row: Row, unit: str) -> str:
    seconds = run_time(row.job, row.now)
    return f"{row.usage.cpu / seconds:.2f}" if seconds and row.job.outcome is None else ""


def usage(name: str) -> Value:
    """A size that is measured: a job that runs has one, be it nothing."""

    def value(row: Row, unit: str) -> str:
        size = getattr(row.usage, name)
        if row.job.run is None or not (size or row.usage.parts):
            return ""
        return row.size(size, unit) or _nothing(unit)

    return value


@from_text
def sub_cwd(row: Row, unit: str) -> str:
    return one_line(paragraphs.short_path(row.text.cwd, row.text.home))


@from_text
def exec_cwd(row: Row, unit: str) -> str:
    return one_line(jobfacts.execution_folder(row.job, row.text))


@from_text
def image(row: Row, unit: str) -> str:
    return image_of(row.request.cluster, row.spec, row.text.software)


def aps(row: Row, unit: str) -> str:
    if row.job.state not in WAITING:
        return ""
    return shares.priority_text(row.priorities.find(row.job))


def limit(name: str) -> Value:
    """The size of a limit; one of 0, such as of core files, is a limit too."""

    def value(row: Row, unit: str) -> str:
        size = getattr(row.spec.limits, name)
        return "" if size is None else row.size(size, unit) or _nothing(unit)

    return value


def _nothing(unit: str) -> str:
    """A size of 0."""
    return f"0{unit}" if unit else "0 Mbytes"


def run_limit(row: Row, unit: str) -> str:
    return _minutes_of(row, limit_of(row.job, row.spec))


def estimate(row: Row, unit: str) -> str:
    """``-We``."""
    return _minutes_of(row, row.spec.estimate or None)


def _minutes_of(row: Row, limit: int | None) -> str:
    if limit is None:
        return ""
    if row.hms:
        return formats.hms(limit)
    host = row.spec.run_host or ("" if is_absolute(row.request.cluster, row.spec) else row.spec.from_host)
    return f"{limit / 60:.1f}/{host}" if host else f"{limit / 60:.1f}"


def gpu_alloc(row: Row, unit: str) -> str:
    words = []
    for part in jobfacts.parts_of(row.job):
        host = row.view.cluster.hosts.rows.get(part.host)
        known = {gpu.uuid: gpu.index for gpu in host.facts.gpus} if host is not None else {}
        if part.gpus:
            words.append(f"{part.host}:{','.join(str(known.get(gpu, gpu)) for gpu in part.gpus)}")
    return ";".join(words)


def gpu_num(row: Row, unit: str) -> str:
    held = sum(len(part.gpus) for part in jobfacts.parts_of(row.job))
    if row.spec.roles:
        asked = sum(role.count * role.gpus for role in row.spec.roles)
    else:
        asked = (row.gpu.num or 0) if row.gpu is not None else 0
    return str(held or asked or "")


def hrusage(row: Row, unit: str) -> str:
    return " ".join(
        f"{host}:mem:{row.size(usage.rss, unit) or '0'},swap:{row.size(usage.swap, unit) or '0'}"
        for host, usage in row.usage.parts.items()
    )


def efficiency(name: str) -> Value:
    """``cpu``, ``peak`` or ``memory`` of ``Efficiency``."""

    def value(row: Row, unit: str) -> str:
        if row.job.run is None or not row.usage.known:
            return ""
        return f"{getattr(jobfacts.Efficiency(row.job, row.spec, row.usage, row.now), name):.2f}%"

    return value


def cpu_peak(row: Row, unit: str) -> str:
    return f"{row.usage.cpu_peak:.2f}" if row.usage.known else ""


def cpu_peak_after(row: Row, unit: str) -> str:
    return row.seconds(row.usage.cpu_peak_after) if row.usage.known else ""


def priority(row: Row, unit: str) -> str:
    return str(row.spec.priority) if row.spec.priority >= 0 else ""


def threads(row: Row, unit: str) -> str:
    return str(row.usage.threads or "") if row.job.run is not None else ""


def yes(test: Callable[[Row], bool]) -> Value:
    return lambda row, unit: "Y" if test(row) else "N"
