"""bmod of running jobs: what LSF allows to change, and its immediate effect on the hosts.

Rule: without LSB_MOD_ALL_JOBS only ``-R rusage`` and descriptions of the job may change; with it also limits, name and project.
``-r`` never may: the job runs without the lease that a rerun requires.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import asdict, replace

from config.model.values import Limits
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.draft import JobDraft
from lavad.core.decide.base.specs import spec_number
from lavad.core.decide.modify.change import Change, describe, reset
from lavad.core.decide.submit.defaults import apply_app_limits, apply_host_spec, settle_priority
from lavad.core.decide.submit.gpus import gpu_uses
from lavad.core.decide.submit.limits import with_defaults
from lavad.core.decide.submit.queue_rules import check_against_queue
from lavad.core.job.job import Job
from lavad.core.job.run_time import counted
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Modify, OptionValue, Refused
from lavad.core.lang.ids import index_of
from lavad.core.lang.job_names import ArrayError, name_of_command, parse_job_name
from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.resreq.sections import Rusage
from lavad.core.lang.resreq.text import ResReqError
from lavad.core.lang.states import OVER
from lavad.core.rules.per_slot import reserved
from lavad.core.rules.run_settings import mail_to, text_settings
from proto.options import ALWAYS, BY_NAME, IF_ALLOWED, NO, find_reset

RUNNING = "Job parameters cannot be changed now; non-repetitive job is running"
_BY_TIME = frozenset({"We+", "Wep"})
"""What is read with how long the job has run."""
_TOLD = ("output", "output_overwrite", "error", "error_overwrite", "notify_end", "report_mail")


def why_not_running(cluster: Cluster, ask: Modify) -> str:
    """Why this bmod is not allowed for a running job; "": it is."""
    if ask.command or not ask.options:
        return RUNNING
    allowed = (ALWAYS, IF_ALLOWED) if cluster.conf.params.lsb_mod_all_jobs else (ALWAYS,)
    return "" if all(_when(name) in allowed for name in ask.options) else RUNNING


def _when(name: str) -> str:
    """When an option, or its reset, is allowed for a running job."""
    option = find_reset(name)
    if option is not None:
        return option.reset_running
    return BY_NAME[name].running if name in BY_NAME else NO


class _Settled(NamedTuple):
    """What the request makes of a job that runs, and of all that are like it. ``spec``: the number of its new spec."""

    draft: JobDraft
    old: Spec
    spec: int
    changes: tuple[str, ...]
    amended: tuple[tuple[str, str], ...]


def modify_running(change: Change, job: Job) -> JobText:
    """Decide the event for a running job; returns its new text. Call ``why_not_running`` first."""
    cluster, options = change.cluster, change.ask.options
    settled = change.once(_settled, job, job.checkpoint >= 0, counted(job, change.now) if _BY_TIME & options.keys() else 0.0)
    spec, old = settled.draft.spec, settled.old
    amounts: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()
    run = job.run
    if run is not None and spec.resreq != old.resreq:
        parts = [part for part in run.parts if part.state not in OVER and part.slots]  # in a chunk one has them for all
        amounts = tuple((part.host, reserved(part, spec, old, cluster.conf)) for part in parts)
    change.decided.events.append(
        ev.JobModified(
            at=change.now,
            key=job.key,
            spec=settled.spec,
            name=_name(cluster, job, settled.draft, options),
            by=change.caller.user,
            changes=settled.changes,
            reserved=amounts,
            amended=settled.amended,
        )
    )
    return settled.draft.text


def _settled(change: Change, job: Job) -> _Settled:
    """Of a job: what it does not read of the record is left to ``modify_running``. Raises Refused."""
    cluster, options, now = change.cluster, change.ask.options, change.now
    old = cluster.specs.rows[job.spec]
    draft = change.begin_draft(job, ran=counted(job, now))
    if why := _why_not_files(cluster, change.text, options):
        raise Refused(why)
    _reset(draft, options)
    change.read_options(draft)
    if draft.spec.slots != old.slots or draft.spec.max_slots != old.max_slots:
        raise Refused(RUNNING)
    if "R" in options:
        draft.set_spec(resreq=_with_rusage(old.resreq, draft.spec.resreq))
    if limits := _limits_asked(options):
        _settle_limits(cluster, draft, old, limits)
    settle_priority(draft)
    number = spec_number(cluster, draft.spec, change.decided.events, now)
    changes = tuple(describe(name, value) for name, value in options.items())
    return _Settled(draft, old, number, changes, _amended(cluster, draft, change.text, _fields_asked(options)))


def _limits_asked(options: Iterable[str]) -> set[str]:
    """The fields of Limits that these options set or reset."""
    return {field.removeprefix("limits.") for field in _fields_asked(options) if field.startswith("limits.")}


def _fields_asked(options: Iterable[str]) -> set[str]:
    return {field for name in options for field in (find_reset(name) or BY_NAME[name]).fields.split()}


def _settle_limits(cluster: Cluster, draft: JobDraft, old: Spec, asked: set[str]) -> None:
    """What profile and queue say of the limits that are asked for; others stay, also in a queue to which it was switched.

    Raises Refused.
    """
    wanted = draft.spec
    draft.set_spec(limits=Limits(**{name: getattr(wanted.limits, name) for name in asked}))
    apply_app_limits(draft)
    queue = cluster.queue_conf.get(old.queue)
    if queue is not None:
        draft.set_spec(limits=with_defaults(draft.spec.limits, queue.defaults))
        check_against_queue(draft, queue)
        apply_host_spec(draft, queue)
    found = draft.spec
    draft.set_spec(
        limits=replace(wanted.limits, **{name: getattr(found.limits, name) for name in asked}),
        run_host=found.run_host if "run" in asked else old.run_host,
        cpu_host=found.cpu_host if "cpu" in asked else old.cpu_host,
    )


def _why_not_files(cluster: Cluster, text: JobText, options: dict[str, OptionValue]) -> str:
    """Why the output files cannot change: files that are written while the job runs stay where they are."""
    asked = {"o", "oo", "on", "e", "eo"} & options.keys()
    if not asked:
        return ""
    if text.interactive:
        return "Output files of an interactive job that runs cannot be changed"
    if text.output and cluster.conf.params.lsb_stdout_direct:
        return "Output files of a running job cannot be changed: with LSB_STDOUT_DIRECT=Y they are being written"
    if text.output == "/dev/null":
        return "The output of this running job is thrown away; a file for it cannot be added now"
    if asked & {"e", "eo"} and not text.error:
        return "Standard error of this running job goes with its standard output; an error file cannot be added now"
    if asked & {"e", "eo"} and not text.output:
        return "The error file of this running job cannot be changed: without -o it is being written"
    return ""


def _amended(cluster: Cluster, draft: JobDraft, old: JobText, asked: set[str]) -> tuple[tuple[str, str], ...]:
    """(field, value) of the fields of the text that the first host must know: those changed, and those asked for.

    The text may have changed before: a command that was broken off between two chunks is given again.
    """
    pattern = cluster.conf.params.lsb_mailto
    was, new = ({**asdict(text), "report_mail": mail_to(draft.spec, text_settings(text), pattern)} for text in (old, draft.text))
    if new["report_mail"] and asked & {"notify", "notify_end", "mail_user"}:
        asked = {*asked, "report_mail"}
    return tuple((name, _on_wire(new[name])) for name in _TOLD if name in asked or new[name] != was[name])


def _on_wire(value: str | bool) -> str:
    return value if isinstance(value, str) else "1" if value else ""


def _reset(draft: JobDraft, options: dict[str, OptionValue]) -> None:
    """As for a pending job, but of the requirement only rusage is reset, without its GPUs."""
    for name in options:
        option = find_reset(name)
        if option is not None and option.name == "R":
            draft.set_spec(resreq=_without_rusage(draft.spec.resreq))
        elif option is not None:
            reset(draft, option)


def _without_rusage(text: str) -> str:
    try:
        req = resreq.parse(text)
    except ResReqError:
        return ""
    gpus = tuple(gpu_uses(req))
    return resreq.with_rusage(req, (Rusage(gpus),) if gpus else ())


def _with_rusage(old: str, new: str) -> str:
    """The old requirement with the rusage of the new one, and with the GPUs that the job has.

    A running job stays on its hosts, so that nothing else may change; raises Refused.
    """
    one, other = resreq.parse(old), resreq.parse(new)
    names = ("select", "order", "span", "same", "cu", "affinity")
    named = any(getattr(other, name) and getattr(other, name) != getattr(one, name) for name in names)
    if named or other.compound or other.alternatives or one.compound or one.alternatives:
        raise Refused("Only the rusage section of the resource requirement of a running job can be changed")
    gpus, asked = gpu_uses(one), gpu_uses(other)
    if (asked and asked != gpus) or (gpus and len(other.rusage) > 1):
        raise Refused("The GPUs of a running job cannot be changed")
    if asked or not gpus:
        return resreq.with_rusage(one, other.rusage)
    return resreq.with_rusage(one, (Rusage((*(use for rusage in other.rusage for use in rusage.uses), *gpus)),))


def _name(cluster: Cluster, job: Job, draft: JobDraft, options: dict[str, OptionValue]) -> str:
    if "J" not in options:
        return job.name
    text = draft.name or name_of_command(draft.text.command).split("[")[0] or "job"
    try:
        parsed = parse_job_name(text, cluster.conf.params.max_job_array_size)
    except ArrayError as error:
        raise Refused(str(error)) from None
    if not isinstance(parsed, str):
        raise Refused("Bad job name")
    return f"{parsed}[{index_of(job.key)}]" if index_of(job.key) else parsed
