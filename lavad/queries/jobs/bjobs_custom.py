"""bjobs -o and -json: the fields (name, aliases, width and value as LSF's manual lists them), and rows of chosen ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from lavad.core.job.chunk import slots_in
from lavad.core.job.job import Job
from lavad.core.job.spec import NO_TEXT
from lavad.core.lang.ids import index_of, job_of
from lavad.queries.facts import jobfacts, queuefacts, resources, visibility
from lavad.queries.frame import columns, formats
from lavad.queries.frame.columns import Custom, Named
from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.jobs import bjobs_values as v
from lavad.queries.jobs.bjobs_rows import Form
from lavad.queries.jobs.bjobs_values import Row, Value


class JobField(Named, frozen=True):
    """A field of a job; ``value`` gets the job's row and the unit asked for."""

    value: Value


_TABLE: tuple[tuple[str, int, Value], ...] = (
    ("jobid id", 7, v.of_job(lambda job: job_of(job.key))),
    ("jobindex", 8, v.of_job(lambda job: index_of(job.key))),
    ("stat", 5, v.of_job(lambda job: job.state.name)),
    ("user", 7, v.spec("user")),
    ("user_group ugroup", 15, v.spec("user_group")),
    ("queue", 10, v.spec("queue")),
    ("job_name name", 10, v.of_job(lambda job: job.name)),
    ("job_description description", 17, v.text("description")),
    ("proj_name proj project", 11, v.spec("project")),
    ("application app", 13, v.spec("app")),
    ("service_class sla", 13, v.service_class),
    ("job_group group jobgroup", 10, v.spec("group")),
    ("job_priority priority", 12, v.priority),
    ("rsvid", 40, v.spec("reservation")),
    ("esub", 20, v.text("esub")),
    ("kill_reason", 50, v.kill_reason),
    ("suspend_reason", 50, v.suspend_reason),
    ("resume_reason", 50, v.resume_reason),
    *(
        (name, 50, v.none)
        for name in (
            "kill_issue_host",
            "suspend_issue_host",
            "resume_issue_host",
        )
    ),
    ("dependency", 15, v.dependency),
    ("pend_reason", 11, v.pend_reason),
    ("charged_saap saap", 50, v.none),
    ("command cmd", 15, v.text("command")),
    ("pre_exec_command pre_cmd", 16, v.text("pre_exec")),
    ("post_exec_command post_cmd", 17, v.text("post_exec")),
    ("resize_notification_command resize_cmd", 27, v.spec("resize_command")),
    ("pids", 20, lambda row, unit: ",".join(map(str, row.usage.pids))),
    ("exit_code", 10, lambda row, unit: v.number(jobfacts.exit_code(row.job))),
    ("exit_reason", 50, v.exit_reason),
    ("interactive", 11, v.yes(lambda row: row.spec.interactive)),
    ("from_host", 11, v.spec("from_host")),
    ("first_host", 11, v.first_host),
    ("exec_host", 11, v.alloc),
    ("nexec_host", 10, v.of_job(lambda job: len(jobfacts.parts_of(job)) or "")),
    ("ask_hosts", 30, lambda row, unit: " ".join(row.spec.hosts)),
    ("alloc_slot", 20, v.alloc),
    ("nalloc_slot", 10, v.of_job(lambda job: sum(map(slots_in, jobfacts.parts_of(job))) or "")),
    ("host_file hostfile", 10, v.text("host_file")),
    ("exclusive", 13, v.yes(lambda row: row.spec.exclusive)),
    ("nreq_slot", 10, v.spec("slots")),
    ("srcjobid", 8, v.none),
    ("dstjobid", 8, v.none),
    ("source_cluster srcluster", 15, v.none),
    ("forward_cluster fwd_cluster", 15, v.none),
    ("forward_time fwd_time", 15, v.none),
    ("reserved", 10, v.none),
    ("hrusage", 50, v.hrusage),
    ("energy", 10, v.none),
    ("gpfsio", 10, v.none),
    ("submit_time", 15, lambda row, unit: formats.short_time(row.job.submitted)),
    ("start_time", 15, v.start),
    ("estimated_start_time estart_time", 20, v.reserved_start),
    ("specified_start_time sstart_time", 20, v.at("begin")),
    ("specified_terminate_time sterminate_time", 24, v.at("deadline")),
    ("time_left", 11, v.time_left),
    ("finish_time", 16, v.finish),
    ("estimated_run_time ertime", 20, v.estimate),
    ("ru_utime", 12, lambda row, unit: row.seconds(row.usage.utime, 2) if row.usage.utime or row.job.outcome else ""),
    ("ru_stime", 12, lambda row, unit: row.seconds(row.usage.stime, 2) if row.usage.stime or row.job.outcome else ""),
    ("%complete", 11, v.complete),
    ("warning_action warn_act", 15, v.text("warn_action")),
    ("action_warning_time warn_time", 19, v.warn_time),
    ("pendstate", 9, v.pend_state),
    ("pend_time effective_pend_time", 12, v.pend_time),
    ("ependtime", 12, lambda row, unit: v.pend_time(row, unit) if v.pend_state(row, unit) != "IPEND" else ""),
    ("ipendtime", 12, lambda row, unit: v.pend_time(row, unit) if v.pend_state(row, unit) == "IPEND" else ""),
    ("estimated_sim_start_time esstart_time", 24, v.none),
    ("planned_start_time plan_start_time", 20, v.reserved_start),
    ("plan_finish_time", 20, v.reserved_end),
    ("cpu_used", 10, v.cpu),
    ("run_time", 15, v.ran),
    ("idle_factor", 11, v.idle),
    ("exception_status except_stat", 16, lambda row, unit: " ".join(queuefacts.job_exceptions(row.job, row.view, row.now))),
    ("slots", 5, lambda row, unit: str(jobfacts.slots_of(row.job, row.spec))),
    ("mem", 10, v.usage("mem")),
    ("max_mem", 10, v.usage("max_mem")),
    ("avg_mem", 10, v.usage("avg_mem")),
    ("memlimit", 10, v.limit("mem")),
    ("swap", 15, v.usage("swap")),
    ("swaplimit", 10, v.limit("swap")),
    ("cpu_peak_efficiency", 10, v.efficiency("peak")),
    ("cpu_efficiency", 10, v.efficiency("peak")),
    ("average_cpu_efficiency avg_cpu_efficiency", 10, v.efficiency("cpu")),
    ("cpu_peak peak_cpu", 10, v.cpu_peak),
    ("cpu_peak_reached_duration", 10, v.cpu_peak_after),
    ("mem_efficiency", 10, v.efficiency("memory")),
    ("gpu_num gnum", 10, v.gpu_num),
    ("gpu_mode gmode", 20, lambda row, unit: (row.gpu.mode or "") if row.gpu else ""),
    ("gpu_alloc galloc", 30, v.gpu_alloc),
    ("j_exclusive j_excl", 15, lambda row, unit: ("Y" if row.gpu.j_exclusive else "N") if row.gpu else ""),
    ("min_req_proc", 12, v.spec("slots")),
    ("max_req_proc", 12, v.spec("max_slots")),
    ("combined_resreq cresreq", 20, lambda row, unit: resources.combined(row.view, row.spec)),
    ("effective_resreq eresreq", 17, lambda row, unit: resources.effective(row.view, row.spec, row.job)),
    ("network_req", 15, v.none),
    ("filelimit", 10, v.limit("file")),
    ("corelimit", 10, v.limit("core")),
    ("stacklimit", 10, v.limit("stack")),
    ("processlimit", 12, lambda row, unit: v.number(row.spec.limits.processes)),
    ("runtimelimit rtlimit", 12, v.run_limit),
    ("hostlimit", 10, v.none),
    ("plimit", 10, v.pend_limit(False, effective=False)),
    ("eplimit", 10, v.pend_limit(True, effective=False)),
    ("plimit_remain", 15, v.pend_limit(False, left=True)),
    ("eplimit_remain", 16, v.pend_limit(True, left=True)),
    ("effective_plimit", 18, v.pend_limit(False)),
    ("effective_eplimit", 19, v.pend_limit(True)),
    ("nthreads", 10, v.threads),
    ("input_file", 10, v.text("input")),
    ("output_file", 11, v.text("output")),
    ("error_file", 10, v.text("error")),
    ("output_dir", 15, v.text("output_dir")),
    ("sub_cwd", 10, v.sub_cwd),
    ("exec_home", 10, v.text("home")),
    ("exec_cwd", 10, v.exec_cwd),
    ("licproject licproj", 20, v.none),
    ("block", 10, v.none),
    ("immediate_orphan_term immtermination", 10, v.yes(v.is_orphan)),
    ("host_pref", 10, v.none),
    ("image image_name", 20, v.image),
    ("ctxuser image_user", 20, v.none),
    ("container_name", 20, v.none),
    ("attribute ar", 20, v.none),
    ("cname", 15, v.cluster),
    ("aps", 10, v.aps),
    ("longjobid", 20, v.none),
    ("k8s", 10, v.none),
)

FIELDS: dict[str, JobField] = {}
for _names, _width, _value in _TABLE:
    _field = JobField(_names.split()[0], _width, _value)
    FIELDS.update(dict.fromkeys(_names.split(), _field))


_OF_SUMMARY = (
    "jobid", "jobindex", "stat", "user", "queue", "job_name", "proj_name", "pids", "from_host", "exec_host", "nexec_host",
    "first_host", "submit_time", "start_time", "time_left", "finish_time", "%complete", "cpu_used", "slots", "mem", "swap",
    "forward_cluster", "forward_time", "run_time",
)  # fmt: skip
SUMMARY = frozenset(name for name, field in FIELDS.items() if field.name in _OF_SUMMARY)
"""Fields that are summary information: others are ``-`` where no more may be seen."""
DEFAULT = "jobid user stat queue from_host exec_host job_name submit_time"
_BATCH = 500


def _rows(request: Request, form: Form, custom: Custom, jobs: Iterator[Job]) -> Iterator[list[str]]:
    values = [(FIELDS[column.name].value, column.unit) for column in custom.columns]
    needs_text = any(v.reads_text(FIELDS[column.name].value) for column in custom.columns)
    row = Row(request, form.hms, form.factor)
    summary = [column.name in SUMMARY for column in custom.columns]
    hides = visibility.is_restricted(request.cluster.conf, request.caller)
    while batch := list(islice(jobs, _BATCH)):
        texts = request.view.texts(batch) if needs_text else {}
        for job in batch:
            row.take(job, texts.get(job.key, NO_TEXT))
            cells = [value(row, unit) for value, unit in values]
            if hides and not visibility.sees(request, row.spec, detail=True):
                cells = [cell if shown else "-" for cell, shown in zip(cells, summary, strict=True)]
            yield cells


def show(request: Request, form: Form, jobs: Iterator[Job]) -> Iterator[Shown]:
    custom = form.custom
    if custom is None:
        return
    for line in columns.table(custom, _rows(request, form, custom, jobs), form.header):
        yield out(line)


def show_json(request: Request, form: Form, jobs: Iterator[Job], missing: list[str]) -> Iterator[Shown]:
    """JSON; an unknown id is a record with its error. It begins with their number, so jobs are counted first."""
    custom = form.custom
    if custom is None:
        return
    found = list(jobs)
    records = (columns.record(custom, values) for values in _rows(request, form, custom, iter(found)))
    unknown = ({"JOBID": word, "ERROR": f"Job <{word}> is not found"} for word in missing)
    for piece in columns.json_pieces("bjobs", "JOBS", len(found) + len(missing), chain(records, unknown)):
        yield out(piece)
