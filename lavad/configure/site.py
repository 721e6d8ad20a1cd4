"""From the site's files (package ``config``) to the configuration that the core decides with."""

from __future__ import annotations

import fnmatch
from typing import Any

from msgspec.structs import replace

from config.model.cluster import (
    UNLIMITED,
    ClusterConfig,
    HostConfig,
    Limit,
    ResourceConfig,
)
from config.model.cluster import Params as FileParams
from lavad.configure.apps import apps
from lavad.configure.queues import queue_conf, thresholds_of
from lavad.configure.share import group_shares, partitions
from lavad.core.site.conf import (
    Conf,
    HostConf,
    LimitConf,
    Params,
    ResourceConf,
    UnitConf,
    UserConf,
)

SIZES = ("mem", "swp", "tmp")
_UNIT_KB = {"KB": 1, "MB": 1024, "GB": 1024**2, "TB": 1024**3, "PB": 1024**4, "EB": 1024**5}


def core_conf(config: ClusterConfig) -> Conf:
    """The records of the core, defaults filled in."""
    return Conf(
        cluster=config.name,
        admins=config.admins,
        params=_with_groups(_params(config), config),
        queues=tuple(queue_conf(queue, config.params) for queue in config.queues),
        hosts=tuple(_host(host) for host in config.hosts),
        host_groups=(
            *((group.name, _members(config, group.members)) for group in config.host_groups),
            *((unit.name, unit.members) for unit in config.units),
        ),
        user_groups=tuple((group.name, group.members) for group in config.user_groups),
        group_shares=group_shares(config),
        partitions=partitions(config),
        users=tuple(
            UserConf(
                name=user.name,
                max_slots=user.max_jobs,
                processor_limit=user.slots_per_processor,
                max_pend=user.max_pend_slots or user.max_pend_jobs,
            )
            for user in config.users
        ),
        resources=tuple(_resource(resource) for resource in config.resources),
        limits=tuple(_limit(limit) for limit in config.limits),
        apps=apps(config),
        models=tuple((model.name, model.cpu_factor) for model in config.host_models),
        site_params=config.lsb_params,
    )


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


def _host(host: HostConfig) -> HostConf:
    slots = -1 if host.slots == UNLIMITED else host.slots
    return HostConf(
        name=host.name,
        slots=0 if not (host.server and host.batch) else slots,
        user_limit=host.user_job_limit,
        server=host.server and host.batch,
        type=host.type,
        model=host.model,
        resources=tuple(_pair(text) for text in host.resources),
        dispatch_window=" ".join(host.dispatch_window),
        run_window=" ".join(host.run_window),
        thresholds=thresholds_of(host.thresholds),
        affinity=host.affinity,
        migrate_after=host.mig,
    )


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


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


def _limit(limit: Limit) -> LimitConf:
    """Sizes become MB, as rusage[] has them."""
    sized = {name: amount if name in limit.percent else amount / 1024 for name, amount in limit.resources if name in SIZES}
    return LimitConf(
        name=limit.name,
        queues=(*limit.queues, *limit.per_queue),
        users=(*limit.users, *limit.per_user),
        per_user=bool(limit.per_user),
        hosts=(*limit.hosts, *limit.per_host),
        per_host=bool(limit.per_host),
        projects=(*limit.projects, *limit.per_project),
        apps=(*limit.apps, *limit.per_app),
        per_queue=bool(limit.per_queue),
        per_project=bool(limit.per_project),
        per_app=bool(limit.per_app),
        slots=limit.slots,
        processor_slots=limit.slots_per_processor,
        jobs=limit.jobs,
        mem=sized.get("mem"),
        resources=tuple((name, sized.get(name, amount)) for name, amount in limit.resources if name != "mem"),
        percent=limit.percent,
    )
