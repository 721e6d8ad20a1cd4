"""From the site's files (package ``config``) to the configuration that the core decides with."""

from __future__ import annotations

from collections.abc import Iterable

from config.model import (
    UNLIMITED,
    ClusterConfig,
    HostConfig,
    Limit,
    LoadThreshold,
    QueueConfig,
    RequeueExit,
    ResourceConfig,
)
from config.model import Params as FileParams
from lavad.configure_apps import apps
from lavad.configure_share import aps_conf, group_shares, partitions, share_conf
from lavad.core.conf import (
    Conf,
    ExceptionConf,
    HostConf,
    LimitConf,
    Params,
    QueueConf,
    ResourceConf,
    Thresholds,
    UserConf,
)
from lavad.core.spec import Limits

_UNIT_KB = {"KB": 1, "MB": 1024, "GB": 1024**2, "TB": 1024**3, "PB": 1024**4, "EB": 1024**5}
_NAMES = {
    "run": "runlimit", "cpu": "cpulimit", "mem": "memlimit", "swap": "swaplimit", "file": "filelimit",
    "data": "datalimit", "stack": "stacklimit", "core": "corelimit", "processes": "processlimit",
}  # fmt: skip


def core_conf(config: ClusterConfig) -> Conf:
    """The records of the core, defaults filled in."""
    return Conf(
        cluster=config.name,
        admins=config.admins,
        params=_params(config),
        queues=tuple(_queue(queue, config.params) for queue in config.queues),
        hosts=tuple(_host(host) for host in config.hosts),
        host_groups=tuple((group.name, group.members) for group in config.host_groups),
        user_groups=tuple((group.name, group.members) for group in config.user_groups),
        group_shares=group_shares(config),
        partitions=partitions(config),
        users=tuple(
            UserConf(
                name=user.name, max_slots=user.max_jobs, processor_limit=user.slots_per_processor,
                max_pend=user.max_pend_slots or user.max_pend_jobs,
            )
            for user in config.users
        ),
        resources=tuple(_resource(resource) for resource in config.resources),
        limits=tuple(_limit(limit) for limit in config.limits),
        apps=apps(config),
        models=tuple((model.name, model.cpu_factor) for model in config.host_models),
        site_params=config.lsb_params,
    )  # fmt: skip


def _params(config: ClusterConfig) -> Params:
    file: FileParams = config.params
    warned = file.job_action_warning_time
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
        enforce=file.lsb_resource_enforce,
        job_memlimit=bool(file.lsb_job_memlimit) or file.lsb_memlimit_enforce,
        sequential_signal=file.lsb_use_sequential_signal,
        root_jobs=file.lsf_root_user,
        parse_script=file.lsb_bsub_parse_script,
        stdout_direct=file.lsb_stdout_direct,
        run_warning=600 if warned is None else warned,
        host_timeout=float(file.lava_host_timeout),
        lease=float(file.lava_lease),
        margin=float(file.lava_lease_margin),
        pend_level=file.lsb_bjobs_pendreason_level,
        short_hostlist=file.lsb_short_hostlist,
        hpc_allocation=file.lsb_enable_hpc_allocation,
        mod_all_jobs=file.lsb_mod_all_jobs,
        rusage_per_task=file.resource_reserve_per_task,
        max_pend_jobs=file.max_pend_slots or file.max_pend_jobs,
        sleep=file.mbd_sleep_time,
        accept_interval=file.job_accept_interval,
        backfill=file.lava_backfill.lower(),
        bjobs_format=file.lsb_bjobs_format,
        dep_last_sub=file.job_dep_last_sub,
        default_app=file.default_application,
        submit_hosts=tuple(name for name in file.lava_submit_hosts if name != "all"),
        record_days=file.lava_record_days,
    )


def _limits(queue: QueueConfig, which: str) -> Limits:
    return Limits(**{field: getattr(getattr(queue, name), which) for field, name in _NAMES.items()})


def _queue(queue: QueueConfig, params: FileParams) -> QueueConf:
    checkpoint = queue.chkpnt
    period = "" if checkpoint is None or checkpoint.period is None else f" {checkpoint.period // 60}"
    tasks = queue.tasklimit
    return QueueConf(
        name=queue.name,
        description=queue.description,
        priority=queue.priority,
        nice=queue.nice,
        users=queue.users,
        hosts=queue.hosts,
        admins=queue.administrators,
        max_slots=queue.qjob_limit,
        user_limit=queue.ujob_limit,
        processor_limit=queue.pjob_limit,
        host_limit=queue.hjob_limit,
        min_slots=tasks.minimum or 1,
        default_slots=tasks.default or tasks.minimum or 1,
        job_max_slots=tasks.maximum,
        limits=_limits(queue, "maximum"),
        defaults=_limits(queue, "default"),
        resreq=queue.res_req,
        gpu=queue.gpu_req,
        exclusive=queue.exclusive,
        interactive={"YES": "yes", "NO": "no", "ONLY": "only"}[queue.interactive.upper()],
        rerunnable=queue.rerunnable,
        checkpoint="" if checkpoint is None else checkpoint.dir + period,
        run_window=" ".join(queue.run_window),
        dispatch_window=" ".join(queue.dispatch_window),
        pre_exec=queue.pre_exec,
        post_exec=queue.post_exec,
        job_starter=queue.job_starter,
        requeue_exit_values=_requeue(queue.requeue_exit_values),
        thresholds=_thresholds(queue.thresholds),
        stop_cond=queue.stop_cond,
        resume_cond=queue.resume_cond,
        backfill=queue.backfill,
        slot_reserve=_periods(queue.slot_reserve),
        resource_reserve=_periods(queue.resource_reserve),
        ignore_deadline=queue.ignore_deadline,
        fairshare=" ".join(f"[{share.name}, {share.shares}]" for share in queue.fairshare),
        share=share_conf(queue, params),
        aps=aps_conf(queue),
        preemption=_preemption(queue),
        job_accept_interval=queue.job_accept_interval,
        new_job_delay=queue.new_job_sched_delay,
        lease=None if queue.lease is None else float(queue.lease),
        host_timeout=None if queue.host_timeout is None else float(queue.host_timeout),
        job_controls=" ".join(f"{control.action}[{control.what}]" for control in queue.job_controls),
        terminate_when=" ".join(queue.terminate_when),
        migrate_after=queue.mig,
        limit_host=queue.default_host_spec or queue.runlimit.host_spec or queue.cpulimit.host_spec,
        hosts_a_job=queue.hostlimit_per_job,
        success_exit_values=" ".join(map(str, queue.success_exit_values)),
        max_requeue=queue.max_job_requeue,
        pre_post_user=queue.pre_post_exec_user,
        warn_before=queue.job_action_warning_time,
        warning_action=queue.job_warning_action,
        exceptions=_exceptions(queue, params),
    )


def _exceptions(queue: QueueConfig, params: FileParams) -> ExceptionConf | None:
    if queue.job_overrun is None and queue.job_underrun is None and queue.job_idle is None:
        return None
    return ExceptionConf(queue.job_overrun, queue.job_underrun, queue.job_idle, params.detect_idle_job_after)


def _periods(count: int | None) -> int:
    """MAX_RESERVE_TIME without a number: as long as it takes."""
    return 0 if count is None else count or 100_000


def _preemption(queue: QueueConfig) -> str:
    rule = queue.preemption
    words = []
    if rule.preemptive:
        words.append("PREEMPTIVE" + (f"[{' '.join(rule.preempts)}]" if rule.preempts else ""))
    if rule.preemptable:
        words.append("PREEMPTABLE" + (f"[{' '.join(rule.preempted_by)}]" if rule.preempted_by else ""))
    return " ".join(words)


def _requeue(rule: RequeueExit) -> str:
    words = ["all"] if rule.all else [str(value) for value in rule.values]
    words += [f"~{value}" for value in rule.never]
    if rule.excluding:
        words.append(f"EXCLUDE({' '.join(str(value) for value in rule.excluding)})")
    return " ".join(words)


def _thresholds(rows: Iterable[LoadThreshold]) -> Thresholds:
    rows = tuple(rows)
    return Thresholds(
        sched=tuple((row.index, row.sched) for row in rows if row.sched is not None),
        stop=tuple((row.index, row.stop) for row in rows if row.stop is not None),
    )


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
        thresholds=_thresholds(host.thresholds),
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
    memory = [amount for name, amount in limit.resources if name == "mem"]
    return LimitConf(
        name=limit.name,
        queues=(*limit.queues, *limit.per_queue),
        users=(*limit.users, *limit.per_user),
        per_user=bool(limit.per_user),
        hosts=(*limit.hosts, *limit.per_host),
        per_host=bool(limit.per_host),
        projects=(*limit.projects, *limit.per_project),
        slots=limit.slots,
        jobs=limit.jobs,
        mem=memory[0] / 1024 if memory else None,
        resources=tuple((name, amount) for name, amount in limit.resources if name != "mem"),
    )
