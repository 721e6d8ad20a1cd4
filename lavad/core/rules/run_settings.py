"""Settings of a running job from its options, its application profile, its queue and lsb.params; mail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import ExtendableRunlimit, JobControl, Limits
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.containers import step_of
from lavad.core.job.job import Job
from lavad.core.job.run_time import limit_of
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.resreq.sections import RusageItem
from lavad.core.lang.resreq.shown import shown
from lavad.core.lang.resreq.text import ResReq, ResReqError, parse
from lavad.core.lang.text_cache import text_cache
from lavad.core.rules.checkpoint_folder import moves
from lavad.core.rules.cpu_factors import scale, scaled, seconds_on
from lavad.core.rules.gpus import per_task

LEAVE_GRACE = 2.0
"""Seconds from SIGTERM to SIGKILL on a host that leaves a job, where DJOB_RESIZE_GRACE_PERIOD does not say otherwise."""


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent keeps to. Times in seconds, memory in MB."""

    cluster: str
    admins: tuple[str, ...]
    limits: Limits
    """As they count on the host that the settings are for."""
    role_limits: tuple[Limits, ...]
    nice: int
    env_vars: tuple[tuple[str, str], ...]
    djob_env_script: str
    """"": none, as for a job whose tasks lava starts."""
    djob_disabled: bool
    container: tuple[str, ...]
    """As in ``containers.step_of``."""
    job_starter: str
    gpu_mode: str
    gpu_mps: str
    """As in ``GpuReq``: yes, no, per_socket or per_gpu, with words behind it."""
    gpus_per_task: int
    """0: what a host gives of GPUs is for all tasks there."""
    gpu_blocks: bool
    """Where a host has more tasks than GPUs, each has one: the first tasks the first GPU, and so on (block=yes)."""
    enforce_memory: bool
    enforce_cpu: bool
    """A job's processes run on the processors only that affinity[] gave it."""
    enforce_gpu: bool
    """A job's processes may open the device files of its own GPUs only."""
    direct_output: bool
    """LSB_STDOUT_DIRECT: output goes straight to the user's file."""
    leased: bool
    checkpoint_moves: bool
    """It may start again on another machine, which must see its checkpoints."""
    shared_dirs: tuple[str, ...]
    """Folders that every host sees."""
    terminate_interval: int
    run_warning: int
    """Seconds from SIGUSR2 at the run limit to the kill sequence."""
    warn_action: str
    """What warns the job ``warn_before`` seconds before it is ended by a limit; "" and 0 for nothing."""
    warn_before: int
    requeue_exit_values: str
    report_mail: str
    post_mail: str
    """Who gets mail of its post-execution commands; "": nobody."""
    host_pre_exec: tuple[str, ...]
    host_post_exec: tuple[str, ...]
    queue_pre_exec: str
    queue_post_exec: str
    pre_post_exec_user: str
    pre_timeout: int
    post_timeout: int
    include_post: bool
    cwd_hours: int | None
    """How long the working folder that a host made for the job stays after its end; None: for good."""
    job_controls: tuple[JobControl, ...]
    effective_resreq: str
    requested_mem: float


class TextSettings(NamedTuple):
    """What the settings of a job take from its text: the same for most jobs of a class."""

    warn_action: str
    warn_before: int
    mail: bool
    """Whether mail is sent of it."""
    mail_user: str


def text_settings(text: JobText) -> TextSettings:
    """What a text says for the settings."""
    wanted = text.notify_start or text.notify_end or text.notify or not (text.output or text.interactive)
    return TextSettings(text.warn_action, text.warn_before, bool(wanted), text.mail_user)


NEVER = 2_147_483_647
"""JOB_CWD_TTL of folders that are not removed."""


def _cwd_hours(hours: int | None) -> int | None:
    return None if hours == NEVER else hours


def run_settings(cluster: Cluster, spec: Spec, own: TextSettings, host: str) -> RunSettings:
    """The settings of a job on a host. The application profile overrides the queue; host-based commands of both run."""
    conf = cluster.conf
    params = conf.params
    queue = cluster.queue_conf.get(spec.queue) or QueueConfig(name=spec.queue)
    app = conf.app_conf.get(spec.app) or ApplicationConfig(name=spec.app)
    warn_action, warn_before = warning_of(own, app, queue)
    limit_is_of_job = "JOB" in app.memlimit_type if app.memlimit_type else params.job_memlimit
    return RunSettings(
        cluster=conf.cluster,
        admins=conf.admins,
        limits=limits_on(cluster, spec, spec.limits, host),
        role_limits=tuple(limits_on(cluster, spec, role.limits, host) for role in spec.roles),
        nice=queue.nice if app.nice is None else app.nice,
        env_vars=(*app.env_vars, *_for_tasks(app)),
        djob_env_script=app.djob_env_script if spec.slots > 1 and not spec.launch and not spec.roles else "",
        djob_disabled=app.djob_disabled,
        container=step_of(app, queue),
        job_starter=app.job_starter or queue.job_starter,
        gpu_mode=(spec.gpu.mode or "") if spec.gpu else "",
        gpu_mps=(spec.gpu.mps or "") if spec.gpu else "",
        gpus_per_task=(spec.gpu.num or 1) if spec.gpu and per_task(spec.gpu) else 0,
        enforce_cpu="cpu" in params.lsb_resource_enforce,
        enforce_gpu="gpu" in params.lsb_resource_enforce,
        gpu_blocks=bool(spec.gpu and spec.gpu.block),
        enforce_memory="memory" in params.lsb_resource_enforce or spec.memory_auto or limit_is_of_job,
        direct_output=params.lsb_stdout_direct,
        checkpoint_moves=moves(cluster, spec),
        shared_dirs=params.lava_shared_dirs if spec.checkpoint is not None else (),
        leased=spec.rerunnable or spec.checkpoint is not None,
        terminate_interval=params.job_terminate_interval,
        run_warning=params.run_warning,
        warn_action=warn_action,
        warn_before=warn_before,
        requeue_exit_values=spec.requeue or str(queue.requeue_exit_values),
        report_mail=mail_to(spec, own, params.lsb_mailto),
        post_mail=_address(spec, own, params.lsb_mailto) if params.lsb_postexec_send_mail else "",
        host_pre_exec=tuple(command for command in (queue.host_pre_exec, app.host_pre_exec) if command),
        host_post_exec=tuple(command for command in (app.host_post_exec, queue.host_post_exec) if command),
        queue_pre_exec=queue.pre_exec,
        queue_post_exec=queue.post_exec,
        pre_post_exec_user=queue.pre_post_exec_user,
        pre_timeout=(params.job_preproc_timeout or 0) if app.job_preproc_timeout is None else app.job_preproc_timeout,
        post_timeout=(params.job_postproc_timeout or 0) if app.job_postproc_timeout is None else app.job_postproc_timeout,
        include_post=params.job_include_postproc if app.job_include_postproc is None else app.job_include_postproc,
        cwd_hours=_cwd_hours(params.job_cwd_ttl if app.job_cwd_ttl is None else app.job_cwd_ttl),
        job_controls=app.job_controls or queue.job_controls,
        effective_resreq=shown(queue.res_req, spec.resreq),
        requested_mem=requested_mem(spec.resreq),
    )


_FOR_TASKS = ("djob_hb_interval", "djob_ru_interval", "djob_commfail_action")


def _for_tasks(app: ApplicationConfig) -> Iterator[tuple[str, str]]:
    """Variables by which jobs hear of parameters about their tasks; their own stand before them, as with ENV_VARS."""
    for name in _FOR_TASKS:
        if value := getattr(app, name):
            yield f"LSB_{name.upper()}", str(value)
    if app.rtask_gone_action:
        yield "LSB_DJOB_RTASK_GONE_ACTION", " ".join(app.rtask_gone_action)


def are_settled(spec: Spec) -> bool:
    """Whether the settings follow from the configuration alone: they are those of any host, whatever others there are."""
    limits = spec.limits
    return spec.checkpoint is None and not spec.roles and limits.run is None and limits.cpu is None


def warning_of(own: TextSettings, app: ApplicationConfig, queue: QueueConfig) -> tuple[str, int]:
    """Action and seconds before a limit, each the job's own, its profile's or its queue's; nothing unless both are said."""
    action = own.warn_action or app.job_warning_action or queue.job_warning_action
    before = own.warn_before or app.job_action_warning_time or queue.job_action_warning_time
    return (action, before) if action and before else ("", 0)


def limits_on(cluster: Cluster, spec: Spec, limits: Limits, host: str) -> Limits:
    """Limits as they count on a host: CPU time is scaled to its speed, run time too unless ABS_RUNLIMIT is set.

    A limit of no time at all is one second there.
    """
    run, cpu = limits.run, limits.cpu
    if run is not None:
        run = seconds_on(cluster, spec, run, host)
    if cpu is not None:
        cpu = scaled(cpu, scale(cluster, spec.cpu_host or spec.from_host, host))
    return replace(limits, run=run, cpu=cpu)


def extension_of(cluster: Cluster, spec: Spec) -> ExtendableRunlimit | None:
    """What holds for a job: its application profile's before its queue's; None: its run limit is what it is."""
    app = cluster.conf.app_conf.get(spec.app)
    if app is not None and app.extendable_runlimit is not None:
        return app.extendable_runlimit
    queue = cluster.queue_conf.get(spec.queue)
    return queue.extendable_runlimit if queue is not None else None


def soft_limit(cluster: Cluster, job: Job, spec: Spec) -> int | None:
    """EXTENDABLE_RUNLIMIT: seconds, as limits are given, after which it is to be decided whether a started job goes on.

    None: that is decided, or its run limit comes first.
    """
    rule, run = extension_of(cluster, spec), job.run
    if rule is None or run is None or run.soft_limit < 0:
        return None
    soft, limit = run.soft_limit or rule.base, limit_of(job, spec)
    return soft if limit is None or soft < limit else None


def leave_grace(cluster: Cluster, job: Job | None) -> float:
    """DJOB_RESIZE_GRACE_PERIOD of the job's application profile: seconds that a host which leaves the job has.

    None: the job is over, and its profile is not looked up.
    """
    app = cluster.conf.app_conf.get(cluster.specs.rows[job.spec].app) if job is not None else None
    return LEAVE_GRACE if app is None or app.djob_resize_grace_period is None else app.djob_resize_grace_period


@text_cache
def requested_mem(resreq: str) -> float:
    """MB of memory that a requirement reserves: what its first rusage with memory says; 0.0 for none."""
    try:
        return next((use.amount for use in uses_of(parse(resreq)) if use.name == "mem"), 0.0)
    except ResReqError:
        return 0.0


def uses_of(req: ResReq) -> Iterator[RusageItem]:
    """All that a requirement reserves, in its parts and alternatives too."""
    for part in (*(part for _, part in req.compound), *(part for part, _ in req.alternatives)):
        yield from uses_of(part)
    for rusage in req.rusage:
        yield from rusage.uses


def mail_to(spec: Spec, own: TextSettings, pattern: str) -> str:
    """Who gets mail of a job: ``-u``, else its user as LSB_MAILTO has it (!U user, !H host of submission).

    "" where LSF sends none: its report goes to the file of ``-o``.
    """
    return _address(spec, own, pattern) if own.mail else ""


def _address(spec: Spec, own: TextSettings, pattern: str) -> str:
    user = pattern.replace("!H", spec.from_host).replace("!U", spec.user) if pattern else spec.user
    return own.mail_user or user
