"""Upgrades configurations stored by older versions to the form that ``Conf`` reads.

Until configuration values were typed, a stored ``Configured`` had other names for most parameters, and texts such as
``SUSPEND[…] TERMINATE[…]`` for some values. Rule: what has the names and types of today passes unchanged.
"""

from __future__ import annotations

from typing import Any

from config.model.values import RequeueExit
from lavad.store.errors import StoreCorrupt

Record = dict[str, Any]

_JOB = {
    "resreq": "res_req",
    "gpu": "gpu_req",
    "max_requeue": "max_job_requeue",
    "migrate_after": "mig",
    "warn_before": "job_action_warning_time",
    "warning_action": "job_warning_action",
}
_QUEUE = _JOB | {
    "admins": "administrators",
    "max_slots": "qjob_limit",
    "user_limit": "ujob_limit",
    "processor_limit": "pjob_limit",
    "host_limit": "hjob_limit",
    "hosts_a_job": "hostlimit_per_job",
    "new_job_delay": "new_job_sched_delay",
    "limit_host": "default_host_spec",
    "max_preexec": "local_max_preexec_retry",
    "pre_post_user": "pre_post_exec_user",
    "aps": "aps_priority",
}
_SPARED = {
    "ran": "no_preempt_run_time",
    "ends": "no_preempt_finish_time",
    "interval": "no_preempt_interval",
    "most": "max_job_preempt",
    "delay": "preempt_delay",
}
_EXCEPTIONS = {"overrun": "job_overrun", "underrun": "job_underrun", "idle": "job_idle"}
_SHARE = {
    "cpu_factor": "cpu_time_factor",
    "run_factor": "run_time_factor",
    "job_factor": "run_job_factor",
    "gpu_factor": "gpu_run_time_factor",
    "committed_factor": "committed_run_time_factor",
    "hist_run": "enable_hist_run_time",
    "hist_gpu": "enable_gpu_hist_run_time",
    "run_decay": "run_time_decay",
    "dominant": "dominant_resources",
    "turns": "round_robin",
}
_APP = _JOB | {
    "estimate": "runtime",
    "requeue": "requeue_exit_values",
    "pre_timeout": "job_preproc_timeout",
    "post_timeout": "job_postproc_timeout",
    "include_post": "job_include_postproc",
    "cwd": "job_cwd",
    "resizable": "resizable_jobs",
    "resize_command": "resize_notify_cmd",
    "resize_grace": "djob_resize_grace_period",
}
_PARAMS = {
    "default_queues": "default_queue",
    "max_array": "max_job_array_size",
    "terminate_interval": "job_terminate_interval",
    "priority_growth": "job_priority_over_time",
    "parallel_by_slot": "parallel_sched_by_slot",
    "unit_name": "lsf_unit_for_limits",
    "enforce": "lsb_resource_enforce",
    "root_jobs": "lsf_root_user",
    "parse_script": "lsb_bsub_parse_script",
    "stdout_direct": "lsb_stdout_direct",
    "host_timeout": "lava_host_timeout",
    "mail_to": "lsb_mailto",
    "dynamic_timeout": "lsf_dynamic_host_timeout",
    "lease": "lava_lease",
    "margin": "lava_lease_margin",
    "pend_level": "lsb_bjobs_pendreason_level",
    "short_hostlist": "lsb_short_hostlist",
    "hpc_allocation": "lsb_enable_hpc_allocation",
    "mod_all_jobs": "lsb_mod_all_jobs",
    "rusage_per_task": "resource_reserve_per_task",
    "sleep": "mbd_sleep_time",
    "accept_interval": "job_accept_interval",
    "backfill": "lava_backfill",
    "bjobs_format": "lsb_bjobs_format",
    "default_app": "default_application",
    "dep_last_sub": "job_dep_last_sub",
    "submit_hosts": "lava_submit_hosts",
    "record_days": "lava_record_days",
    "default_group": "default_jobgroup",
    "default_cwd": "default_job_cwd",
    "default_outdir": "default_job_outdir",
    "positions_by_admin": "job_position_control_by_admin",
    "max_messages": "max_job_msg_num",
    "pre_timeout": "job_preproc_timeout",
    "post_timeout": "job_postproc_timeout",
    "include_post": "job_include_postproc",
    "user_resume": "enable_user_resume",
    "group_clean": "job_group_clean",
    "consistent_exit": "lsb_bjobs_consistent_exit_code",
    "pack_weights": "lava_pack_weights",
    "run_warning": "job_action_warning_time",
    "job_memlimit": "lsb_job_memlimit",
    "unit_types": "compute_unit_types",
}
DEFAULT_WARNING = 600
"""Seconds that were stored where JOB_ACTION_WARNING_TIME is not set."""
_WHOLE_SECONDS = ("lava_host_timeout", "lava_lease", "lava_lease_margin", "lsf_dynamic_host_timeout")
_HOST = {"user_limit": "user_job_limit", "migrate_after": "mig"}
_USER = {"max_slots": "max_jobs", "processor_limit": "slots_per_processor", "max_pend": "max_pend_jobs"}


def upgraded(conf: Record) -> Record:
    """A stored configuration with the names and types of today. Raises StoreCorrupt."""
    try:
        _params(conf.get("params", {}))
        _pending(conf.get("params", {}), dict(conf.get("site_params", ())))
        for queue in conf.get("queues", ()):
            _queue(queue, conf)
        for app in conf.get("apps", ()):
            _rename(app, _APP)
            _values(app)
        for name, table in (("hosts", _HOST), ("users", _USER), ("limits", {"processor_slots": "slots_per_processor"})):
            for record in conf.get(name, ()):
                _rename(record, table)
        for partition in conf.get("partitions", ()):
            _rename(partition.get("share") or {}, _SHARE)
    except (AttributeError, LookupError, TypeError, ValueError) as wrong:
        raise StoreCorrupt(f"store is corrupt: a configuration does not read: {wrong}") from wrong
    return conf


def _rename(record: Record, table: dict[str, str]) -> None:
    for old, new in table.items():
        if old in record:
            record[new] = record.pop(old)


def _params(params: Record) -> None:
    _rename(params, _PARAMS)
    params.update({name: int(params[name]) for name in _WHOLE_SECONDS if name in params})
    if params.get("job_action_warning_time") == DEFAULT_WARNING:
        del params["job_action_warning_time"]
    marked = params.pop("unit_type", "")
    if marked:
        params["compute_unit_types"] = [word + "!" if word == marked else word for word in params["compute_unit_types"]]
    if params.pop("preempt_exclusive", False):
        params["preempt_jobtype"] = ["EXCLUSIVE"]


def _pending(params: Record, said: dict[str, str]) -> None:
    """What MAX_PEND_SLOTS says was stored as ``max_pend_jobs``, which counted slots."""
    if "MAX_PEND_SLOTS" in said and "max_pend_slots" not in params and "max_pend_jobs" in params:
        params["max_pend_slots"] = params.pop("max_pend_jobs")


def _queue(queue: Record, conf: Record) -> None:
    _rename(queue, _QUEUE)
    _values(queue)
    _rename(queue.get("share") or {}, _SHARE)
    spared, exceptions = queue.pop("spared", {}), queue.pop("exceptions", None) or {}
    queue.update({new: spared[old] for old, new in _SPARED.items() if old in spared})
    queue.update({new: exceptions[old] for old, new in _EXCEPTIONS.items() if old in exceptions})
    if "idle_after" in exceptions:
        conf.setdefault("params", {})["detect_idle_job_after"] = exceptions["idle_after"]
    if queue.pop("preexec_exit", False):
        queue["local_max_preexec_retry_action"] = "EXIT"
    if isinstance(queue.get("terminate_when"), str):
        queue["terminate_when"] = queue["terminate_when"].split()
    if isinstance(queue.get("preemption"), str):
        queue["preemption"] = _preemption(queue["preemption"])
    if isinstance(queue.get("fairshare"), str):
        pairs = (word.split(",") for word in queue["fairshare"].strip("[]").split("] ["))
        queue["fairshare"] = [(name, int(number)) for name, number in pairs]


def _values(record: Record) -> None:
    """What queues and application profiles have in common."""
    slots = [record.pop(name, default) for name, default in (("min_slots", 1), ("default_slots", 1), ("job_max_slots", None))]
    if slots != [1, 1, None]:
        record["tasklimit"] = dict(zip(("minimum", "default", "maximum"), slots, strict=True))
    if "checkpoint" in record:
        folder, _, period = record.pop("checkpoint").partition(" ")
        method, initial = record.pop("checkpoint_method", ""), record.pop("checkpoint_initial", 0)
        record["chkpnt"] = {"dir": folder, "period": int(period) * 60 if period else None, "method": method, "initial": initial}
    if isinstance(record.get("requeue_exit_values"), str):
        record["requeue_exit_values"] = RequeueExit.parse(record["requeue_exit_values"])
    if isinstance(record.get("success_exit_values"), str):
        record["success_exit_values"] = [int(word) for word in record["success_exit_values"].split()]
    if isinstance(record.get("job_controls"), str):
        record["job_controls"] = _controls(record["job_controls"])


def _controls(text: str) -> list[Record]:
    """`SUSPEND[…] TERMINATE[…]`; a control ends before the next one."""
    found: list[Record] = []
    rest = text
    while rest:
        action, _, rest = rest.partition("[")
        ends = [at for at in (rest.find(f"] {other}[") for other in ("SUSPEND", "RESUME", "TERMINATE")) if at >= 0]
        end = min(ends, default=len(rest) - 1)
        found.append({"action": action.strip(), "what": rest[:end]})
        rest = rest[end + 1 :]
    return found


def _preemption(text: str) -> Record:
    """`PREEMPTIVE[q+1 q2] PREEMPTABLE[q3]`."""
    found: Record = {}
    for part in text.replace("] ", "]\n").replace("PREEMPTIVE ", "PREEMPTIVE\n").splitlines():
        word, _, names = part.rstrip("]").partition("[")
        pairs = (name.partition("+") for name in names.split())
        listed = [(name, int(level) if level.isdecimal() else None) for name, _, level in pairs]
        found |= (
            {"preemptive": True, "preempts": listed} if word == "PREEMPTIVE" else {"preemptable": True, "preempted_by": listed}
        )
    return found
