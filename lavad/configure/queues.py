"""Queues of lsb.queues, as the core uses them; what a queue leaves open is filled in from lsb.params."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from config.model.cluster import LoadThreshold, QueueConfig, RequeueExit
from config.model.cluster import Params as FileParams
from lavad.configure.share import aps_conf, share_conf
from lavad.core.job.spec import Limits
from lavad.core.lang.resreq.text import in_mb
from lavad.core.site.conf import ExceptionConf, QueueConf, Spared, Thresholds

_NAMES = {
    "run": "runlimit",
    "cpu": "cpulimit",
    "mem": "memlimit",
    "swap": "swaplimit",
    "file": "filelimit",
    "data": "datalimit",
    "stack": "stacklimit",
    "core": "corelimit",
    "processes": "processlimit",
    "threads": "threadlimit",
}


def _limits(queue: QueueConfig, which: str) -> Limits:
    return Limits(**{field: getattr(getattr(queue, name), which) for field, name in _NAMES.items()})


def queue_conf(queue: QueueConfig, params: FileParams) -> QueueConf:
    """A queue, with what lsb.params says for all queues."""
    checkpoint = queue.chkpnt
    period = "" if checkpoint is None or checkpoint.period is None else f" {checkpoint.period // 60}"
    tasks = queue.tasklimit
    conf = QueueConf(
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
        resreq=in_mb(queue.res_req, params.resreq_unit_mb),
        gpu=queue.gpu_req,
        exclusive=queue.exclusive,
        interactive={"YES": "yes", "NO": "no", "ONLY": "only"}[queue.interactive.upper()],
        rerunnable=queue.rerunnable,
        checkpoint="" if checkpoint is None else checkpoint.dir + period,
        run_window=" ".join(queue.run_window),
        dispatch_window=" ".join(queue.dispatch_window),
        pre_exec=queue.pre_exec,
        post_exec=queue.post_exec,
        host_pre_exec=queue.host_pre_exec,
        host_post_exec=queue.host_post_exec,
        job_starter=queue.job_starter,
        requeue_exit_values=requeue_words(queue.requeue_exit_values),
        thresholds=thresholds_of(queue.thresholds),
        stop_cond=in_mb(queue.stop_cond, params.resreq_unit_mb),
        resume_cond=in_mb(queue.resume_cond, params.resreq_unit_mb),
        backfill=queue.backfill,
        slot_reserve=_periods(queue.slot_reserve),
        resource_reserve=_periods(queue.resource_reserve),
        ignore_deadline=queue.ignore_deadline,
    )
    return _with_rules(conf, queue, params)


def _spared(queue: QueueConfig, params: FileParams) -> Spared:
    return Spared(
        ran=_first(queue.no_preempt_run_time, params.no_preempt_run_time) or 0,
        ends=_first(queue.no_preempt_finish_time, params.no_preempt_finish_time) or 0,
        interval=_first(queue.no_preempt_interval, params.no_preempt_interval) or 0,
        most=_first(queue.max_job_preempt, params.max_job_preempt),
        delay=_first(queue.preempt_delay, params.preempt_delay) or 0,
    )


def _with_rules(conf: QueueConf, queue: QueueConfig, params: FileParams) -> QueueConf:
    """How its jobs share, are preempted, controlled and ended."""
    return replace(
        conf,
        fairshare=" ".join(f"[{share.name}, {share.shares}]" for share in queue.fairshare),
        share=share_conf(queue, params),
        aps=aps_conf(queue),
        preemption=_preemption(queue),
        spared=_spared(queue, params),
        scheduler="" if queue.scheduler in ("fcfs", "fair", "gang") else queue.scheduler,
        gang=queue.gang or queue.scheduler == "gang",
        weight=queue.weight,
        capability=queue.capability,
        guarantee=queue.guarantee,
        reclaimable=queue.reclaimable,
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
        max_requeue=_first(queue.max_job_requeue, params.max_job_requeue),
        max_preexec=_first(queue.local_max_preexec_retry, params.local_max_preexec_retry),
        preexec_exit=(queue.local_max_preexec_retry_action or params.local_max_preexec_retry_action) == "EXIT",
        pre_post_user=queue.pre_post_exec_user,
        warn_before=queue.job_action_warning_time,
        warning_action=queue.job_warning_action,
        exceptions=_exceptions(queue, params),
    )


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


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


def requeue_words(rule: RequeueExit) -> str:
    """REQUEUE_EXIT_VALUES of a queue or an application profile, as it is written."""
    words = ["all"] if rule.all else [str(value) for value in rule.values]
    words += [f"~{value}" for value in rule.never]
    if rule.excluding:
        words.append(f"EXCLUDE({' '.join(str(value) for value in rule.excluding)})")
    return " ".join(words)


def thresholds_of(rows: Iterable[LoadThreshold]) -> Thresholds:
    """Load thresholds by index."""
    rows = tuple(rows)
    return Thresholds(
        sched=tuple((row.index, row.sched) for row in rows if row.sched is not None),
        stop=tuple((row.index, row.stop) for row in rows if row.stop is not None),
    )
