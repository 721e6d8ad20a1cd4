"""The sentences about a job that bjobs -l and bhist -l share: its submission, limits, places and end.

Rule: with LSB_ENABLE_HPC_ALLOCATION=Y the words are LSF 10.1's (tasks, slots), else the older ones (processors).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from config.model.queue import JobProfile
from config.model.values import Limits
from lavad.core.job.chunk import slots_in
from lavad.core.job.depend import Depend
from lavad.core.job.job import Job
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang import gpureq
from lavad.core.lang.ids import index_of
from lavad.core.lang.job_names import one_line
from lavad.core.lang.states import JobState, TermReason
from lavad.queries.facts import jobfacts
from lavad.queries.frame import formats
from lavad.queries.frame.view import View

WAITS_IN_CHUNK = "Waiting behind other jobs of its chunk;"


def submission(view: View, spec: Spec, text: JobText, depend: Depend | None) -> str:
    """The options of the submission, each with its comma before it, in one line: a newline in a path, say, begins none."""
    words: list[str] = []
    if spec.begin:
        words.append(f"Specified Start Time <{view.full_time(spec.begin)}>")
    if spec.deadline:
        words.append(f"Specified Termination Time <{view.full_time(spec.deadline)}>")
    if text.cwd:
        words.append(f"CWD <{short_path(text.cwd, text.home)}>")
    for title, value, overwrite in (
        ("Input File", text.input, False),
        ("Output File", text.output, text.output_overwrite),
        ("Error File", text.error, text.error_overwrite),
        ("Output Directory", text.output_dir, False),
    ):
        if value:
            words.append(f"{title}{' (overwrite)' if overwrite else ''} <{value}>")
    if text.host_file:
        words.append(f"Host file <{text.host_file}>")
    words += _notices(text) + _flags(spec)
    words += _requests(view, spec, depend)
    words += ['Copy Files "' + '", "'.join(text.copies) + '"'] if text.copies else []
    if text.pre_exec:
        words.append(f"Pre-execute Command <{text.pre_exec}>")
    if text.post_exec:
        words.append(f"Post-execute Command <{text.post_exec}>")
    if text.login_shell:
        words.append(f"Login Shell <{text.login_shell}>")
    most = view.params.max_user_priority
    if spec.priority >= 0 and (most is None or spec.priority != most // 2):
        words.append(f"User Priority <{spec.priority}>")
    return one_line("".join(f", {word}" for word in words))


_HOST_SLOTS = re.compile(r"(?:(\d+)\*\{)?select\[hname==([^\]]+)\]")


def host_file(spec: Spec) -> str:
    """The hosts of a host file with their slots, as the requirement keeps them."""
    rows = [(host, int(count or spec.slots)) for count, host in _HOST_SLOTS.findall(spec.resreq)]
    table = "".join(f"{host:<15} {slots:>5}\n" for host, slots in rows)
    return f"\nUSER-SPECIFIED HOST FILE:\nHOST            SLOTS\n{table}" if rows else ""


def _notices(text: JobText) -> list[str]:
    if text.notify_start and text.notify_end:
        return ["Notify when job begins/ends"]
    if text.notify_start:
        return ["Notify when job begins"]
    return ["Notify when job ends"] if text.notify_end else []


def _flags(spec: Spec) -> list[str]:
    words = []
    if spec.exclusive:
        words.append("Exclusive Execution")
    if spec.rerunnable:
        words.append("Re-runnable")
    if spec.memory_auto:
        words.append("Memory limit auto")
    if spec.checkpoint is not None:
        if spec.checkpoint.period:
            words.append(f"Checkpoint period {spec.checkpoint.period // 60} min.")
        elif spec.checkpoint.auto:
            words.append("Checkpoint period auto")
        if spec.checkpoint.requeues:
            words.append("Requeued at the run limit")
        words.append(f"Checkpoint directory <{spec.checkpoint.folder}>")
        if spec.checkpoint.stage:
            words.append(f"Checkpoints staged to <{spec.checkpoint.stage}>")
        if spec.checkpoint.to_hosts:
            words.append("Checkpoints staged to other hosts")
        if spec.checkpoint.method:
            words.append(f"Checkpoint method <{spec.checkpoint.method}>")
    return words


def _requests(view: View, spec: Spec, depend: Depend | None) -> list[str]:
    words = []
    if spec.max_slots > 1:
        count = str(spec.slots) if spec.slots == spec.max_slots else f"{spec.slots}-{spec.max_slots}"
        words.append(f"{count.replace('-', ', ')} Task(s)" if view.hpc else f"{count} Processors Requested")
    if spec.resreq:
        words.append(f"Requested Resources <{spec.resreq}>")
    if spec.gpu is not None:
        words.append(f"Requested GPU <{gpureq.show(spec.gpu)}>")
    if spec.hosts:
        words.append("Specified Hosts " + ", ".join(f"<{host}>" for host in spec.hosts))
    condition = depend.text if depend is not None else spec.dependency
    if condition:
        words.append(f"Dependency Condition <{condition}>")
    return words


def short_path(path: str, home: str) -> str:
    """A path under the home directory begins with ``$HOME``, as LSF shows it."""
    if home and home != "/" and (path == home or path.startswith(home.rstrip("/") + "/")):
        return "$HOME" + path[len(home.rstrip("/")) :]
    return path


def lent(run_limit: int) -> str:
    """A start in what is held for another job."""
    return f"Run limit of {run_limit / 60:.1f} minutes: its slots are held for another job from then on;"


def limits(spec: Spec, own: Limits | None = None, more: Sequence[tuple[str, int | None, str]] = ()) -> str:
    """The tables of a job's limits, "" if there are none; they begin with an empty line.

    ``own``: those of its attempt; ``more``: titles, seconds and what they are given for of other times.
    """
    run_host = spec.run_host or spec.from_host
    times = (("ESTIMATED_RUNTIME", spec.estimate or None, run_host), *more)
    return limit_tables(own or spec.limits, spec.cpu_host or spec.from_host, run_host, times)


def limits_of_profile(profile: JobProfile, host: str) -> Iterator[str]:
    """Those of a queue or profile: the maxima alone, or under titles where there are defaults too.

    ``host``: the host or model that its times are given for, if any.
    """
    defaults = limit_tables(profile.defaults, host, host)
    if defaults:
        yield f"\nDEFAULT LIMITS:{defaults}\nMAXIMUM LIMITS:"
    yield limit_tables(profile.limits, host, host)
    counts = (profile.tasklimit.minimum, profile.tasklimit.default, profile.tasklimit.maximum)
    if counts != (1, 1, None):
        shown = [str(count) for count in counts if count is not None]
        yield f"\n TASKLIMIT\n {' '.join(shown if counts[0] > 1 or counts[1] > 1 else shown[-1:])}\n"


def limit_tables(own: Limits, cpu_host: str, run_host: str, more: Sequence[tuple[str, int | None, str]] = ()) -> str:
    """Times (of a host or model, if named) and sizes, each in a table of its own."""
    tables = ""
    timed = [
        (title, f" {seconds / 60:.1f} min{f' of {host}' if host else ''}")
        for title, seconds, host in (
            ("CPULIMIT", own.cpu, cpu_host),
            ("RUNLIMIT", own.run, run_host),
            *more,
        )
        if seconds is not None
    ]
    if timed:
        tables += "\n" + "".join(f"{' ' + title:<25}" for title, _ in timed)
        tables += "\n" + "".join(f"{value:<25}" for _, value in timed) + "\n"
    sizes = [
        (f" {title}", formats.limit_text(value))
        for title, value in (
            ("FILELIMIT", own.file),
            ("DATALIMIT", own.data),
            ("STACKLIMIT", own.stack),
            ("CORELIMIT", own.core),
            ("MEMLIMIT", own.mem),
            ("SWAPLIMIT", own.swap),
        )
        if value is not None
    ]
    if own.processes is not None:
        sizes.append((" PROCESSLIMIT", str(own.processes)))
    if own.threads is not None:
        sizes.append((" THREADLIMIT", str(own.threads)))
    if sizes:
        tables += "\n" + "".join(title for title, _ in sizes)
        tables += "\n" + "".join(f"{value:>{len(title)}}" for title, value in sizes) + "\n"
    return tables


_COMPUTES = 0.05
"""CPUs: a job that never used as many has nothing to tell of them."""


def efficiency(job: Job, spec: Spec, usage: jobfacts.Usage, now: float, lead: str) -> str:
    """What of its memory a job uses, and of its CPUs, if it computes at all; each line begins with ``lead``."""
    share = jobfacts.Efficiency(job, spec, usage, now)
    peak, mean = formats.bytes_text(usage.max_mem), formats.bytes_text(usage.avg_mem or usage.max_mem)
    memory = f"{lead}MEMORY USAGE:\n{lead}MAX MEM: {peak};  AVG MEM: {mean}; MEM Efficiency: {share.memory:.2f}%\n"
    if usage.cpu_peak < _COMPUTES:
        return memory
    return memory + (
        f"\n{lead}CPU USAGE:\n{lead}CPU PEAK: {usage.cpu_peak:.2f} ;  CPU PEAK DURATION: {usage.cpu_peak_after:.0f} second(s)\n"
        f"{lead}CPU AVERAGE EFFICIENCY: {share.cpu:.2f}% ;  CPU PEAK EFFICIENCY: {share.peak:.2f}%\n"
    )


def places(view: View, job: Job) -> str:
    """``on <ol1>``, ``on 2 Hosts/Processors <ol1> <ol2>``, or tasks and slots."""
    hosts = jobfacts.host_slots(job, view.short_hosts)
    named = " ".join(f"<{host}>" for host in hosts)
    count = sum(map(slots_in, jobfacts.parts_of(job)))
    if view.hpc:
        return f"{count} Task(s) on Host(s) {named}, Allocated {count} Slot(s) on Host(s) {named}"
    return f"on {named}" if count == 1 else f"on {count} Hosts/Processors {named}"


def started(view: View, job: Job, text: JobText) -> str:
    """``Started on <ol1>, Execution Home <..>, Execution CWD <..>;``, or that it waits in a chunk."""
    index = index_of(job.key)
    if job.state is JobState.WAIT:
        sent = f"[{index}] dispatched {places(view, job)}" if index else f"Dispatched {places(view, job)}"
        return f"{sent}, {WAITS_IN_CHUNK}"
    line = f"[{index}] started {places(view, job)}" if index else f"Started {places(view, job)}"
    if jobfacts.has_run(job):
        cwd = jobfacts.execution_folder(job, text)
        line += f", Execution Home <{text.home}>" if text.home else ""
        line += f", Execution CWD <{cwd}>" if cwd else ""
    return line + ";"


def ended(job: Job, end: str, factor: float = 1.0) -> list[str]:
    """How it ended, one line each; ``end`` closes a line (``.`` or ``;``); CPU time is multiplied by ``factor``."""
    outcome = job.outcome
    if outcome is None:
        return []
    if job.run is None:
        lines = [("Done successfully" if job.state is JobState.DONE else "Exited") + (end if end == ";" else "")]
    else:
        seconds = factor * jobfacts.cpu_time(job)
        used = f"The CPU time used is {seconds:.1f} seconds{end}"
        if job.state is JobState.DONE:
            lines = [f"Done successfully. {used}"]
        elif outcome.status & 0x7F:
            lines = [f"Exited by signal {outcome.status & 0x7F}. {used}"]
        else:
            lines = [f"Exited with exit code {outcome.status >> 8 & 0xFF}. {used}"]
    if outcome.reason is not TermReason.NONE:
        lines.append(f"Completed <exit>; {jobfacts.term_text(outcome.reason)}{end}")
    if outcome.why:
        lines.append(f"{outcome.why.rstrip('.;')}{end}")
    return lines
