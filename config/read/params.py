"""lsb.params and the parameters of lsf.conf that lava acts on -> SiteParams."""

import contextlib
from collections.abc import Callable, Mapping

from config.check import why_least_margin
from config.lsfconf import LOG_LEVELS, open_quote, parse_lsf_conf
from config.model.problems import Place, Problems
from config.model.site_params import SiteParams
from config.text.sections import Cell, Section
from config.values import clusterwide as vc
from config.values import planning
from config.values import values as v
from config.values.fields import Fields, Table, field_of, fill, find_value, report_unknown
from config.values.local_resources import local_resources
from config.values.url_passwords import without_password
from proto.database_url import find_kind, why_no_database
from proto.listen_address import split_address

Places = dict[str, Place]
"""Parameter of lsf.conf to where it is set; the last place holds."""
LSB_PARAMS: Table = {
    "DEFAULT_QUEUE": v.words,
    "DEFAULT_PROJECT": v.text,
    "DEFAULT_APPLICATION": v.text,
    "DEFAULT_USER_GROUP": v.text,
    "DEFAULT_JOBGROUP": v.text,
    "DEFAULT_HOST_SPEC": v.text,
    "ADVRSV_USER_LIMIT": v.number(1),
    "DEFAULT_RESREQ_ORDER": planning.host_order,
    "DEFAULT_JOB_CWD": v.text,
    "DEFAULT_JOB_OUTDIR": v.text,
    "MAX_JOBID": v.number(999_999, 2_147_483_646),
    "MAX_JOB_ARRAY_SIZE": v.number(1, 2_147_483_646),
    "MAX_USER_PRIORITY": v.number(1),
    "JOB_PRIORITY_OVER_TIME": v.priority_over_time,
    "MAX_PEND_JOBS": v.number(0),
    "MAX_PEND_SLOTS": v.number(0),
    "MAX_USER_RECORDS": v.number(1000),
    "MAX_JOB_MSG_NUM": v.number(0),
    "JOB_DEP_LAST_SUB": v.yes_no,
    "ORPHAN_JOB_TERM_GRACE_PERIOD": v.number(0, 2_147_483_646),
    "JOB_GROUP_CLEAN": v.yes_no,
    "JOB_POSITION_CONTROL_BY_ADMIN": v.yes_no,
    "ENABLE_USER_RESUME": v.yes_no,
    "STRICT_UG_CONTROL": v.yes_no,
    "ENFORCE_ONE_UG_LIMITS": v.yes_no,
    "MBD_SLEEP_TIME": v.positive_seconds,
    "SBD_SLEEP_TIME": v.positive_seconds,
    "MBD_REFRESH_TIME": v.second_count,
    "JOB_ACCEPT_INTERVAL": v.number(0),
    "JOB_SCHEDULING_INTERVAL": v.scheduling_interval,
    "CHUNK_JOB_DURATION": v.minutes,
    "CLEAN_PERIOD": v.second_count,
    "CLEAN_PERIOD_DONE": v.second_count,
    "MAX_JOB_NUM": v.number(0),
    "SECURE_JOB_INFO_LEVEL": v.number(0, 5),
    "SECURE_INFODIR_USER_ACCESS": v.choice("Y", "N", "G"),
    "ENABLE_JOB_INFO_BY_ADMIN_ROLE": v.choices("USERGROUP", "QUEUE", "CLUSTER"),
    "ACCT_ARCHIVE_SIZE": v.number(0),
    "ACCT_ARCHIVE_AGE": v.number(0),
    "MAX_ACCT_ARCHIVE_FILE": v.number(0),
    "JOB_TERMINATE_INTERVAL": v.second_count,
    "PRIVILEGED_USER_FORCE_BKILL": v.yes_no,
    "MAX_SBD_FAIL": v.number(1),
    "SUB_TRY_INTERVAL": v.positive_seconds,
    "PEND_REASON_UPDATE_INTERVAL": v.second_count,
    "CONDENSE_PENDING_REASONS": v.yes_no,
    "BJOBS_RES_REQ_DISPLAY": v.choice("NONE", "BRIEF", "FULL"),
    "ABS_RUNLIMIT": v.yes_no,
    "JOB_INCLUDE_POSTPROC": v.yes_no,
    "JOB_POSTPROC_TIMEOUT": v.minutes,
    "JOB_PREPROC_TIMEOUT": v.minutes,
    "JOB_CWD_TTL": v.number(0),
    "MAX_PREEXEC_RETRY": v.number(0),
    "PREEXEC_EXCLUDE_HOST_EXIT_VALUES": v.requeue_exit,
    "LOCAL_MAX_PREEXEC_RETRY": v.number(0),
    "LOCAL_MAX_PREEXEC_RETRY_ACTION": v.choice("SUSPEND", "EXIT"),
    "MAX_JOB_REQUEUE": v.number(0),
    "BSWITCH_MODIFY_RUSAGE": v.yes_no,
    "GLOBAL_EXIT_RATE": v.number(0),
    "JOB_EXIT_RATE_DURATION": v.minutes,
    "EADMIN_TRIGGER_DURATION": vc.some_minutes,
    "EXTEND_JOB_EXCEPTION_NOTIFICATION": v.yes_no,
    "EGROUP_UPDATE_INTERVAL": v.host_hours,
    "EXIT_RATE_TYPE": v.choices("JOBEXIT", "JOBEXIT_NONLSF", "JOBINIT", "HPCINIT"),
    "PG_SUSP_IT": v.second_count,
    "DETECT_IDLE_JOB_AFTER": v.minutes,
    "JOB_SPOOL_DIR": v.text,
    "JOB_WARNING_ACTION": v.text,
    "JOB_ACTION_WARNING_TIME": v.minutes,
    "PARALLEL_SCHED_BY_SLOT": v.yes_no,
    "RESOURCE_RESERVE_PER_TASK": v.yes_no,
    "COMPUTE_UNIT_TYPES": v.words,
    "USE_SUSP_SLOTS": v.yes_no,
    "PREEMPT_FOR": v.preempt_for,
    "PREEMPT_JOBTYPE": v.choices("EXCLUSIVE", "BACKFILL", "AFFINITY"),
    "PREEMPT_DELAY": v.second_count,
    "NO_PREEMPT_INTERVAL": v.minutes,
    "PREEMPTABLE_RESOURCES": v.words,
    "PREEMPTION_WAIT_TIME": v.second_count,
    "NO_PREEMPT_RUN_TIME": v.minutes_or_percent,
    "NO_PREEMPT_FINISH_TIME": v.minutes_or_percent,
    "MAX_JOB_PREEMPT": v.number(0),
    "MAX_TOTAL_TIME_PREEMPT": v.minutes,
    "ESTIMATED_RUNTIME": v.one_time,
    "RELAX_JOB_DISPATCH_ORDER": v.yes_no,
    "HIST_HOURS": v.real(),
    "CPU_TIME_FACTOR": v.real(),
    "RUN_TIME_FACTOR": v.real(),
    "RUN_JOB_FACTOR": v.real(),
    "FAIRSHARE_ADJUSTMENT_FACTOR": v.real(),
    "GPU_RUN_TIME_FACTOR": v.real(),
    "ENABLE_HIST_RUN_TIME": v.yes_no,
    "ENABLE_GPU_HIST_RUN_TIME": v.yes_no,
    "RUN_TIME_DECAY": v.yes_no,
    "COMMITTED_RUN_TIME_FACTOR": v.real(),
}


LSF_CONF: Table = {
    "LSB_BSUB_PARSE_SCRIPT": v.yes_no,
    "LAVA_PRIORITY_CLASSES": vc.priority_classes,
    "LSB_STDOUT_DIRECT": v.yes_no,
    "LSF_INTERACTIVE_STDERR": v.yes_no,
    "LSB_SUBK_SHOW_EXEC_HOST": v.yes_no,
    "LSB_SUBK_SHOW_JOBID": v.yes_no,
    "LSF_REMOTE_COPY_CMD": v.text,
    "LSB_SHORT_HOSTLIST": v.yes_no,
    "LSB_DISPLAY_YEAR": v.yes_no,
    "LSB_ENABLE_HPC_ALLOCATION": v.yes_no,
    "LSB_BJOBS_PENDREASON_LEVEL": v.number(0, 3),
    "LSB_BJOBS_FORMAT": v.text,
    "LSB_BHOSTS_FORMAT": v.text,
    "LSB_BQUEUES_FORMAT": v.text,
    "LSB_BUSERS_FORMAT": v.text,
    "LSF_LSHOSTS_FORMAT": v.text,
    "LSF_LSLOAD_FORMAT": v.text,
    "LSB_BJOBS_CONSISTENT_EXIT_CODE": v.yes_no,
    "LSB_DEFAULT_JOBMAXSIZE": v.text,
    "LSB_MOD_ALL_JOBS": v.yes_no,
    "LSB_SET_TMPDIR": v.yes_no_or_variable,
    "LSB_JOB_TMPDIR": v.text,
    "LSB_ECHKPNT_METHOD": vc.checkpoint_method,
    "LSB_ECHKPNT_METHOD_DIR": v.text,
    "LSB_ECHKPNT_KEEP_OUTPUT": v.yes_no,
    "LSB_ESUB_METHOD": v.text,
    "LSB_KEEP_SYSDEF_RLIMIT": v.yes_no,
    "LSF_COMPAT_VERSION": v.text,
    "LSF_TMPDIR": v.text,
    "LSF_UNIT_FOR_LIMITS": v.unit,
    "LSB_GPU_REQ": v.gpu_req,
    "LSB_RESOURCE_ENFORCE": v.enforce,
    "LSF_CGROUP_CORE_AUTO_CREATE": v.yes_no,
    "LSB_REQUEUE_TO_BOTTOM": v.yes_no,
    "LSB_STOP_IGNORE_IT": v.yes_no,
    "LSB_EXCLUDE_HOST_PERIOD": v.number(0),
    "LSB_JOB_MEMLIMIT": v.yes_no,
    "LSB_MEMLIMIT_ENFORCE": v.yes_no,
    "LSB_JOB_CPULIMIT": v.yes_no,
    "LSB_USE_SEQUENTIAL_SIGNAL": v.yes_no,
    "LSB_SIGSTOP": vc.signal_name,
    "LSF_ROOT_USER": v.yes_no,
    "LSF_MASTER_LIST": vc.host_names,
    "LSB_SHAREDIR": v.text,
    "LSF_CONFDIR": v.text,
    "LSB_CONFDIR": v.text,
    "LSF_LOGDIR": v.text,
    "LSF_LOG_MASK": v.choice(*LOG_LEVELS),
    "LAVA_LOG_FORMAT": v.choice("TEXT", "JSON"),
    "LSF_BINDIR": v.text,
    "LSF_SERVERDIR": v.text,
    "LSF_LIBDIR": v.text,
    "LSF_DYNAMIC_HOST_TIMEOUT": v.host_hours,
    "LSF_LOCAL_RESOURCES": local_resources,
    "LSF_DYNAMIC_HOST_WAIT_TIME": v.number(0),
    "LSF_MANDIR": v.text,
    "LSF_TOP": v.text,
    "LSF_STRIP_DOMAIN": vc.colon_list,
    "LSB_MAILTO": vc.mail_pattern,
    "LSB_MAILPROG": v.text,
    "LSB_MAILSERVER": v.text,
    "LSB_MAILSIZE_LIMIT": v.number(0),
    "LSB_JOB_REPORT_MAIL": v.yes_no,
    "LSB_POSTEXEC_SEND_MAIL": v.yes_no,
    "LSB_DISABLE_RERUN_POST_EXEC": v.yes_no,
    "LAVA_RUNDIR": vc.path,
    "LAVA_SPOOLDIR": vc.path,
    "LAVA_DATABASE_URL": v.text,
    "LAVA_DATABASE_URL_FILE": vc.path,
    "LAVA_HOST_TIMEOUT": v.positive_seconds,
    "LAVA_BACKFILL": vc.backfill,
    "LAVA_PACK_WEIGHTS": vc.pack_weights,
    "LAVA_LEASE": v.positive_seconds,
    "LAVA_LEASE_MARGIN": v.second_count,
    "LAVA_HEARTBEAT": v.positive_seconds,
    "LAVA_SAMPLE_PERIOD": v.positive_seconds,
    "LAVA_HANG_TIME": v.second_count,
    "LAVA_QUERY_TIME": v.positive_seconds,
    "LAVA_USER_STORE": v.number(0),
    "LAVA_CHKPNT_STAGE_DIR": vc.path,
    "LAVA_CHKPNT_TRIES": v.number(1),
    "LAVA_MEMORY_FIRST": vc.memory_size,
    "LAVA_MEMORY_MAX": vc.memory_size,
    "LAVA_SHARED_DIRS": v.words,
    "LAVA_WARNING_MAX": v.second_count,
    "LAVA_HOST_REFUSALS": v.number(0),
    "LAVA_HOST_RETRY": v.positive_seconds,
    "LAVA_GPU_HEALTH": v.text,
    "LAVA_HEALTH": v.text,
    "LAVA_HEALTH_PERIOD": v.positive_seconds,
    "LAVA_HEALTH_TIMEOUT": v.positive_seconds,
    "LAVA_METRICS_ADDRESS": v.text,
    "LAVA_TRACES": vc.traces,
    "LAVA_WEB_ADDRESS": v.text,
    "LAVA_WEB_URL": v.text,
    "LAVA_WEB_CERT": vc.path,
    "LAVA_WEB_KEY": vc.path,
    "LAVA_WEB_PROXIES": v.words,
    "LAVA_WEB_PROXY_HEADER": v.text,
    "LAVA_WEB_PROXY_SECRET_FILE": vc.path,
    "LAVA_WEB_USER": v.text,
    "LAVA_WEB_ADMIN": v.yes_no,
    "LAVA_SUBMIT_HOSTS": vc.host_names,
    "LAVA_ADMIN_HOSTS": vc.host_names,
    "LAVA_PORT": v.number(0, 65535),
    "LAVA_TLS_DIR": vc.path,
    "LAVA_TLS_MASTER_NAME": v.text,
    "LAVA_CERT_WARN_DAYS": v.number(0, 3650),
    "LAVA_FENCE": v.text,
    "LAVA_KEY_FILE": v.text,
    "LAVA_MAX_SCRIPT": v.number(1, 12),
    "LAVA_OUTPUTDIR": vc.path,
    "LAVA_OUTPUT_DAYS": v.real(),
    "LAVA_OUTPUT_LIMIT": v.number(0),
    "LAVA_OUTPUT_USER_LIMIT": v.number(0),
    "LAVA_OUTPUT_RESERVE": v.number(0),
    "LAVA_JOB_PIDS": v.number(0),
    "LAVA_CHKPNT_COPY_DIR": vc.path,
    "LAVA_CHKPNT_COPY_MAX": v.number(1),
    "LAVA_CHKPNT_COPY_WAIT": v.second_count,
    "LAVA_CHKPNT_KEEP": v.number(1, 1000),
    "LAVA_CHKPNT_TIMEOUT": v.number(1),
    "LAVA_CRIU": v.text,
    "LAVA_RECORD_DAYS": v.real(),
    "LAVA_EVENT_FILES": v.number(0),
    "LAVA_AUDIT": v.text,
    "LAVA_HISTORY_DAYS": v.real(),
    "LAVA_HISTORY_JOBS": v.number(0, 2_000_000_000),
    "LAVA_MPI_INTERFACE": v.text,
    "LAVA_GPUS": v.number(0, 1024),
}

NEWER_LSF_NAMES = {"LSF_MASTER_LIST": "LSF_MGMT_LIST"}
"""What LSF calls some parameters now; where a file has both, the newer name counts."""


def read_lsf_text(text: str, file: str, problems: Problems) -> tuple[dict[str, str], Fields, Places]:
    """-> (lsf.conf as it stands, the fields of SiteParams it sets, where)."""
    entries, bad = parse_lsf_conf(text)
    for number in bad:
        problems.error(Place(file, number), "not NAME=value")
    older = {newer: name for name, newer in NEWER_LSF_NAMES.items()}
    are_set = {name for name, value, _ in entries if value}
    conf: dict[str, str] = {}
    fields: Fields = {}
    places: Places = {}
    for name, value, number in entries:
        place = Place(file, number)
        if name in conf:
            problems.warn(place, f"{name} is set twice; this one holds")
        conf[name] = value
        if quote := open_quote(value):
            problems.error(place, f"{name}: the quotation mark {quote} is not closed")
            continue
        if (newer := NEWER_LSF_NAMES.get(name, "")) in are_set:
            problems.warn(place, f"{name} has no effect, as {newer} is set: the same by its newer name")
            continue
        key = older.get(name, name)
        places[key] = place
        if key in LSF_CONF:
            if value:
                cell = Cell(name, value, place)
                found = find_value(cell, key, LSF_CONF[key], v.Scope(), problems, "lsf.conf")
                if found is not None:
                    fields[field_of(key)] = found
        else:
            report_unknown(Cell(name, value, place), "lsf.conf", problems)
    return conf, fields, places


def settings_of(conf: Mapping[str, str]) -> SiteParams:
    """What lsf.conf alone says; for what cannot be read, which ``badmin ckconfig`` tells of, the default."""
    fields: Fields = {}
    for key, parse in LSF_CONF.items():
        value = next((conf[name] for name in (NEWER_LSF_NAMES.get(key, ""), key) if conf.get(name)), "")
        with contextlib.suppress(ValueError):
            if value:
                fields[field_of(key)] = parse(value, v.Scope())
    return SiteParams(**fields)


def read_lsb_params(sections: list[Section], scope: v.Scope, problems: Problems) -> Fields:
    fields: Fields = {}
    for section in sections:
        if section.name.lower() != "parameters":
            problems.warn(section.place, f"unknown section {section.name}")
            continue
        for row in section.rows:
            fields |= fill(row, LSB_PARAMS, scope, problems, "section Parameters")
            others = [word for word in row.text("PREEMPT_FOR").split() if word in v.PREEMPT_FOR[3:]]
            if others:
                text = f"section Parameters: PREEMPT_FOR: {' '.join(others)} is not supported by lava and has no effect"
                problems.warn(row.cells["PREEMPT_FOR"].place, text)
    return fields


def params_as_written(sections: list[Section]) -> tuple[tuple[str, str], ...]:
    """Every parameter that has a value, known or not; the last of a name holds."""
    found: dict[str, str] = {}
    for section in sections:
        for row in section.rows:
            found.update({cell.name.upper(): cell.value for cell in row.cells.values() if cell.value not in ("", "-")})
    return tuple(found.items())


def params_of(fields: Fields, places: Places, problems: Problems) -> SiteParams:
    """The record, with what must hold between its fields."""

    def place(*names: str) -> Place:
        """Of the first of these parameters that lsf.conf sets; others have their defaults, which go together."""
        return next(places[name] for name in names if name in places)

    params = SiteParams(**fields)
    timeout = params.lava_host_timeout
    if params.lava_heartbeat * 2 > timeout:
        text = f"LAVA_HOST_TIMEOUT {timeout} s is less than two of LAVA_HEARTBEAT {params.lava_heartbeat} s"
        problems.error(place("LAVA_HOST_TIMEOUT", "LAVA_HEARTBEAT"), text)
    if params.lava_lease < timeout:
        text = f"LAVA_LEASE {params.lava_lease} s is shorter than LAVA_HOST_TIMEOUT {timeout} s"
        problems.error(place("LAVA_LEASE", "LAVA_HOST_TIMEOUT"), text)
    if params.lava_lease_margin < params.least_margin:
        text = f"LAVA_LEASE_MARGIN {params.lava_lease_margin} s is too short: {why_least_margin(params)}"
        problems.error(place("LAVA_LEASE_MARGIN", "LAVA_HOST_TIMEOUT"), text)
    if params.lsf_cgroup_core_auto_create and "cpu" not in params.lsb_resource_enforce:
        text = "LSF_CGROUP_CORE_AUTO_CREATE has no effect: LSB_RESOURCE_ENFORCE has no cpu"
        problems.warn(place("LSF_CGROUP_CORE_AUTO_CREATE"), text)
    if params.lava_fence and not params.lava_fence.startswith("/"):
        problems.error(place("LAVA_FENCE"), f"LAVA_FENCE {params.lava_fence}: not the path of a program")
    for name, address in (("LAVA_METRICS_ADDRESS", params.lava_metrics_address), ("LAVA_WEB_ADDRESS", params.lava_web_address)):
        try:
            split_address(address or "0")
        except ValueError as error:
            problems.error(place(name), f"{name} {error}")
    _check_database(params, place, problems)
    return params


def _check_database(params: SiteParams, place: Callable[[str], Place], problems: Problems) -> None:
    if params.lava_database_url and (why := why_no_database(params.lava_database_url)):
        problems.error(place("LAVA_DATABASE_URL"), f"LAVA_DATABASE_URL: {why}")
    if len(set(params.lsf_master_list)) > 1 and params.lava_tls_dir and not _has_server(params):
        text = "LSF_MASTER_LIST: a second master has a store of its own, as the store is SQLite; LAVA_DATABASE_URL names another"
        problems.warn(place("LSF_MASTER_LIST"), text)
    if without_password(params.lava_database_url) != params.lava_database_url:
        text = "LAVA_DATABASE_URL holds a password that every user can read: use LAVA_DATABASE_URL_FILE"
        problems.warn(place("LAVA_DATABASE_URL"), text)


def _has_server(params: SiteParams) -> bool:
    """Whether the store may be one that several masters share; what LAVA_DATABASE_URL_FILE has is lavad's alone to read."""
    return bool(params.lava_database_url_file) or find_kind(params.lava_database_url) == "postgresql"
