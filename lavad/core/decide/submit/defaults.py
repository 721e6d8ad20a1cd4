"""Defaults of a job from its application profile, its queue and lsb.params.

Rule: the job's own options override its application profile, which overrides the queue, which overrides lsb.params.
"""

from __future__ import annotations

from msgspec.structs import replace

from config.model.queue import ApplicationConfig, JobProfile, QueueConfig
from config.model.values import CHKPNT_DEFAULTS, Chkpnt, Resizable
from lavad.core.decide.base.draft import JobDraft
from lavad.core.decide.submit.files import below
from lavad.core.decide.submit.limits import check_most, check_size, with_defaults, without
from lavad.core.decide.submit.slots import check_configured
from lavad.core.job.groups import read_path
from lavad.core.job.resize import why_not_resizable
from lavad.core.job.spec import Checkpoint, Spec
from lavad.core.lang.asks import Refused
from lavad.core.lang.resreq import text as resreq


def apply_app(draft: JobDraft) -> None:
    """Apply the application profile; raises Refused where the job exceeds its limits."""
    _check_resizable(draft.spec)
    app = draft.conf.app_conf.get(draft.spec.app or draft.conf.params.default_application)
    if app is None:
        return
    draft.set_spec(app=app.name, **_default_slots(draft.spec, app))
    spec, text = draft.spec, draft.text
    apply_app_limits(draft)
    draft.spec = replace(
        draft.spec,
        checkpoint=_with_method(spec.checkpoint, app.chkpnt) or _checkpoint(app.chkpnt),
        requeue=spec.requeue or str(app.requeue_exit_values),
        estimate=spec.estimate or app.estimated_runtime or app.runtime,
        resreq=_combined(app, spec.resreq),
        rerunnable=(spec.rerunnable or bool(app.rerunnable)) and not spec.never_rerun,
        never_rerun=spec.never_rerun or (app.rerunnable is False and not spec.rerunnable),
        **_resizing(spec, app),
    )
    draft.text = replace(text, pre_exec=text.pre_exec or app.pre_exec, post_exec=text.post_exec or app.post_exec)


def leave_app(draft: JobDraft) -> None:
    """Take back what the application profile has given a job; which values a job has named is not recorded: what the profile
    would have given it anyway is taken for the profile's. That it never runs again (-rn) stays.
    """
    app, spec, text = draft.conf.app_conf.get(draft.spec.app), draft.spec, draft.text
    if app is None:
        return
    autoresize = spec.autoresize and app.resizable_jobs is not Resizable.AUTO
    draft.spec = replace(
        spec,
        checkpoint=None if _is_given(draft, app.chkpnt) else spec.checkpoint,
        rerunnable=spec.rerunnable and not app.rerunnable,
        resizable=autoresize or (spec.resizable and app.resizable_jobs is Resizable.NO),
        autoresize=autoresize,
        resize_command="" if spec.resize_command == app.resize_notify_cmd else spec.resize_command,
        requeue="" if spec.requeue == str(app.requeue_exit_values) else spec.requeue,
        estimate=0 if spec.estimate == (app.estimated_runtime or app.runtime) else spec.estimate,
        limits=without(spec.limits, app.defaults, app.limits),
        resreq="" if spec.resreq == app.res_req else spec.resreq,
    )
    draft.text = replace(
        text,
        pre_exec="" if text.pre_exec == app.pre_exec else text.pre_exec,
        post_exec="" if text.post_exec == app.post_exec else text.post_exec,
    )


def leave_queue_reruns(draft: JobDraft, queue: QueueConfig | None) -> None:
    """Take back that a queue has made a job rerunnable or checkpointable, as ``leave_app`` does with what a profile gives."""
    spec, app = draft.spec, draft.conf.app_conf.get(draft.spec.app)
    if queue is None:
        return
    by_app = app is not None and (app.rerunnable, _is_given(draft, app.chkpnt))
    kept, kept_checkpoint = by_app or (False, False)
    draft.set_spec(
        rerunnable=spec.rerunnable and (kept or not queue.rerunnable),
        checkpoint=spec.checkpoint if kept_checkpoint or not _is_given(draft, queue.chkpnt) else None,
    )


def apply_app_requirement(draft: JobDraft) -> None:
    """Put the application profile's RES_REQ before the requirement that a job has named. Raises Refused."""
    app = draft.conf.app_conf.get(draft.spec.app)
    if app is not None:
        draft.set_spec(resreq=_combined(app, draft.spec.resreq))


def settle_resizable(draft: JobDraft) -> None:
    """A job that its profile has made resizable is so where it can be; raises Refused for another that cannot."""
    app, spec = draft.conf.app_conf.get(draft.spec.app), draft.spec
    if app is not None and app.resizable_jobs is not Resizable.NO and why_not_resizable(spec.launch):
        draft.set_spec(resizable=False, autoresize=False)
    else:
        _check_resizable(spec)


def apply_app_limits(draft: JobDraft) -> None:
    """The limits that the application profile gives to a job that names none; raises Refused where the job exceeds its own."""
    app, own = draft.conf.app_conf.get(draft.spec.app), draft.spec.limits
    if app is None:
        return
    draft.set_spec(limits=with_defaults(own, app.defaults))
    check_against_app(draft)
    limits = draft.spec.limits
    if limits.run != own.run:
        draft.set_spec(run_host=app.default_host_spec)
    if limits.cpu != own.cpu:
        draft.set_spec(cpu_host=app.default_host_spec)


def check_against_app(draft: JobDraft) -> None:
    """The application profile's own limits on what a job may ask for; the job has those that it does not name."""
    app = draft.conf.app_conf.get(draft.spec.app)
    if app is None:
        return
    check_most(draft.spec.limits, app.limits, "the application profile's limit")
    check_size(draft.spec, app)
    draft.set_spec(limits=with_defaults(draft.spec.limits, app.limits))


def settle_priority(draft: JobDraft) -> None:
    """The priority of a job that names none is half of MAX_USER_PRIORITY."""
    most = draft.conf.params.max_user_priority
    if draft.spec.priority < 0 and most:
        draft.set_spec(priority=most // 2)


def apply_queue(draft: JobDraft, queue: QueueConfig) -> None:
    """Apply the defaults of the queue."""
    settle_priority(draft)
    spec = draft.spec
    draft.spec = replace(
        spec,
        queue=queue.name,
        checkpoint=_of_queue(draft, queue),
        limits=with_defaults(spec.limits, queue.defaults),
        estimate=spec.estimate or queue.estimated_runtime or 0,
        rerunnable=(spec.rerunnable or queue.rerunnable) and not spec.never_rerun,
        **_default_slots(spec, queue),
    )
    _check_checkpoint(draft.spec)


def apply_site(draft: JobDraft) -> None:
    """DEFAULT_JOBGROUP, DEFAULT_USER_GROUP, DEFAULT_JOB_CWD (or a profile's JOB_CWD) and DEFAULT_JOB_OUTDIR."""
    params, spec = draft.conf.params, draft.spec
    apply_working_folder(draft)
    if params.default_job_outdir and not draft.text.output_dir:
        draft.set_text(output_dir=params.default_job_outdir)
    group = spec.group or (read_path(params.default_jobgroup) if params.default_jobgroup else "")
    draft.spec = replace(spec, group=group, user_group=spec.user_group or params.default_user_group)


def apply_working_folder(draft: JobDraft) -> None:
    """DEFAULT_JOB_CWD, or a profile's JOB_CWD, of a job that names no folder."""
    app, text = draft.conf.app_conf.get(draft.spec.app), draft.text
    folder = (app.job_cwd if app is not None else "") or draft.conf.params.default_job_cwd
    if folder and not text.cwd_given:
        draft.set_text(cwd=below(text.cwd, folder), cwd_given=True, submit_cwd=text.cwd)


def apply_host_spec(draft: JobDraft, queue: QueueConfig) -> None:
    """DEFAULT_HOST_SPEC: the host or model that a time limit without one is given for."""
    host = queue.default_host_spec or draft.conf.params.default_host_spec
    spec = draft.spec
    if host:
        app = draft.conf.app_conf.get(spec.app)
        extended = any(one is not None and one.extendable_runlimit is not None for one in (app, queue))
        draft.spec = replace(
            spec,
            run_host=spec.run_host or (host if spec.limits.run is not None or extended else ""),
            cpu_host=spec.cpu_host or (host if spec.limits.cpu is not None else ""),
        )


def _checkpoint(given: Chkpnt | None) -> Checkpoint | None:
    """A job's checkpoints as its application profile or queue has them."""
    if given is None or not given.dir:
        return None
    return Checkpoint(folder=given.dir, period=given.period or 0, method=given.method, initial=given.initial)


def _is_given(draft: JobDraft, given: Chkpnt | None) -> bool:
    """Whether a job may lose its checkpoints with the profile or queue that has given it these."""
    own, made = draft.spec.checkpoint, _checkpoint(given)
    if own is None or made is None or draft.has_checkpoint:
        return False
    return replace(own, method=made.method) == made


def _check_checkpoint(spec: Spec) -> None:
    """A site's program checkpoints one process tree or one launcher's, not tasks that start and end one by one."""
    method = spec.checkpoint.method if spec.checkpoint is not None else ""
    if spec.roles and method not in (*CHKPNT_DEFAULTS, "app"):
        raise Refused(f"{method}: a job with several roles writes its checkpoints itself (method=app)")


def _with_method(own: Checkpoint | None, given: Chkpnt | None) -> Checkpoint | None:
    """The job's own checkpoints, with the method of the profile or queue where it names none."""
    return own if own is None or own.method or given is None else replace(own, method=given.method)


def _of_queue(draft: JobDraft, queue: QueueConfig) -> Checkpoint | None:
    """The job's checkpoints with what its queue adds; a profile's method goes before the queue's."""
    if draft.spec.checkpoint is not None:
        return _with_method(draft.spec.checkpoint, queue.chkpnt)
    app, made = draft.conf.app_conf.get(draft.spec.app), _checkpoint(queue.chkpnt)
    method = app.chkpnt.method if app is not None and app.chkpnt is not None else ""
    return replace(made, method=method) if made is not None and method else made


def _check_resizable(spec: Spec) -> None:
    if not spec.resizable:
        return
    if spec.roles:
        raise Refused("a job with several roles cannot be resized")
    why = why_not_resizable(spec.launch)
    if why:
        raise Refused(why)


def _resizing(spec: Spec, app: ApplicationConfig) -> dict[str, bool | str]:
    """RESIZABLE_JOBS and RESIZE_NOTIFY_CMD, for jobs that can be resized at all."""
    possible = not why_not_resizable(spec.launch) and not spec.roles
    return {
        "resizable": spec.resizable or (app.resizable_jobs is not Resizable.NO and possible),
        "autoresize": spec.autoresize or (app.resizable_jobs is Resizable.AUTO and possible),
        "resize_command": spec.resize_command or app.resize_notify_cmd,
    }


def _default_slots(spec: Spec, profile: JobProfile) -> dict[str, int]:
    """The default number of slots (JOB_SIZE_LIST, else TASKLIMIT), for a job that does not ask for more than one."""
    slots = profile.job_size_list[0] if profile.job_size_list else profile.tasklimit.default
    if spec.slots == 1 and spec.max_slots == 1 and slots > 1 and not spec.roles:
        return {"slots": slots, "max_slots": slots}
    return {}


def _combined(app: ApplicationConfig, own: str) -> str:
    default = app.res_req
    check_configured(f"RES_REQ of application profile {app.name}", default)
    if not default or not own:
        return default or own
    return resreq.combine(resreq.parse(default), resreq.parse(own)).text
