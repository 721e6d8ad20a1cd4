"""The configuration in force: what queues leave open is filled in from lsb.params, amounts are in one unit, groups in full."""

from __future__ import annotations

import fnmatch
from typing import Any

from msgspec.structs import replace

from config.model.cluster import ClusterConfig, HostConfig, ResourceConfig, UserConfig
from config.model.params import Params as FileParams
from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import FairShare
from lavad.core.lang.resreq.text import in_mb
from lavad.core.site.conf import Conf, Params, PartitionConf, ResourceConf, UnitConf

FACTORS = (
    "hist_hours",
    "cpu_time_factor",
    "run_time_factor",
    "run_job_factor",
    "gpu_run_time_factor",
    "committed_run_time_factor",
    "enable_hist_run_time",
    "enable_gpu_hist_run_time",
    "run_time_decay",
)
"""Parameters of fair share that a queue has of its own or from lsb.params."""
FILLED = (
    "max_job_requeue",
    "local_max_preexec_retry",
    "local_max_preexec_retry_action",
    "preempt_delay",
    "no_preempt_interval",
    "no_preempt_run_time",
    "no_preempt_finish_time",
    "max_job_preempt",
)
"""Other parameters of queues that lsb.params has a default for."""
_OWN_SHARE = (*FACTORS, "fairshare_queues", "queue_group", "dispatch_order", "round_robin_policy", "dominant_resources")
"""Parameters that have become the policy of a queue in force."""
_UNIT_KB = {"KB": 1, "MB": 1024, "GB": 1024**2, "TB": 1024**3, "PB": 1024**4, "EB": 1024**5}


_NOTHING = QueueConfig("")


def resolve(config: ClusterConfig) -> Conf:
    """What the files say, made into what is decided with."""
    return Conf(
        cluster=config.name,
        admins=config.admins,
        params=_with_groups(_params(config), config),
        queues=tuple(_queue(queue, config.params) for queue in config.queues),
        hosts=tuple(_host(host) for host in config.hosts),
        host_groups=(
            *((group.name, _members(config, group.members)) for group in config.host_groups),
            *((unit.name, unit.members) for unit in config.units),
        ),
        user_groups=tuple((group.name, group.members) for group in config.user_groups),
        group_shares=tuple((group.name, group.shares) for group in config.user_groups if group.shares),
        partitions=tuple(
            PartitionConf(
                part.name, part.hosts, FairShare(shares=part.shares, by_queue=True, **_filled(FACTORS, None, config.params))
            )
            for part in config.partitions
        ),
        users=tuple(_user(user) for user in config.users),
        resources=tuple(_resource(resource) for resource in config.resources),
        limits=config.limits,
        apps=tuple(_application(app, config.params) for app in config.applications),
        models=tuple((model.name, model.cpu_factor) for model in config.host_models),
        site_params=config.lsb_params,
    )


def _filled(names: tuple[str, ...], own: QueueConfig | None, params: FileParams) -> dict[str, Any]:
    """The queue's own values, those of lsb.params where it has none."""
    mine = {name: getattr(own, name, None) for name in names}
    return {name: getattr(params, name) if value in (None, "") else value for name, value in mine.items()}


def _queue(queue: QueueConfig, params: FileParams) -> QueueConfig:
    unit = params.resreq_unit_mb
    return replace(
        queue,
        res_req=in_mb(queue.res_req, unit),
        stop_cond=in_mb(queue.stop_cond, unit),
        resume_cond=in_mb(queue.resume_cond, unit),
        share=_share(queue, params),
        scheduler="" if queue.scheduler in ("fcfs", "fair", "gang") else queue.scheduler,
        gang=queue.gang or queue.scheduler == "gang",
        **_filled(FILLED, queue, params),
        **{name: getattr(_NOTHING, name) for name in _OWN_SHARE},
    )


def _share(queue: QueueConfig, params: FileParams) -> FairShare | None:
    """A queue's policy; None: first come, first served."""
    own_policy = queue.fairshare or queue.round_robin_policy or queue.dominant_resources or queue.queue_group
    if not (own_policy or queue.scheduler == "fair"):
        return None
    if queue.round_robin_policy or not own_policy:
        # everyone has the same share of the slots, and nothing but started slots counts
        turns = FairShare(shares=(("default", 1),), round_robin=True)
        return replace(turns, cpu_time_factor=0.0, run_time_factor=0.0, run_job_factor=1.0)
    others = queue.fairshare_queues or queue.queue_group
    return FairShare(
        shares=queue.fairshare if queue.fairshare or queue.dominant_resources else (("others", 1),),
        queues=tuple(name for name in others if name != queue.name),
        by_queue=bool(queue.dispatch_order),
        dominant_resources=queue.dominant_resources,
        **_filled(FACTORS, queue, params),
    )


def _application(app: ApplicationConfig, params: FileParams) -> ApplicationConfig:
    return replace(app, res_req=in_mb(app.res_req, params.resreq_unit_mb))


def _host(host: HostConfig) -> HostConfig:
    runs = host.server and host.batch
    return replace(host, slots=host.slots if runs else 0, server=runs, batch=True)


def _user(user: UserConfig) -> UserConfig:
    """MAX_PEND_JOBS counts slots, where MAX_PEND_SLOTS does not stand."""
    return replace(user, max_pend_slots=user.max_pend_slots or user.max_pend_jobs, max_pend_jobs=None)


def _resource(resource: ResourceConfig) -> ResourceConf:
    shared = tuple(
        (float(instance.value or 0), instance.hosts)
        for instance in resource.instances
        if not instance.per_host and _is_number(instance.value)
    )
    return ResourceConf(
        name=resource.name,
        kind=resource.type.lower(),
        increasing=resource.increasing is not False,
        interval=resource.interval or 0,
        consumable=resource.consumable,
        description=resource.description,
        locations=shared,
    )


def _is_number(text: str | None) -> bool:
    try:
        float(text or "")
    except ValueError:
        return False
    return True


def _with_groups(params: Params, config: ClusterConfig) -> Params:
    """What other files than lsb.params and lsf.conf say for all jobs and hosts."""
    return replace(
        params,
        rusage_methods=config.rusage_methods,
        user_group_admins=tuple((group.name, _controlling(group.admins)) for group in config.user_groups if group.admins),
        host_group_admins=(
            *((group.name, group.admins) for group in config.host_groups if group.admins),
            *((unit.name, unit.admins) for unit in config.units if unit.admins),
        ),
        whole_groups=tuple(group.name for group in config.host_groups if group.members == ("all",)),
        time_windows=config.time_windows,
    )


def _members(config: ClusterConfig, words: tuple[str, ...]) -> tuple[str, ...]:
    """The members of a host group: `all`, patterns and what `~` takes away as the hosts of lsf.cluster have it."""
    if not any(word == "all" or word[:1] == "~" or set(word) & set("*?") for word in words):
        return words
    if "all" in words and not any(word[:1] == "~" for word in words):
        return ("all",)  # a host that joins later is one of them too
    groups = {group.name: group.members for group in config.host_groups}
    hosts = [host.name for host in config.hosts if host.server and host.batch]
    found: list[str] = []
    away: set[str] = set()
    for word in words:
        if word.startswith("~"):
            away.update(groups.get(word[1:], (word[1:],)))
        elif word == "all":
            found += hosts or [word]
        else:
            found += [word] if word in groups else fnmatch.filter(hosts, word) or [word]
    return tuple(name for name in dict.fromkeys(found or hosts) if name not in away)


def _controlling(admins: tuple[str, ...]) -> tuple[str, ...]:
    """`name`, `name[full]`; those with `[usershares]` may change shares only."""
    return tuple(word.partition("[")[0] for word in admins if "[usershares]" not in word)


def _params(config: ClusterConfig) -> Params:
    file: FileParams = config.params
    return Params(
        default_queues=config.default_queues(),
        default_project=file.default_project,
        max_jobid=file.max_jobid,
        max_array=file.max_job_array_size,
        clean_period=file.clean_period,
        terminate_interval=file.job_terminate_interval,
        max_user_priority=file.max_user_priority,
        priority_growth=file.job_priority_over_time,
        abs_runlimit=file.abs_runlimit,
        parallel_by_slot=file.parallel_sched_by_slot,
        unit_kb=_UNIT_KB[file.lsf_unit_for_limits],
        unit_name=file.lsf_unit_for_limits,
        resreq_unit_mb=file.resreq_unit_mb,
        enforce=file.lsb_resource_enforce,
        job_memlimit=bool(file.lsb_job_memlimit) or file.lsb_memlimit_enforce,
        root_jobs=file.lsf_root_user,
        parse_script=file.lsb_bsub_parse_script,
        stdout_direct=file.lsb_stdout_direct,
        run_warning=600 if file.job_action_warning_time is None else file.job_action_warning_time,
        host_timeout=float(file.lava_host_timeout),
        mail_to=file.lsb_mailto,
        dynamic_timeout=float(file.lsf_dynamic_host_timeout),
        open_hosts=config.default_host is not None,
        host_addresses=config.host_addresses,
        lease=float(file.lava_lease),
        margin=float(file.lava_lease_margin),
        pend_level=file.lsb_bjobs_pendreason_level,
        short_hostlist=file.lsb_short_hostlist,
        hpc_allocation=file.lsb_enable_hpc_allocation,
        mod_all_jobs=file.lsb_mod_all_jobs,
        rusage_per_task=file.resource_reserve_per_task,
        unit_types=tuple(word.rstrip("!") for word in file.compute_unit_types),
        unit_type=next((word for word in file.compute_unit_types if word.endswith("!")), "").rstrip("!")
        or (file.compute_unit_types or ("",))[0],
        units=tuple(UnitConf(name=unit.name, type=unit.type) for unit in config.units),
        max_pend_jobs=file.max_pend_slots or file.max_pend_jobs,
        sleep=file.mbd_sleep_time,
        accept_interval=file.job_accept_interval,
        preempt_exclusive="EXCLUSIVE" in file.preempt_jobtype,
        backfill=file.lava_backfill.lower(),
        detect_idle_job_after=file.detect_idle_job_after,
        pack_weights=file.lava_pack_weights,
        bjobs_format=file.lsb_bjobs_format,
        dep_last_sub=file.job_dep_last_sub,
        default_app=file.default_application,
        default_host_spec=file.default_host_spec,
        default_group=file.default_jobgroup,
        default_user_group=file.default_user_group,
        default_cwd=file.default_job_cwd,
        default_outdir=file.default_job_outdir,
        max_messages=file.max_job_msg_num,
        consistent_exit=file.lsb_bjobs_consistent_exit_code,
        architectures=tuple((model.name, " ".join(model.architectures)) for model in config.host_models if model.architectures),
        submit_hosts=tuple(name for name in file.lava_submit_hosts if name != "all"),
        record_days=file.lava_record_days,
        **_rules(file),
    )


def _rules(file: FileParams) -> dict[str, Any]:
    """What users may do, and what goes by itself."""
    return {
        "positions_by_admin": file.job_position_control_by_admin,
        "user_resume": file.enable_user_resume,
        "group_clean": file.job_group_clean,
        "pre_timeout": file.job_preproc_timeout or 0,
        "post_timeout": file.job_postproc_timeout or 0,
        "include_post": file.job_include_postproc,
    }
