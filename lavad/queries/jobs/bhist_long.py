"""bhist -l and -b: every event of a job in LSF's sentences, its peaks, and the time in each state."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lavad.core import events as ev
from lavad.core.job.job import Job
from lavad.queries.facts import affinity, jobfacts, paragraphs
from lavad.queries.facts import gpus as gpus_shown
from lavad.queries.facts.history import COLUMNS, History, Times
from lavad.queries.facts.sentences import HistoryFormatter
from lavad.queries.frame import times, units
from lavad.queries.frame.options import Options
from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.frame.wrap import RULE, wrap
from lavad.queries.jobs import bjobs_long

_BATCH = 200


def show(request: Request, rows: Iterator[tuple[Job, History, Times]], options: Options, factor: float) -> Iterator[Shown]:
    """A record a job; CPU times are multiplied by ``factor``."""
    brief = "b" in options
    first = True
    while batch := list(islice(rows, _BATCH)):
        texts = request.view.texts([job for job, _, _ in batch])
        for job, history, spent in batch:
            formatter = HistoryFormatter(request.view, job, texts[job.key], brief, factor)
            yield out(("" if first else RULE) + _record(request, formatter, history, spent, options))
            first = False
    yield out("\n")


def _record(request: Request, formatter: HistoryFormatter, history: History, spent: Times, options: Options) -> str:
    view, job, plain = request.view, formatter.job, "UF" in options
    parts = ["\n", wrap(bjobs_long.head(job, view.spec(job), formatter.text, ""), plain)]
    for event in history.of(job.key):
        for sentence in formatter.sentences(event):
            first, newline, rest = sentence.partition("\n")
            parts.append(wrap(f"{times.full(event.at)}: {first}", plain) + (rest + "\n" if newline else ""))
        if isinstance(event, ev.JobSubmitted) and not formatter.brief:
            spec = view.spec(Job(key=job.key, spec=event.spec, name="", submitted=0.0))
            parts.append(paragraphs.limits(spec))
    parts += _more(request, job, options)
    parts += [_peaks(request, job), summary(spent)]
    return "".join(parts)


def _more(request: Request, job: Job, options: Options) -> Iterator[str]:
    """-gpu, -aff and -hostfile."""
    spec = request.view.spec(job)
    if "gpu" in options:
        yield gpus_shown.requirement(spec) + gpus_shown.allocation(request.view, job)
    if "aff" in options:
        table = affinity.of_job(request.view, spec, job)
        yield f"\n{table}" if table else ""
    if "hostfile" in options:
        yield paragraphs.host_file(spec)


def _peaks(request: Request, job: Job) -> str:
    usage = jobfacts.Usage(job, request.view)
    if not usage.max_mem:
        return ""
    text = "\n" + paragraphs.efficiency(job, request.view.spec(job), usage, request.now, "")
    ends = [(part.host, part.end) for part in jobfacts.parts_of(job) if part.end is not None]
    if len(ends) > 1:
        text += "\n HOST USAGE:\n HOST               CPU_TIME    MAX_MEM   MAX_SWAP PROCESSES  THREADS\n"
        for host, end in ends:
            sizes = [units.unit_text(size, "S") if size else "-" for size in (end.max_mem, end.max_swap)]
            text += (
                f" {host:<16} {end.utime + end.stime:>9.1f}s {sizes[0]:>10} {sizes[1]:>10} {end.max_processes:>9} "
                f"{end.max_threads:>8}\n"
            )
    return text


def summary(spent: Times) -> str:
    """The table of seconds in each state."""
    numbers = "".join(f"{spent.seconds[column]:<9}" for column in COLUMNS)
    return (
        f"\nSummary of time in seconds spent in various states by  {times.full(spent.end)}\n"
        "  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL\n"
        f"  {numbers}{spent.total:<12}\n"
    )
