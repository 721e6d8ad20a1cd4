"""bjobs -l and -UF: everything about each job, in LSF's paragraphs; then what lava adds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lavad.core.job.job import Job
from lavad.core.job.run_time import run_time, start_of
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.ids import show as show_key
from lavad.core.lang.job_names import name_of_command, one_line
from lavad.core.lang.states import SUSPENDED, WAITING, JobState
from lavad.core.rules.run_settings import soft_limit
from lavad.queries.facts import (
    checkpoints,
    gpu_usage,
    jobfacts,
    load,
    paragraphs,
    queuefacts,
    reasons,
    resources,
    slot_reservations,
    tasks,
    use,
)
from lavad.queries.frame import formats
from lavad.queries.frame.formats import INDENT, RULE, wrap
from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.frame.view import View
from lavad.queries.jobs.bjobs_rows import Form
from proto import advice

_BATCH = 200
_TOLD = 300.0
"""Seconds of run time below which nothing is said of waste here, where programs read LSF's own lines."""


_INTERACTIVE = {
    "Ip": "Interactive pseudo-terminal mode",
    "Is": "Interactive pseudo-terminal shell mode",
}


def show(request: Request, form: Form, jobs: Iterator[Job]) -> Iterator[Shown]:
    """One record a job, with a line between two."""
    first = True
    names = form.level is not None
    while batch := list(islice(jobs, _BATCH)):
        texts = request.view.texts(batch)
        for job in batch:
            record = Record(request, job, texts[job.key], form, names)
            yield out(("" if first else RULE) + record.all())
            first = False


def head(job: Job, spec: Spec, text: JobText, status: str, service: str) -> str:
    """The first paragraph up to the command; bhist -l has it without status and queue. ``service``: its service class."""
    words = [f"Job <{show_key(job.key)}>"]
    if job.name != name_of_command(text.command):
        words.append(f"Job Name <{job.name}>")
    words += [f"User <{spec.user}>", f"Project <{spec.project}>"]
    named = (("Application", spec.app), ("Service Class", service), ("User Group", spec.user_group), ("Mail", text.mail_user))
    for title, value in named:
        if value:
            words.append(f"{title} <{value}>")
    if status:
        words += [f"Status <{status}>", f"Queue <{spec.queue}>"]
        if spec.interactive:
            words.append(_INTERACTIVE.get(text.interactive, "Interactive mode"))
        if spec.reservation:
            words.append(f"Reservation <{spec.reservation}>")
        if spec.priority >= 0:
            words.append(f"Job Priority <{spec.priority}>")
    words.append(f"Command <{one_line(text.command)}>")
    for title, value in (("Job Group", spec.group), ("Job Description", text.description), ("Esub", text.esub)):
        if value:
            words.append(f"{title} <{value}>")
    return one_line(", ".join(words))


class Record:
    """The record of one job."""

    def __init__(self, request: Request, job: Job, text: JobText, form: Form, names: bool) -> None:
        self.view: View = request.view
        self.now = request.now
        self.job = job
        self.text = text
        self.spec: Spec = request.view.spec(job)
        self.options = form.options
        self.plain = "UF" in form.options
        self.level = form.level if form.level is not None else self.view.params.lsb_bjobs_pendreason_level
        self.factor = form.factor
        self.names = names
        self.usage = jobfacts.Usage(job, self.view)

    def line(self, at: float, words: str) -> str:
        """A dated paragraph."""
        return wrap(f"{self.view.full_time(at)}: {words}", self.plain)

    def all(self) -> str:
        return "".join(
            [
                "\n",
                wrap(
                    head(self.job, self.spec, self.text, self.job.state.name, self.view.service_classes.of(self.spec)), self.plain
                ),
                self.submitted(),
                self.reserved(),
                self.limits(),
                self.started(),
                self.used(),
                self.hung(),
                self.ended(),
                self.why(),
                tasks.role_tables(self.job, self.spec),
                self.memory(),
                self.scheduling(),
                self.exceptions(),
                self.requirements(),
            ]
        )

    def submitted(self) -> str:
        """Submitted from host …"""
        options = paragraphs.submission(self.view, self.spec, self.text, self.job.depend)
        hold = " on hold" if self.text.on_hold else ""
        words = f"Submitted from host <{self.spec.from_host}>{hold}{options};"
        return self.line(self.job.submitted, words)

    def limits(self) -> str:
        """The tables of its limits, as they are for its attempt."""
        run = self.job.run
        soft = soft_limit(self.view.cluster, self.job, self.spec) if self.job.outcome is None else None
        total, eligible = jobfacts.pend_limits(self.view, self.spec, self.text) if self.job.state in WAITING else (0, 0)
        times = (
            ("SOFT_RUNLIMIT", soft, self.spec.run_host or self.spec.from_host),
            ("PEND_TIME_LIMIT", total or None, ""),
            ("ELIGIBLE_PEND_TIME_LIMIT", eligible or None, ""),
        )
        return paragraphs.limits(self.spec, run.limits if run is not None else None, times)

    def reserved(self) -> str:
        """The slots that are reserved for a waiting job, and when it starts at the latest."""
        if self.job.state is not JobState.PEND:
            return ""
        found, held = slot_reservations.find(self.view, self.job), slot_reservations.held_sentence(self.view, self.job)
        lines = self.line(self.now, held) if held else ""
        if found is not None and found.start:
            lines += self.line(found.start, "Job will start no sooner than indicated time stamp;")
        return lines

    def started(self) -> str:
        """Started on …"""
        if self.job.run is None:
            return ""
        return self.line(start_of(self.job) or self.job.run.dispatched, paragraphs.started(self.view, self.job, self.text))

    def used(self) -> str:
        """Resource usage collected, of a running job; then each rank."""
        usage = self.usage
        if not usage.parts or self.job.outcome is not None:
            return ""
        lines = []
        if usage.cpu >= 1:
            lines.append(f"The CPU time used is {usage.cpu:.0f} seconds.")
        lines.append(f"MEM: {formats.bytes_text(usage.mem)};  SWAP: {formats.bytes_text(usage.swap)};  NTHREAD: {usage.threads}")
        for part in usage.parts.values():
            pids = " ".join(map(str, part.pids))
            lines.append(f"PGID: {', '.join(map(str, part.pgids[:1])) or '-'};  PIDs: {pids} ")
        if self.plain:
            return self.line(usage.at, f"Resource usage collected. {' '.join(lines)}") + "\n\n"
        block = self.line(usage.at, "Resource usage collected.") + "".join(_indented(line) for line in lines)
        ranks = tasks.usage_table(usage)
        return f"{block}\n\n{ranks}" if not ranks else f"{block}\n\n{ranks}\n"

    def hung(self) -> str:
        run = self.job.run
        if run is None or self.job.state is not JobState.RUN:
            return ""
        return "".join(self.line(suspect.since, f"{tasks.suspicion(suspect, self.now)};") for suspect in run.suspects)

    def ended(self) -> str:
        if self.job.outcome is None:
            return ""
        lines = [*paragraphs.ended(self.job, ".", self.factor), *self.kept()]
        return "".join(self.line(self.job.outcome.at, line) for line in lines)

    def kept(self) -> Iterator[str]:
        """Where its output is if no file was named for it."""
        run = self.job.run
        if run is not None and run.verdict is not None and run.verdict.output:
            yield f"Output kept in <{run.parts[0].host}:{run.verdict.output}>."

    def why(self) -> str:
        """Pending and suspend reasons."""
        if self.job.state in WAITING:
            return " PENDING REASONS:\n" + "".join(reasons.pending(self.view, self.job, self.level, self.names))
        if self.job.state in SUSPENDED:
            return " SUSPENDING REASONS:\n" + "".join(reasons.suspended(self.view, self.job))
        return ""

    def memory(self) -> str:
        usage = self.usage
        if self.job.run is None or not usage.max_mem:
            return ""
        lead = "" if usage.parts and self.job.outcome is None else "\n"
        return lead + paragraphs.efficiency(self.job, self.spec, usage, self.now, " ")

    def scheduling(self) -> str:
        """Load thresholds of the queue."""
        table = load.threshold_table(self.view.cluster.conf, self.view.queue(self.spec.queue).thresholds)
        lead = "" if self.usage.parts and not self.job.outcome and not self.usage.max_mem else "\n"
        return f"{lead} SCHEDULING PARAMETERS:\n{table}"

    def exceptions(self) -> str:
        found = queuefacts.job_exceptions(self.job, self.view, self.now)
        return f"\n EXCEPTION STATUS:  {' '.join(found)}\n" if found else ""

    def requirements(self) -> str:
        """Resource requirements (BJOBS_RES_REQ_DISPLAY), and GPUs."""
        level = self.view.params.bjobs_res_req_display
        lines = [] if level == "NONE" else ["\n RESOURCE REQUIREMENT DETAILS:\n"]
        if level == "FULL":
            lines += [wrap(f" {name}: {text}", self.plain) for name, text in resources.configured(self.view, self.spec)]
        if level != "NONE":
            effective = resources.effective(self.view, self.spec, self.job) or "-"
            lines.append(wrap(f" Combined: {resources.combined(self.view, self.spec)}", self.plain))
            lines.append(wrap(f" Effective: {effective}", self.plain))
        if "aff" in self.options:
            lines.append("\n" + resources.job_affinity(self.view, self.spec, self.job))
        if "gpu" in self.options:
            lines += [resources.gpu_requirement(self.spec), resources.gpu_allocation(self.view, self.job)]
            lines.append(gpu_usage.table(self.job, self.usage))
        else:
            lines += self.gpus()
        lines.append(checkpoints.section(self.job.checkpoints))
        if wasted := gpu_usage.waste(self.usage):
            lines.append(f"\n GPU USAGE: {wasted}\n")
        elif run_time(self.job, self.now) >= _TOLD and (said := self.advice()):
            lines.append(f"\n ADVICE: {said}\n")
        if "hostfile" in self.options:
            lines.append(paragraphs.host_file(self.spec))
        return "".join(lines) + "\n"

    def advice(self) -> str:
        return advice.sentence(use.of_job(self.job, self.spec, self.view, self.now)) if self.usage.known else ""

    def gpus(self) -> Iterator[str]:
        """The GPUs that each part holds."""
        held = [part for part in jobfacts.parts_of(self.job) if part.gpus]
        if held:
            yield "\n GPU ALLOCATION:\n HOST             GPU MODEL                          UUID\n"
        for part in held:
            host = self.view.cluster.hosts.rows.get(part.host)
            known = {gpu.uuid: gpu for gpu in host.facts.gpus} if host is not None else {}
            for uuid in part.gpus:
                gpu = known.get(uuid)
                index, model = (str(gpu.index), gpu.model) if gpu is not None else ("-", "-")
                yield f" {part.host:<16} {index:>3} {model or '-':<30} {uuid}\n"


def _indented(line: str) -> str:
    """A line of the usage block: at column 21, long ones broken between words."""
    lines, rest = [], line
    while len(rest) > 58:
        cut = rest.rfind(" ", 0, 59)
        cut = cut if cut > 0 else 58
        lines.append(rest[:cut])
        rest = rest[cut:].lstrip(" ")
    return "".join(f"{INDENT}{piece}\n" for piece in [*lines, rest])
