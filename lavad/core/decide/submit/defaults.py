"""What the application profile, the queue and lsb.params give a job that does not say otherwise.

Rule: the job's own word goes before its application profile's, that before the queue's, that before lsb.params.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from lavad.core.decide.base.draft import Draft
from lavad.core.decide.submit.limits import check_most, with_defaults
from lavad.core.job.groups import read_path
from lavad.core.job.resize import why_not_resizable
from lavad.core.job.spec import Checkpoint, Spec
from lavad.core.lang import gpureq
from lavad.core.lang.asks import Refused
from lavad.core.lang.gpureq import GpuReq
from lavad.core.lang.resreq import text as resreq
from lavad.core.site.conf import AppConf, Conf, QueueConf


def apply_app(draft: Draft) -> None:
    """What the application profile gives; raises Refused where the job asks for more than it allows."""
    _check_resizable(draft.spec)
    app = _find_app(draft.conf, draft.spec.app or draft.conf.params.default_app)
    if app is None:
        return
    spec, text = draft.spec, draft.text
    check_most(spec.limits, app.limits, "the application profile's limit")
    if app.job_max_slots is not None and spec.slots > app.job_max_slots:
        raise Refused("Too many processors requested")
    checkpoint = spec.checkpoint
    if checkpoint is None and app.checkpoint:
        checkpoint = _read_checkpoint(app.checkpoint, app.checkpoint_method or "app", app.checkpoint_initial)
    draft.spec = replace(
        spec,
        app=app.name,
        gpu=_merged_gpus(spec.gpu, app.gpu),
        checkpoint=checkpoint,
        requeue=spec.requeue or app.requeue,
        estimate=spec.estimate or app.estimate,
        limits=with_defaults(with_defaults(spec.limits, app.defaults), app.limits),
        resreq=_combined(app.resreq, spec.resreq),
        rerunnable=(spec.rerunnable or bool(app.rerunnable)) and not spec.never_rerun,
        **_default_slots(spec, app.default_slots),
        **_resizing(spec, app),
    )
    draft.text = replace(text, pre_exec=text.pre_exec or app.pre_exec, post_exec=text.post_exec or app.post_exec)


def apply_queue(draft: Draft, queue: QueueConf) -> None:
    """What the queue gives."""
    spec, params = draft.spec, draft.conf.params
    checkpoint = spec.checkpoint
    if checkpoint is None and queue.checkpoint:
        checkpoint = _read_checkpoint(queue.checkpoint, "app", 0)
    priority = spec.priority
    if priority < 0 and params.max_user_priority:
        priority = params.max_user_priority // 2
    draft.spec = replace(
        spec,
        queue=queue.name,
        checkpoint=checkpoint,
        gpu=_merged_gpus(spec.gpu, queue.gpu),
        priority=priority,
        limits=with_defaults(spec.limits, queue.defaults),
        rerunnable=(spec.rerunnable or queue.rerunnable) and not spec.never_rerun,
        **_default_slots(spec, queue.default_slots),
    )


def apply_site(draft: Draft) -> None:
    """DEFAULT_JOBGROUP, DEFAULT_USER_GROUP, DEFAULT_JOB_CWD (or a profile's JOB_CWD) and DEFAULT_JOB_OUTDIR."""
    params, spec, text = draft.conf.params, draft.spec, draft.text
    app = _find_app(draft.conf, spec.app)
    folder = (app.cwd if app is not None else "") or params.default_cwd
    if folder and not text.cwd_given:
        draft.text = text = replace(text, cwd=folder, cwd_given=True)
    if params.default_outdir and not text.output_dir:
        draft.text = replace(text, output_dir=params.default_outdir)
    group = spec.group or (read_path(params.default_group) if params.default_group else "")
    draft.spec = replace(spec, group=group, user_group=spec.user_group or params.default_user_group)


def apply_host_spec(draft: Draft, queue: QueueConf) -> None:
    """DEFAULT_HOST_SPEC: the host or model that a time limit without one is given for."""
    host = queue.limit_host or draft.conf.params.default_host_spec
    spec = draft.spec
    if host:
        draft.spec = replace(
            spec,
            run_host=spec.run_host or (host if spec.limits.run is not None else ""),
            cpu_host=spec.cpu_host or (host if spec.limits.cpu is not None else ""),
        )


def _find_app(conf: Conf, name: str) -> AppConf | None:
    return next((app for app in conf.apps if app.name == name), None)


def _check_resizable(spec: Spec) -> None:
    if not spec.resizable:
        return
    if spec.roles:
        raise Refused("a job with several roles cannot be resized")
    why = why_not_resizable(spec.launch)
    if why:
        raise Refused(why)


def _resizing(spec: Spec, app: AppConf) -> dict[str, Any]:
    """RESIZABLE_JOBS and RESIZE_NOTIFY_CMD, for jobs that can be resized at all."""
    possible = not why_not_resizable(spec.launch) and not spec.roles
    return {
        "resizable": spec.resizable or (bool(app.resizable) and possible),
        "autoresize": spec.autoresize or (app.resizable == "auto" and possible),
        "resize_command": spec.resize_command or app.resize_command,
    }


def _default_slots(spec: Spec, slots: int) -> dict[str, Any]:
    """The default number of slots (TASKLIMIT), for a job that does not ask for more than one."""
    if spec.slots == 1 and spec.max_slots == 1 and slots > 1 and not spec.roles:
        return {"slots": slots, "max_slots": slots}
    return {}


def _read_checkpoint(text: str, method: str, initial: int) -> Checkpoint:
    """``folder [minutes]``."""
    folder, _, period = text.partition(" ")
    return Checkpoint(folder=folder, period=int(period or 0) * 60, method=method, initial=initial)


def _merged_gpus(own: GpuReq | None, default: str) -> GpuReq | None:
    """The job's GPU requirement, with what the default says where it says nothing."""
    if own is None and not default:
        return None
    return gpureq.merge(own or gpureq.parse("-"), gpureq.parse(default) if default else None)


def _combined(default: str, own: str) -> str:
    if not default or not own:
        return default or own
    return resreq.combine(resreq.parse(default), resreq.parse(own)).text
