"""The parameters of lsb.queues and lsb.applications: one row each.

A row says how the value is read, and how ``bqueues -l``, ``bqueues -o`` and ``bapp -l`` show it. The record's field of the
same name in lower case says its type and default (``config.model.queue``). Rule: rows stand in the order of ``bqueues -l``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from config.model.queue import FOR_EVER
from config.model.values import Chkpnt, Preemption
from config.values import planning
from config.values import share as vs
from config.values import values as v
from config.values.containers import container
from config.values.names import host_words
from config.values.variables import env_vars, show_env_vars


def plain(value: object) -> str:
    """A value as LSF's files have it; "" for one that is not set."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


class Line(NamedTuple):
    """`title:  text` among the actions of ``bqueues -l``, left out where the text is ""."""

    title: str
    text: Callable[[Any], str] = plain


class Column(NamedTuple):
    """A field of ``bqueues -o``: its names with blanks between them, the usual one first, and its width."""

    names: str
    width: int


class Parameter(NamedTuple):
    """A parameter of a queue or an application profile."""

    name: str
    parse: v.Parser
    lines: tuple[Line, ...] = ()
    column: Column | None = None
    is_limit: bool = False
    """Shown under its name among the limits of ``bqueues -l``."""

    @property
    def field(self) -> str:
        """Its field in the record."""
        return self.name.lower()


def _shown(name: str, parse: v.Parser, width: int = 0, text: Callable[[Any], str] = plain) -> Parameter:
    """Shown under its own name: with ``bqueues -l``, and with -o where it has a width."""
    return Parameter(name, parse, (Line(name, text),), Column(name.lower(), width) if width else None)


def _minutes(value: int | None) -> str:
    return "" if value is None else f"{value // 60} minutes"


def _some_minutes(value: int) -> str:
    return _minutes(value) if value else ""


def _some_seconds(value: int | None) -> str:
    return "" if value is None else f"{value} seconds"


def _minutes_or_percent(value: int | None) -> str:
    return f"{-value}%" if value is not None and value < 0 else _minutes(value)


def _ranges(value: tuple[tuple[str, float, float], ...]) -> str:
    return " ".join(f"[{name}={least:g},{most:g}]" for name, least, most in value)


def _seconds(value: int) -> str:
    return f"{value} seconds" if value else ""


def _yes_no(value: bool | None) -> str:
    """Of a parameter that counts against the queue's when it says no, too."""
    return "" if value is None else "yes" if value else "no"


def _estimate(seconds: int) -> str:
    return f"{seconds / 60:.1f} minutes" if seconds else ""


def _periods(count: int) -> str:
    return f"{count} periods" if 0 < count < FOR_EVER else "for ever" if count else ""


def _folder(value: Chkpnt | None) -> str:
    return value.dir if value else ""


def _period(value: Chkpnt | None) -> str:
    return str(value.period // 60) if value and value.period else ""


def _lists(rule: Preemption) -> str:
    return str(rule) if rule.preempts or rule.preempted_by else ""


_LIMITS = (
    Parameter("RUNLIMIT", v.time_limit),
    Parameter("CPULIMIT", v.time_limit),
    Parameter("MEMLIMIT", v.size_limit),
    Parameter("SWAPLIMIT", v.size_limit),
    Parameter("FILELIMIT", v.size_limit),
    Parameter("DATALIMIT", v.size_limit),
    Parameter("STACKLIMIT", v.size_limit),
    Parameter("CORELIMIT", v.size_limit),
    Parameter("PROCESSLIMIT", v.count_limit),
    Parameter("THREADLIMIT", v.count_limit),
    Parameter("TASKLIMIT", v.task_limit),
)

MOST_IN_CHUNK = 1000
"""Jobs of a chunk: it is dispatched in one commit."""

QUEUE_PARAMETERS = (
    *_LIMITS,
    Parameter("DESCRIPTION", v.text, column=Column("description desc", 50)),
    Parameter("PRIORITY", v.number(1, 2**31 - 2), column=Column("priority prio", 10)),
    Parameter("NICE", v.number(-20, 20), column=Column("nice", 6)),
    Parameter("ADMINISTRATORS", v.words, column=Column("admins", 30)),
    Parameter("USERS", v.words, column=Column("users", 30)),
    Parameter("HOSTS", host_words, column=Column("hosts", 30)),
    Parameter("QJOB_LIMIT", v.number(0), column=Column("max", 10)),
    Parameter("UJOB_LIMIT", v.number(0), column=Column("jl_u jlu", 10)),
    Parameter("PJOB_LIMIT", v.real(), column=Column("jl_p jlp", 10)),
    Parameter("HJOB_LIMIT", v.number(0), column=Column("jl_h jlh", 10)),
    Parameter("RUN_WINDOW", v.window_list, column=Column("run_window", 30)),
    Parameter("DISPATCH_WINDOW", v.window_list, column=Column("dispatch_window", 30)),
    Parameter("NEW_JOB_SCHED_DELAY", v.second_count, column=Column("new_job_sched_delay", 20)),
    Parameter("JOB_ACCEPT_INTERVAL", v.number(0), column=Column("job_accept_interval", 20)),
    Parameter("DISPATCH_BY_QUEUE", v.yes_no),
    Parameter("HOSTLIMIT_PER_JOB", v.number(1), is_limit=True),
    Parameter("DEFAULT_HOST_SPEC", v.text),
    Parameter("JOB_OVERRUN", v.minutes),
    Parameter("JOB_UNDERRUN", v.minutes),
    Parameter("JOB_IDLE", v.real()),
    Parameter("MIG", v.minutes),
    Parameter("EXCLUSIVE", v.exclusive, column=Column("exclusive", 10)),
    Parameter("INTERACTIVE", v.interactive, column=Column("interactive", 12)),
    Parameter("JOB_CONTROLS", v.job_controls, column=Column("job_controls", 30)),
    Parameter("TERMINATE_WHEN", v.terminate_when, column=Column("terminate_when", 30)),
    Parameter("FAIRSHARE", v.fairshare),
    Parameter("HIST_HOURS", v.real()),
    Parameter("CPU_TIME_FACTOR", v.real()),
    Parameter("RUN_TIME_FACTOR", v.real()),
    Parameter("RUN_JOB_FACTOR", v.real()),
    Parameter("GPU_RUN_TIME_FACTOR", v.real()),
    Parameter("COMMITTED_RUN_TIME_FACTOR", v.real()),
    Parameter("ENABLE_HIST_RUN_TIME", v.yes_no),
    Parameter("ENABLE_GPU_HIST_RUN_TIME", v.yes_no),
    Parameter("RUN_TIME_DECAY", v.yes_no),
    Parameter("FAIRSHARE_QUEUES", vs.queue_names),
    Parameter("QUEUE_GROUP", vs.queue_names),
    Parameter("DISPATCH_ORDER", v.choice("QUEUE")),
    Parameter("ROUND_ROBIN_POLICY", v.yes_no),
    Parameter("DOMINANT_RESOURCES", vs.dominant),
    Parameter("APS_PRIORITY", vs.aps_priority),
    Parameter("GANG", v.yes_no),
    Parameter("SCHEDULER", vs.scheduler),
    Parameter("WEIGHT", vs.weight),
    Parameter("CAPABILITY", vs.amounts),
    Parameter("GUARANTEE", vs.amounts),
    Parameter("RECLAIMABLE", v.yes_no),
    Parameter("SLA_GUARANTEES_IGNORE", v.yes_no),
    Parameter("RESOURCE_RESERVE", v.reserve_time),
    Parameter("BACKFILL", v.yes_no, column=Column("backfill", 8)),
    _shown("INTERRUPTIBLE_BACKFILL", v.number(1), text=_seconds),
    Parameter("IGNORE_DEADLINE", v.yes_no),
    Parameter("IMPT_JOBBKLG", v.number(0)),
    Parameter("MAX_RSCHED_TIME", v.number(0)),
    Parameter("JOBS_PER_SCHED_CYCLE", v.number(1)),
    Parameter("LEASE", v.positive_seconds),
    Parameter("LEASE_MARGIN", v.second_count),
    Parameter("HOST_TIMEOUT", v.positive_seconds),
    # --- the actions of bqueues -l
    _shown("PRE_EXEC", v.text, 30),
    _shown("POST_EXEC", v.text, 30),
    _shown("HOST_PRE_EXEC", v.text),
    _shown("HOST_POST_EXEC", v.text),
    _shown("PRE_POST_EXEC_USER", v.text),
    _shown("REQUEUE_EXIT_VALUES", v.requeue_exit, 20),
    _shown("SUCCESS_EXIT_VALUES", v.exit_values),
    _shown("RES_REQ", v.text, 30),
    _shown("GPU_REQ", v.gpu_req, 30),
    _shown("RESRSV_LIMIT", planning.reservation_limits, text=_ranges),
    Parameter("SLOT_RESERVE", v.reserve_time, (Line("Maximum slot reservation time", _periods),), Column("slot_reserve", 12)),
    _shown("RESUME_COND", v.text, 30),
    _shown("STOP_COND", v.text, 30),
    _shown("JOB_STARTER", v.text, 30),
    _shown("PREEMPTION", v.preemption, 30, _lists),
    _shown("PREEMPT_DELAY", v.second_count, text=_some_seconds),
    _shown("NO_PREEMPT_INTERVAL", v.minutes, text=_minutes),
    _shown("NO_PREEMPT_RUN_TIME", v.minutes_or_percent, text=_minutes_or_percent),
    _shown("NO_PREEMPT_FINISH_TIME", v.minutes_or_percent, text=_minutes_or_percent),
    _shown("MAX_JOB_PREEMPT", v.number(0)),
    _shown("MAX_TOTAL_TIME_PREEMPT", v.minutes, text=_minutes),
    Parameter("CHKPNT", v.chkpnt, (Line("CHKPNTDIR", _folder), Line("CHKPNTPERIOD", _period)), Column("chkpnt", 30)),
    Parameter("CHKPNT_METHOD", v.text),
    _shown("RERUNNABLE", v.yes_no, 10),
    _shown("MAX_JOB_REQUEUE", v.number(0)),
    _shown("LOCAL_MAX_PREEXEC_RETRY", v.number(0)),
    _shown("LOCAL_MAX_PREEXEC_RETRY_ACTION", v.choice("SUSPEND", "EXIT")),
    _shown("CONTAINER", container, 30, lambda value: value.text if value else ""),
    _shown("CHUNK_JOB_SIZE", v.number(1, MOST_IN_CHUNK), 14),
    _shown("ESTIMATED_RUNTIME", v.one_time, text=_minutes),
    _shown("JOB_SIZE_LIST", planning.job_sizes),
    _shown("PEND_TIME_LIMIT", v.minutes, text=_some_minutes),
    _shown("ELIGIBLE_PEND_TIME_LIMIT", v.minutes, text=_some_minutes),
    _shown("EXTENDABLE_RUNLIMIT", planning.extendable_runlimit),
    _shown("JOB_ACTION_WARNING_TIME", v.minutes, text=_minutes),
    _shown("JOB_WARNING_ACTION", v.text),
)

_OF_QUEUES = {parameter.name: parameter for parameter in QUEUE_PARAMETERS}
_BOTH_SHOW = (
    "RES_REQ",
    "GPU_REQ",
    "PRE_EXEC",
    "POST_EXEC",
    "HOST_PRE_EXEC",
    "HOST_POST_EXEC",
    "REQUEUE_EXIT_VALUES",
    "SUCCESS_EXIT_VALUES",
    "JOB_STARTER",
    "CONTAINER",
    "MAX_JOB_REQUEUE",
    "LOCAL_MAX_PREEXEC_RETRY",
    "LOCAL_MAX_PREEXEC_RETRY_ACTION",
    "CHUNK_JOB_SIZE",
    "PREEMPT_DELAY",
    "NO_PREEMPT_INTERVAL",
    "NO_PREEMPT_RUN_TIME",
    "NO_PREEMPT_FINISH_TIME",
    "MAX_JOB_PREEMPT",
    "MAX_TOTAL_TIME_PREEMPT",
    "ESTIMATED_RUNTIME",
    "JOB_SIZE_LIST",
    "PEND_TIME_LIMIT",
    "ELIGIBLE_PEND_TIME_LIMIT",
    "EXTENDABLE_RUNLIMIT",
    "JOB_ACTION_WARNING_TIME",
    "JOB_WARNING_ACTION",
)
APPLICATION_PARAMETERS = (
    *_LIMITS,
    Parameter("DESCRIPTION", v.text),
    *(_OF_QUEUES[name] for name in _BOTH_SHOW),
    _shown("NICE", v.number(-20, 20)),
    _shown("RERUNNABLE", v.yes_no, text=_yes_no),
    _shown("MIG", v.minutes, text=_minutes),
    Parameter("JOB_CONTROLS", v.job_controls),
    _shown("RESIZABLE_JOBS", v.resizable),
    _shown("RESIZE_NOTIFY_CMD", v.text),
    _shown("DJOB_RESIZE_GRACE_PERIOD", v.second_count),
    _shown("DJOB_ENV_SCRIPT", v.text),
    _shown("DJOB_COMMFAIL_ACTION", v.choice("KILL_TASKS", "IGNORE_COMMFAIL")),
    _shown("DJOB_HB_INTERVAL", v.positive_seconds),
    _shown("DJOB_RU_INTERVAL", v.positive_seconds),
    _shown("DJOB_DISABLED", v.yes_no),
    _shown("RTASK_GONE_ACTION", v.choices("KILLJOB_TASKDONE", "KILLJOB_TASKEXIT", "IGNORE_TASKCRASH")),
    _shown("ABS_RUNLIMIT", v.yes_no),
    _shown("MEMLIMIT_TYPE", v.choices("JOB", "PROCESS", "TASK")),
    _shown("RUNTIME", v.one_time, text=_estimate),
    Parameter("CHKPNT_DIR", v.text),
    Parameter("CHKPNT_PERIOD", v.minutes),
    Parameter("CHKPNT_INITPERIOD", v.minutes),
    Parameter("CHKPNT_METHOD", v.text),
    _shown("JOB_CWD", v.text),
    _shown("JOB_CWD_TTL", v.number(0)),
    _shown("ENV_VARS", env_vars, text=show_env_vars),
    Parameter("TERMINATE_CONTROL", v.text),
    Parameter("SUSPEND_CONTROL", v.text),
    Parameter("RESUME_CONTROL", v.text),
    _shown("JOB_INCLUDE_POSTPROC", v.yes_no, text=_yes_no),
    _shown("JOB_POSTPROC_TIMEOUT", v.minutes, text=_minutes),
    _shown("JOB_PREPROC_TIMEOUT", v.minutes, text=_minutes),
    Parameter("USE_PAM_CREDS", v.yes_no),
)

QUEUE = {parameter.name: parameter.parse for parameter in QUEUE_PARAMETERS}
APPLICATION = {parameter.name: parameter.parse for parameter in APPLICATION_PARAMETERS}

LIMIT_NAMES = {
    "runlimit": "run",
    "cpulimit": "cpu",
    "memlimit": "mem",
    "swaplimit": "swap",
    "filelimit": "file",
    "datalimit": "data",
    "stacklimit": "stack",
    "corelimit": "core",
    "processlimit": "processes",
    "threadlimit": "threads",
}
"""Parameter to field of ``Limits``."""
