"""What lsb.params, the queue and the application profile say for a job that says nothing: groups, folders, host specs.

Rule: the job's own word goes before its application profile's, that before the queue's, that before lsb.params.
"""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core.decide.base.draft import Draft
from lavad.core.job.groups import read_path
from lavad.core.site.conf import QueueConf


def apply_site(draft: Draft) -> None:
    """DEFAULT_JOBGROUP, DEFAULT_USER_GROUP, DEFAULT_JOB_CWD (or a profile's JOB_CWD) and DEFAULT_JOB_OUTDIR."""
    params, spec, text = draft.conf.params, draft.spec, draft.text
    app = next((app for app in draft.conf.apps if app.name == spec.app), None)
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
