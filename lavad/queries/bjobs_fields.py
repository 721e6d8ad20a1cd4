"""The fields of ``bjobs -o``: name, alias, recommended width, and how each value is read off a job.

Rule: a value that does not exist is "" (the table shows ``-``, JSON ""). What lava does not have is always "".
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from lavad.core.gpureq import GpuReq
from lavad.core.ids import index_of, job_of
from lavad.core.job import Job
from lavad.core.spec import JobText, Spec
from lavad.core.states import WAITING, JobState, TermReason
from lavad.queries import exceptions, jobfacts, promises, reasons, resreqs, times, units
from lavad.queries.bjobs_rows import finish_text, left_text
from lavad.queries.jobfacts import Usage
from lavad.queries.request import Request
from lavad.queries.view import NO_TEXT


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
        """Go to a job."""
        self.job = job
        self.spec = self.view.spec(job)
        self.text = text
        self._usage = None

    @property
    def usage(self) -> Usage:
        """What it uses or used."""
        if self._usage is None:
            self._usage = Usage(self.job, self.view)
        return self._usage

    def seconds(self, value: float, digits: int = 0) -> str:
        """A duration: ``12 second(s)``, or hh:mm:ss with -hms."""
        return times.hms(value) if self.hms else f"{value:.{digits}f} second(s)"

    def size(self, kb: float, unit: str) -> str:
        """A size, in the unit asked for."""
        if not kb:
            return ""
        return units.unit_text(kb, unit) if unit else units.bytes_text(kb)

    @property
    def gpu(self) -> GpuReq | None:
        """What it asks of GPUs."""
        return self.spec.gpu


Value = Callable[[Row, str], str]


class JobField(msgspec.Struct, frozen=True):
    """A field."""

    name: str
    width: int
    value: Value


def _none(row: Row, unit: str) -> str:
    return ""


def _spec(name: str) -> Value:
    return lambda row, unit: str(getattr(row.spec, name))


def _promised(row: Row, unit: str) -> str:
    promise = promises.find(row.view, row.job) if row.job.state is JobState.PEND else None
    return times.short(promise.start) if promise is not None and promise.start else ""


def _planned_end(row: Row, unit: str) -> str:
    promise = promises.find(row.view, row.job) if row.job.state is JobState.PEND else None
    limit = row.spec.limits.run
    return times.short(promise.start + limit) if promise is not None and promise.start and limit else ""


def _is_orphan(row: Row) -> bool:
    return row.job.depend is not None and row.job.depend.orphan


def _cluster(row: Row, unit: str) -> str:
    return row.view.name if row.job.run is not None else ""


def _warn_time(row: Row, unit: str) -> str:
    return f"{row.text.warn_before / 60:.1f}" if row.text.warn_before else ""


def _pend_limit(field: str) -> Value:
    def value(row: Row, unit: str) -> str:
        minutes = getattr(row.text, field)
        return f"{minutes}.0" if minutes else ""

    return value


def _text(name: str) -> Value:
    return lambda row, unit: str(getattr(row.text, name))


def _of_job(read: Callable[[Job], object]) -> Value:
    return lambda row, unit: str(read(row.job))


def _dependency(row: Row, unit: str) -> str:
    depend = row.job.depend
    return depend.text if depend is not None else row.spec.dependency


def _number(value: float | None) -> str:
    return "" if value is None else str(value)


def _exit_reason(row: Row, unit: str) -> str:
    outcome = row.job.outcome
    if outcome is None or outcome.reason is TermReason.NONE:
        return outcome.why if outcome is not None else ""
    return jobfacts.term_text(outcome.reason)


def _kill_reason(row: Row, unit: str) -> str:
    return row.job.outcome.why if row.job.outcome is not None else ""


def _alloc(row: Row, unit: str) -> str:
    return jobfacts.exec_hosts(row.job, row.view)


def _first_host(row: Row, unit: str) -> str:
    parts = jobfacts.parts_of(row.job)
    return parts[0].host if parts else ""


def _start(row: Row, unit: str) -> str:
    at = jobfacts.start_of(row.job)
    return times.short(at) if at else ""


def _at(name: str) -> Value:
    def read(row: Row, unit: str) -> str:
        at: float = getattr(row.spec, name)
        return times.short(at) if at else ""

    return read


def _time_left(row: Row, unit: str) -> str:
    left = jobfacts.time_left(row.job, row.spec, row.view, row.now)
    if left is None:
        return ""
    return f"{times.hms(left) if row.hms else left_text(left)} L"


def _finish(row: Row, unit: str) -> str:
    shown = finish_text(row.request, row.job)
    return "" if shown == "-" else shown


def _complete(row: Row, unit: str) -> str:
    share = jobfacts.complete(row.job, row.spec, row.view, row.now)
    return "" if share is None else f"{share:.2f}% L"


def _pend_state(row: Row, unit: str) -> str:
    if row.job.state not in WAITING:
        return "NOTPEND"
    return "EPEND" if reasons.is_eligible(row.view, row.job) else "IPEND"


def _pend_time(row: Row, unit: str) -> str:
    return str(int(max((jobfacts.start_of(row.job) or jobfacts.end_of(row.job) or row.now) - row.job.submitted, 0)))


def _pend_reason(row: Row, unit: str) -> str:
    return reasons.key_text(row.view, row.job) + ";" if row.job.state in WAITING else ""


def _cpu(row: Row, unit: str) -> str:
    return row.seconds(row.usage.cpu * row.factor, 1) if row.job.run is not None else ""


def _run_time(row: Row, unit: str) -> str:
    return row.seconds(jobfacts.run_time(row.job, row.now))


def _idle(row: Row, unit: str) -> str:
    ran = jobfacts.run_time(row.job, row.now)
    return f"{row.usage.cpu / ran:.2f}" if ran and row.job.outcome is None else ""


def _usage(name: str) -> Value:
    return lambda row, unit: row.size(getattr(row.usage, name), unit) if row.job.run is not None else ""


def _limit(name: str) -> Value:
    return lambda row, unit: row.size(getattr(row.spec.limits, name) or 0, unit)


def _run_limit(row: Row, unit: str) -> str:
    limit = row.spec.limits.run
    if limit is None:
        return ""
    if row.hms:
        return times.hms(limit)
    host = row.spec.run_host or ("" if row.view.params.abs_runlimit else row.spec.from_host)
    return f"{limit / 60:.1f}/{host}" if host else f"{limit / 60:.1f}"


def _gpu_alloc(row: Row, unit: str) -> str:
    words = []
    for part in jobfacts.parts_of(row.job):
        host = row.view.cluster.hosts.rows.get(part.host)
        known = {gpu.uuid: gpu.index for gpu in host.facts.gpus} if host is not None else {}
        if part.gpus:
            words.append(f"{part.host}:{','.join(str(known.get(gpu, gpu)) for gpu in part.gpus)}")
    return ";".join(words)


def _gpu_num(row: Row, unit: str) -> str:
    held = sum(len(part.gpus) for part in jobfacts.parts_of(row.job))
    return str(held or (row.gpu.num if row.gpu is not None and row.gpu.num else "")) if held or row.gpu else ""


def _hrusage(row: Row, unit: str) -> str:
    return " ".join(
        f"{host}:mem:{row.size(usage.rss, unit) or '0'},swap:{row.size(usage.swap, unit) or '0'}"
        for host, usage in row.usage.parts.items()
    )


def _cpu_efficiency(row: Row, unit: str) -> str:
    ran = jobfacts.run_time(row.job, row.now) * jobfacts.slots_of(row.job, row.spec)
    return f"{row.usage.cpu / ran * 100:.2f}%" if ran and row.usage.known else ""


def _mem_efficiency(row: Row, unit: str) -> str:
    asked = sum(amount for part in jobfacts.parts_of(row.job) for name, amount in part.reserved if name == "mem")
    if not row.usage.known:
        return ""
    return f"{row.usage.max_mem / 1024 / asked * 100:.2f}%" if asked else "0.00%"


def _priority(row: Row, unit: str) -> str:
    return str(row.spec.priority) if row.spec.priority >= 0 else ""


def _threads(row: Row, unit: str) -> str:
    return str(row.usage.threads or "") if row.job.run is not None else ""


def _yes(test: Callable[[Row], bool]) -> Value:
    return lambda row, unit: "Y" if test(row) else "N"


_TABLE: tuple[tuple[str, int, Value], ...] = (
    ("jobid id", 7, _of_job(lambda job: job_of(job.key))),
    ("jobindex", 8, _of_job(lambda job: index_of(job.key))),
    ("stat", 5, _of_job(lambda job: job.state.name)),
    ("user", 7, _spec("user")),
    ("user_group ugroup", 15, _spec("user_group")),
    ("queue", 10, _spec("queue")),
    ("job_name name", 10, _of_job(lambda job: job.name)),
    ("job_description description", 17, _text("description")),
    ("proj_name proj project", 11, _spec("project")),
    ("application app", 13, _spec("app")),
    ("service_class sla", 13, _none),
    ("job_group group jobgroup", 10, _spec("group")),
    ("job_priority priority", 12, _priority),
    ("rsvid", 40, _spec("reservation")),
    ("esub", 20, _text("esub")),
    ("kill_reason", 50, _kill_reason),
    *((name, 50, _none) for name in (
        "suspend_reason", "resume_reason", "kill_issue_host", "suspend_issue_host", "resume_issue_host",
    )),
    ("dependency", 15, _dependency),
    ("pend_reason", 11, _pend_reason),
    ("charged_saap saap", 50, _none),
    ("command cmd", 15, _text("command")),
    ("pre_exec_command pre_cmd", 16, _text("pre_exec")),
    ("post_exec_command post_cmd", 17, _text("post_exec")),
    ("resize_notification_command resize_cmd", 27, _spec("resize_command")),
    ("pids", 20, lambda row, unit: ",".join(map(str, row.usage.pids))),
    ("exit_code", 10, lambda row, unit: _number(jobfacts.exit_code(row.job))),
    ("exit_reason", 50, _exit_reason),
    ("interactive", 11, _yes(lambda row: row.spec.interactive)),
    ("from_host", 11, _spec("from_host")),
    ("first_host", 11, _first_host),
    ("exec_host", 11, _alloc),
    ("nexec_host", 10, _of_job(lambda job: len(jobfacts.parts_of(job)) or "")),
    ("ask_hosts", 30, lambda row, unit: " ".join(row.spec.hosts)),
    ("alloc_slot", 20, _alloc),
    ("nalloc_slot", 10, _of_job(lambda job: sum(part.slots for part in jobfacts.parts_of(job)) or "")),
    ("host_file hostfile", 10, _text("host_file")),
    ("exclusive", 13, _yes(lambda row: row.spec.exclusive)),
    ("nreq_slot", 10, _spec("slots")),
    ("srcjobid", 8, _none), ("dstjobid", 8, _none), ("source_cluster srcluster", 15, _none),
    ("forward_cluster fwd_cluster", 15, _none), ("forward_time fwd_time", 15, _none), ("reserved", 10, _none),
    ("hrusage", 50, _hrusage), ("energy", 10, _none), ("gpfsio", 10, _none),
    ("submit_time", 15, lambda row, unit: times.short(row.job.submitted)),
    ("start_time", 15, _start),
    ("estimated_start_time estart_time", 20, _promised),
    ("specified_start_time sstart_time", 20, _at("begin")),
    ("specified_terminate_time sterminate_time", 24, _at("deadline")),
    ("time_left", 11, _time_left),
    ("finish_time", 16, _finish),
    ("estimated_run_time ertime", 20, _none),
    ("ru_utime", 12, lambda row, unit: row.seconds(row.usage.utime, 2) if row.usage.utime or row.job.outcome else ""),
    ("ru_stime", 12, lambda row, unit: row.seconds(row.usage.stime, 2) if row.usage.stime or row.job.outcome else ""),
    ("%complete", 11, _complete),
    ("warning_action warn_act", 15, _text("warn_action")), ("action_warning_time warn_time", 19, _warn_time),
    ("pendstate", 9, _pend_state),
    ("pend_time effective_pend_time", 12, _pend_time),
    ("ependtime", 12, lambda row, unit: _pend_time(row, unit) if _pend_state(row, unit) != "IPEND" else ""),
    ("ipendtime", 12, lambda row, unit: _pend_time(row, unit) if _pend_state(row, unit) == "IPEND" else ""),
    ("estimated_sim_start_time esstart_time", 24, _none),
    ("planned_start_time plan_start_time", 20, _promised), ("plan_finish_time", 20, _planned_end),
    ("cpu_used", 10, _cpu),
    ("run_time", 15, _run_time),
    ("idle_factor", 11, _idle),
    ("exception_status except_stat", 16, lambda row, unit: " ".join(exceptions.of(row.job, row.view, row.now))),
    ("slots", 5, lambda row, unit: str(jobfacts.slots_of(row.job, row.spec))),
    ("mem", 10, _usage("mem")), ("max_mem", 10, _usage("max_mem")), ("avg_mem", 10, _usage("avg_mem")),
    ("memlimit", 10, _limit("mem")), ("swap", 15, _usage("swap")), ("swaplimit", 10, _limit("swap")),
    ("cpu_efficiency", 10, _cpu_efficiency),
    ("average_cpu_efficiency avg_cpu_efficiency", 10, _cpu_efficiency),
    ("cpu_peak peak_cpu", 10, _none), ("cpu_peak_efficiency", 10, _none), ("cpu_peak_reached_duration", 10, _none),
    ("mem_efficiency", 10, _mem_efficiency),
    ("gpu_num gnum", 10, _gpu_num),
    ("gpu_mode gmode", 20, lambda row, unit: (row.gpu.mode or "") if row.gpu else ""),
    ("gpu_alloc galloc", 30, _gpu_alloc),
    ("j_exclusive j_excl", 15, lambda row, unit: ("Y" if row.gpu.j_exclusive else "N") if row.gpu else ""),
    ("min_req_proc", 12, _spec("slots")), ("max_req_proc", 12, _spec("max_slots")),
    ("combined_resreq cresreq", 20, lambda row, unit: resreqs.combined(row.view, row.spec)),
    ("effective_resreq eresreq", 17, lambda row, unit: resreqs.effective(row.view, row.spec, row.job)),
    ("network_req", 15, _none),
    ("filelimit", 10, _limit("file")), ("corelimit", 10, _limit("core")), ("stacklimit", 10, _limit("stack")),
    ("processlimit", 12, lambda row, unit: _number(row.spec.limits.processes)),
    ("runtimelimit rtlimit", 12, _run_limit),
    ("hostlimit", 10, _none), ("plimit", 10, _pend_limit("pend_limit")), ("eplimit", 10, _pend_limit("eligible_limit")),
    ("plimit_remain", 15, _none),
    ("eplimit_remain", 16, _none), ("effective_plimit", 18, _none), ("effective_eplimit", 19, _none),
    ("nthreads", 10, _threads),
    ("input_file", 10, _text("input")), ("output_file", 11, _text("output")), ("error_file", 10, _text("error")),
    ("output_dir", 15, _text("output_dir")), ("sub_cwd", 10, _text("cwd")), ("exec_home", 10, _text("home")),
    ("exec_cwd", 10, _of_job(lambda job: job.run.cwd if job.run is not None else "")),
    ("licproject licproj", 20, _none), ("block", 10, _none),
    ("immediate_orphan_term immtermination", 10, _yes(_is_orphan)),
    ("host_pref", 10, _none), ("image_name", 20, _none),
    ("image_user", 20, _none), ("container_name", 20, _none), ("attribute ar", 20, _none), ("cname", 15, _cluster),
)  # fmt: skip

FIELDS: dict[str, JobField] = {}
for _names, _width, _value in _TABLE:
    _first, *_others = _names.split()
    _field = JobField(_first, _width, _value)
    for _alias in (_first, *_others):
        FIELDS[_alias] = _field

NEEDS_TEXT = frozenset({
    "job_description", "esub", "command", "pre_exec_command", "post_exec_command", "input_file", "output_file",
    "error_file", "output_dir", "sub_cwd", "exec_home", "host_file", "plimit", "eplimit", "warning_action",
    "action_warning_time",
})  # fmt: skip
