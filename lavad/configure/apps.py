"""Application profiles of lsb.applications, as the core uses them."""

from __future__ import annotations

from config.model.cluster import ApplicationConfig, ClusterConfig
from lavad.configure.queues import requeue_words
from lavad.core.job.spec import Limits
from lavad.core.lang.resreq.text import in_mb
from lavad.core.site.conf import AppConf

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


def apps(config: ClusterConfig) -> tuple[AppConf, ...]:
    """All profiles."""
    return tuple(_app(app, config.params.resreq_unit_mb) for app in config.applications)


def _controls(app: ApplicationConfig) -> str:
    """JOB_CONTROLS, or the three parameters of profiles that each set one of them."""
    found = {control.action: control.what for control in app.job_controls}
    for action, what in (("SUSPEND", app.suspend_control), ("RESUME", app.resume_control), ("TERMINATE", app.terminate_control)):
        if what:
            found[action] = what
    return " ".join(f"{action}[{what}]" for action, what in found.items())


def _app(app: ApplicationConfig, unit_mb: float) -> AppConf:
    tasks = app.tasklimit
    period = "" if app.chkpnt_period is None else f" {app.chkpnt_period // 60}"
    return AppConf(
        name=app.name,
        description=app.description,
        limits=Limits(**{field: getattr(app, name).maximum for field, name in _NAMES.items()}),
        defaults=Limits(**{field: getattr(app, name).default for field, name in _NAMES.items()}),
        min_slots=tasks.minimum or 1,
        default_slots=tasks.default or tasks.minimum or 1,
        job_max_slots=tasks.maximum,
        resreq=in_mb(app.res_req, unit_mb),
        gpu=app.gpu_req,
        rerunnable=app.rerunnable,
        checkpoint_method=app.chkpnt_method,
        checkpoint_initial=app.chkpnt_initperiod or 0,
        estimate=app.runtime.default or 0,
        checkpoint=app.chkpnt_dir + period if app.chkpnt_dir else "",
        pre_exec=app.pre_exec,
        post_exec=app.post_exec,
        host_pre_exec=app.host_pre_exec,
        host_post_exec=app.host_post_exec,
        pre_timeout=app.job_preproc_timeout,
        post_timeout=app.job_postproc_timeout,
        include_post=app.job_include_postproc,
        requeue=requeue_words(app.requeue_exit_values),
        success_exit_values=" ".join(map(str, app.success_exit_values)),
        max_requeue=app.max_job_requeue,
        nice=app.nice,
        job_starter=app.job_starter,
        cwd=app.job_cwd,
        job_controls=_controls(app),
        warn_before=app.job_action_warning_time,
        warning_action=app.job_warning_action,
        resizable={"Y": "yes", "YES": "yes", "AUTO": "auto"}.get(app.resizable_jobs.upper(), ""),
        resize_command=app.resize_notify_cmd,
        migrate_after=app.mig,
        resize_grace=app.djob_resize_grace_period,
    )
