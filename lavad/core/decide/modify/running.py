"""bmod of jobs that run: what LSF lets change, and how it takes effect at once on the hosts.

Rule: without LSB_MOD_ALL_JOBS only what is reserved (``-R rusage``) and notes about the job may change; with it also
limits, name and project. ``-r`` never: the job runs without the lease that another start of it needs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec.structs import asdict, replace

from config.model.values import Limits
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.draft import Draft
from lavad.core.decide.submit.options import read_options
from lavad.core.decide.submit.queue_rules import check_against_queue
from lavad.core.decide.submit.submit import known_names, known_resources, spec_number
from lavad.core.job.job import Job
from lavad.core.job.spec import JobText
from lavad.core.lang.arrays import ArrayError, parse_job_name
from lavad.core.lang.asks import Caller, Modify, OptionValue, Refused
from lavad.core.lang.ids import index_of
from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.resreq.text import ResReqError
from lavad.core.lang.states import OVER
from lavad.core.rules.per_slot import reserved
from lavad.core.site.mail_to import mail_to

RUNNING = "Job parameters cannot be changed now; non-repetitive job is running"
ALWAYS = frozenset(("R", "Rn", "We", "We+", "Wep", "Wen", "Jd", "Jdn", "N", "Nn", "u", "un", "Q", "Qn"))
WITH_ALL = frozenset(
    ("c", "cn", "W", "Wn", "M", "Mn", "v", "vn", "p", "pn", "J", "P", "Pn", "sp", "spn", "rn", "o", "oo", "on", "e", "eo")
)
"""More that may change with LSB_MOD_ALL_JOBS=Y."""
_TOLD = ("output", "output_overwrite", "error", "error_overwrite", "mail_user", "notify_end", "report_mail")
_LIMITS = {"W": "run", "c": "cpu", "M": "mem", "v": "swap", "p": "processes"}
_RESET: dict[str, dict[str, Any]] = {
    "Jdn": {"description": ""},
    "Nn": {"notify_end": False},
    "un": {"mail_user": ""},
    "on": {"output": ""},
}


def why_not(cluster: Cluster, ask: Modify) -> str:
    """Why what is asked may not be changed while a job runs, "" if it may."""
    if ask.command or not ask.options:
        return RUNNING
    allowed = ALWAYS | WITH_ALL if cluster.conf.params.mod_all_jobs else ALWAYS
    return "" if allowed.issuperset(ask.options) else RUNNING


def modify(
    cluster: Cluster, job: Job, ask: Modify, text: JobText, caller: Caller, now: float, local: datetime, decided: Decided
) -> JobText:
    """The event for a job that runs; the text that it has then. ``why_not`` has been asked."""
    old = cluster.specs.rows[job.spec]
    draft = Draft(
        spec=old,
        text=text,
        conf=cluster.conf,
        local=local,
        name=job.name,
        known_hosts=known_names(cluster),
        known_resources=known_resources(cluster),
        ran=_ran(job, now),
    )
    if why := _why_not_files(cluster, text, ask.options):
        raise Refused(why)
    _reset(draft, ask.options)
    read_options(draft, {name: value for name, value in ask.options.items() if not _resets(name)})
    if draft.spec.slots != old.slots or draft.spec.max_slots != old.max_slots:
        raise Refused(RUNNING)
    if "R" in ask.options:
        _only_rusage(old.resreq, draft.spec.resreq)
    queue = cluster.queue_conf.get(old.queue)
    if queue is not None:
        check_against_queue(draft, queue)
    number = spec_number(cluster, draft.spec, decided.events, now)
    amounts: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()
    run = job.run
    if run is not None and draft.spec.resreq != old.resreq:
        parts = [part for part in run.parts if part.state not in OVER]
        amounts = tuple((part.host, reserved(part, draft.spec, old, cluster.conf)) for part in parts)
    decided.events.append(
        ev.JobModified(
            at=now,
            key=job.key,
            spec=number,
            name=_name(cluster, job, draft, ask.options),
            by=caller.user,
            changes=tuple(_change(name, value) for name, value in ask.options.items()),
            reserved=amounts,
            amended=_amended(cluster, draft, text),
        )
    )
    return draft.text


def _ran(job: Job, now: float) -> float:
    run = job.run
    return max(0.0, now - (run.started or run.dispatched) - run.paused) if run is not None else 0.0


def _why_not_files(cluster: Cluster, text: JobText, options: dict[str, OptionValue]) -> str:
    """Why the output files cannot be others: what is written while the job runs stays where it is."""
    asked = {"o", "oo", "on", "e", "eo"} & options.keys()
    if not asked:
        return ""
    if text.interactive:
        return "Output files of an interactive job that runs cannot be changed"
    if text.output and cluster.conf.params.stdout_direct:
        return "Output files of a running job cannot be changed: with LSB_STDOUT_DIRECT=Y they are being written"
    if not text.error and asked & {"e", "eo"}:
        return "Standard error of this running job goes with its standard output; an error file cannot be added now"
    return ""


def _amended(cluster: Cluster, draft: Draft, old: JobText) -> tuple[tuple[str, str], ...]:
    """What the job's first host must know of: the fields of its text that are others now."""
    pattern = cluster.conf.params.mail_to
    was, new = ({**asdict(text), "report_mail": mail_to(draft.spec, text, pattern)} for text in (old, draft.text))
    return tuple((name, _on_wire(new[name])) for name in _TOLD if new[name] != was[name])


def _on_wire(value: str | bool) -> str:
    return value if isinstance(value, str) else "1" if value else ""


def _resets(option: str) -> bool:
    return option in _RESET or option in ("Rn", "Qn", "Pn", "spn", "rn", "Wen") or (option[:-1] in _LIMITS and option[-1:] == "n")


def _reset(draft: Draft, options: dict[str, OptionValue]) -> None:
    for option in options:
        if option in _RESET:
            draft.set_text(**_RESET[option])
        elif option[:-1] in _LIMITS and option.endswith("n"):
            draft.set_limit(**{_LIMITS[option[:-1]]: getattr(Limits(), _LIMITS[option[:-1]])})
        elif option == "Rn":
            draft.set_spec(resreq=_without_rusage(draft.spec.resreq))
        elif option == "Wen":
            draft.set_spec(estimate=0)
        elif option == "rn":
            draft.set_spec(rerunnable=False, never_rerun=True)
        elif option == "Qn":
            draft.set_spec(requeue="")
        elif option == "spn":
            draft.set_spec(priority=-1)
        elif option == "Pn":
            draft.set_spec(project=draft.conf.params.default_project)


def _without_rusage(text: str) -> str:
    try:
        return resreq.show(replace(resreq.parse(text), rusage=()))
    except ResReqError:
        return ""


def _only_rusage(old: str, new: str) -> None:
    """A job that runs stays on its hosts: of its requirement only what it reserves may change."""
    one, other = resreq.parse(old), resreq.parse(new)
    named = (other.select is not None and other.select != one.select) or other.compound or other.alternatives
    if named or (other.span is not None and other.span != one.span) or one.compound or one.alternatives:
        raise Refused("Only the rusage section of the resource requirement of a running job can be changed")


def _name(cluster: Cluster, job: Job, draft: Draft, options: dict[str, OptionValue]) -> str:
    if "J" not in options:
        return job.name
    try:
        parsed = parse_job_name(draft.name, cluster.conf.params.max_array)
    except ArrayError as error:
        raise Refused(str(error)) from None
    if not isinstance(parsed, str):
        raise Refused("Bad job name")
    return f"{parsed}[{index_of(job.key)}]" if index_of(job.key) else parsed


def _change(option: str, value: OptionValue) -> str:
    if _resets(option):
        return f"Option -{option[:-1]} is reset"
    shown = " ".join(value) if isinstance(value, list) else value
    return f"Option -{option} changes to : {shown}"
