"""From a row of cells to the fields of a record, by a table of parameter name -> parser.

Rule: the field's name is the parameter's in lower case (`JL/U` -> `jl_u`), so a table needs no second name.
"""

from collections.abc import Collection, Mapping
from typing import Any

from config.model.problems import Problems
from config.text.sections import Cell, Row
from config.values import known, without_effect
from config.values import share as vs
from config.values import values as v

Table = Mapping[str, v.Parser]

RESOURCE_LIMITS: Table = {
    "RUNLIMIT": v.time_limit,
    "CPULIMIT": v.time_limit,
    "MEMLIMIT": v.size_limit,
    "SWAPLIMIT": v.size_limit,
    "FILELIMIT": v.size_limit,
    "DATALIMIT": v.size_limit,
    "STACKLIMIT": v.size_limit,
    "CORELIMIT": v.size_limit,
    "PROCESSLIMIT": v.count_limit,
    "THREADLIMIT": v.count_limit,
    "TASKLIMIT": v.task_limit,
}

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

JOB_PARAMETERS: Table = {
    "DESCRIPTION": v.text,
    "RES_REQ": v.text,
    "GPU_REQ": v.text,
    "NICE": v.number(-20, 20),
    "RERUNNABLE": v.yes_no,
    "PRE_EXEC": v.text,
    "POST_EXEC": v.text,
    "HOST_PRE_EXEC": v.text,
    "HOST_POST_EXEC": v.text,
    "JOB_STARTER": v.text,
    "JOB_CONTROLS": v.job_controls,
    "REQUEUE_EXIT_VALUES": v.requeue_exit,
    "SUCCESS_EXIT_VALUES": v.exit_values,
    "MAX_JOB_REQUEUE": v.number(0),
    "MIG": v.minutes,
    "JOB_WARNING_ACTION": v.text,
    "JOB_ACTION_WARNING_TIME": v.minutes,
}

QUEUE: Table = {
    **RESOURCE_LIMITS,
    **JOB_PARAMETERS,
    "PRIORITY": v.number(1, 2**31 - 2),
    "ADMINISTRATORS": v.words,
    "USERS": v.words,
    "HOSTS": v.words,
    "QJOB_LIMIT": v.number(0),
    "UJOB_LIMIT": v.number(0),
    "PJOB_LIMIT": v.real(),
    "HJOB_LIMIT": v.number(0),
    "RUN_WINDOW": v.window_list,
    "DISPATCH_WINDOW": v.window_list,
    "NEW_JOB_SCHED_DELAY": v.second_count,
    "JOB_ACCEPT_INTERVAL": v.number(0),
    "DISPATCH_BY_QUEUE": v.yes_no,
    "HOSTLIMIT_PER_JOB": v.number(1),
    "DEFAULT_HOST_SPEC": v.text,
    "JOB_OVERRUN": v.minutes,
    "JOB_UNDERRUN": v.minutes,
    "JOB_IDLE": v.real(),
    "STOP_COND": v.text,
    "RESUME_COND": v.text,
    "EXCLUSIVE": v.exclusive,
    "INTERACTIVE": v.interactive,
    "CHKPNT": v.chkpnt,
    "PRE_POST_EXEC_USER": v.text,
    "TERMINATE_WHEN": v.terminate_when,
    "FAIRSHARE": v.fairshare,
    "HIST_HOURS": v.real(),
    "CPU_TIME_FACTOR": v.real(),
    "RUN_TIME_FACTOR": v.real(),
    "RUN_JOB_FACTOR": v.real(),
    "GPU_RUN_TIME_FACTOR": v.real(),
    "COMMITTED_RUN_TIME_FACTOR": v.real(),
    "ENABLE_HIST_RUN_TIME": v.yes_no,
    "ENABLE_GPU_HIST_RUN_TIME": v.yes_no,
    "RUN_TIME_DECAY": v.yes_no,
    "FAIRSHARE_QUEUES": vs.queue_names,
    "QUEUE_GROUP": vs.queue_names,
    "DISPATCH_ORDER": v.choice("QUEUE"),
    "ROUND_ROBIN_POLICY": v.yes_no,
    "DOMINANT_RESOURCES": vs.dominant,
    "APS_PRIORITY": vs.aps_priority,
    "PREEMPTION": v.preemption,
    "GANG": v.yes_no,
    "SCHEDULER": vs.scheduler,
    "PREEMPT_DELAY": v.second_count,
    "NO_PREEMPT_INTERVAL": v.minutes,
    "NO_PREEMPT_RUN_TIME": v.minutes_or_percent,
    "NO_PREEMPT_FINISH_TIME": v.minutes_or_percent,
    "MAX_JOB_PREEMPT": v.number(0),
    "WEIGHT": v.number(1),
    "CAPABILITY": v.number(0),
    "GUARANTEE": v.number(0),
    "RECLAIMABLE": v.yes_no,
    "SLOT_RESERVE": v.reserve_time,
    "RESOURCE_RESERVE": v.reserve_time,
    "BACKFILL": v.yes_no,
    "IGNORE_DEADLINE": v.yes_no,
    "LOCAL_MAX_PREEXEC_RETRY": v.number(0),
    "LOCAL_MAX_PREEXEC_RETRY_ACTION": v.choice("SUSPEND", "EXIT"),
    "IMPT_JOBBKLG": v.number(0),
    "MAX_RSCHED_TIME": v.number(0),
    "JOBS_PER_SCHED_CYCLE": v.number(1),
    "LEASE": v.positive_seconds,
    "LEASE_MARGIN": v.second_count,
    "HOST_TIMEOUT": v.positive_seconds,
}

APPLICATION: Table = {
    "RESIZABLE_JOBS": v.resizable,
    "RESIZE_NOTIFY_CMD": v.text,
    "DJOB_RESIZE_GRACE_PERIOD": v.second_count,
    **RESOURCE_LIMITS,
    **JOB_PARAMETERS,
    "RUNTIME": v.one_time,
    "CHKPNT_DIR": v.text,
    "CHKPNT_PERIOD": v.minutes,
    "CHKPNT_INITPERIOD": v.minutes,
    "CHKPNT_METHOD": v.text,
    "JOB_CWD": v.text,
    "TERMINATE_CONTROL": v.text,
    "SUSPEND_CONTROL": v.text,
    "RESUME_CONTROL": v.text,
    "JOB_INCLUDE_POSTPROC": v.yes_no,
    "JOB_POSTPROC_TIMEOUT": v.minutes,
    "JOB_PREPROC_TIMEOUT": v.minutes,
    "USE_PAM_CREDS": v.yes_no,
}

OTHER_NAMES = {
    "PROCLIMIT": "TASKLIMIT",
    "SWPLIMIT": "SWAPLIMIT",
    "QUEUE_DESCRIPTION": "DESCRIPTION",
    "JOBS_PER_SCHED": "JOBS_PER_SCHED_CYCLE",
    "RESOURCE_RESERVE_PER_SLOT": "RESOURCE_RESERVE_PER_TASK",
}
"""Older spellings that LSF still reads."""

UNSUPPORTED = {
    "lsb.queues": known.QUEUES,
    "lsb.applications": known.APPLICATIONS,
    "lsb.params": known.PARAMS,
    "lsb.resources": known.LIMITS,
}


def fill(row: Row, table: Table, scope: v.Scope, problems: Problems, owner: str, others: Collection[str] = ()) -> dict[str, Any]:
    """The row's known parameters as fields. `others` are names (upper case) that the caller reads itself."""
    fields: dict[str, Any] = {}
    for key, cell in row.cells.items():
        key = OTHER_NAMES.get(key, key)
        if key in others:
            continue
        parser = table.get(key)
        if parser is None:
            report_unknown(cell, owner, problems)
        elif cell.value not in ("", "-") and take(fields, key, cell, parser, scope, problems, owner):
            report_without_effect(cell, key, owner, problems)
    return fields


def take(fields: dict[str, Any], key: str, cell: Cell, parser: v.Parser, scope: v.Scope, problems: Problems, owner: str) -> bool:
    """Parse one cell into `fields`; what cannot be read is an error and leaves the default."""
    try:
        fields[key.lower().replace("/", "_")] = parser(cell.value, scope)
    except ValueError as wrong:
        problems.error(cell.place, f"{owner}: {cell.name}: {shortened(str(wrong))}")
        return False
    return True


def report_without_effect(cell: Cell, key: str, owner: str, problems: Problems) -> None:
    """A parameter that is read and changes nothing here: a note where nothing is missing without it, else a warning."""
    file = cell.place.kind
    if key in without_effect.NEEDLESS.get(file, ()):
        why = without_effect.BECAUSE.get(key, "")
        problems.note(cell.place, f"{owner}: {cell.name} is not needed by lava and has no effect{why and ': ' + why}")
    elif key in without_effect.MISSING.get(file, ()):
        problems.warn(cell.place, f"{owner}: {cell.name} is not supported by lava and has no effect")


def report_unknown(cell: Cell, owner: str, problems: Problems) -> None:
    if cell.name.upper() in without_effect.NEEDLESS.get(cell.place.kind, ()):
        report_without_effect(cell, cell.name.upper(), owner, problems)
    elif cell.name.upper() in UNSUPPORTED.get(cell.place.kind, ()):
        problems.warn(cell.place, f"{owner}: {cell.name} is not supported by lava and has no effect")
    else:
        problems.warn(cell.place, f"{owner}: unknown parameter {shortened(cell.name)}")


def shortened(text: str) -> str:
    """At most 200 characters, and printable: a file may hold anything."""
    text = "".join(char if char.isprintable() else "?" for char in text)
    return text if len(text) <= 200 else text[:197] + "..."
