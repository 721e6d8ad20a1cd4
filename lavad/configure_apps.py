"""Application profiles of lsb.applications, as the core uses them."""

from __future__ import annotations

from config.model import ApplicationConfig, ClusterConfig
from lavad.core.conf import AppConf
from lavad.core.spec import Limits

_NAMES = {
    "run": "runlimit", "cpu": "cpulimit", "mem": "memlimit", "swap": "swaplimit", "file": "filelimit",
    "data": "datalimit", "stack": "stacklimit", "core": "corelimit", "processes": "processlimit",
}  # fmt: skip


def apps(config: ClusterConfig) -> tuple[AppConf, ...]:
    """All profiles."""
    return tuple(_app(app) for app in config.applications)


def _app(app: ApplicationConfig) -> AppConf:
    tasks = app.tasklimit
    rule = app.requeue_exit_values
    words = ["all"] if rule.all else [str(value) for value in rule.values]
    words += [f"~{value}" for value in rule.never]
    period = "" if app.chkpnt_period is None else f" {app.chkpnt_period // 60}"
    return AppConf(
        name=app.name,
        description=app.description,
        limits=Limits(**{field: getattr(app, name).maximum for field, name in _NAMES.items()}),
        defaults=Limits(**{field: getattr(app, name).default for field, name in _NAMES.items()}),
        min_slots=tasks.minimum or 1,
        default_slots=tasks.default or tasks.minimum or 1,
        job_max_slots=tasks.maximum,
        resreq=app.res_req,
        gpu=app.gpu_req,
        rerunnable=app.rerunnable,
        checkpoint=app.chkpnt_dir + period if app.chkpnt_dir else "",
        pre_exec=app.pre_exec,
        post_exec=app.post_exec,
        requeue=" ".join(words),
    )
