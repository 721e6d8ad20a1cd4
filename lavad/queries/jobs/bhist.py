"""bhist: what jobs went through. The default is a line a job; -b and -l have every event in LSF's sentences, -t goes by time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, islice

from lavad.core import events as ev
from lavad.core.job.job import Job
from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import index_of, job_of
from lavad.core.lang.ids import show as show_key
from lavad.core.lang.states import FINAL, JobState
from lavad.queries.facts import gpu_usage, jobfacts, lsf_log, paragraphs, resources
from lavad.queries.facts.history import COLUMNS, History, Times, gone_since, time_of
from lavad.queries.facts.jobset import UNFINISHED, JobSet, Wanted
from lavad.queries.facts.sentences import HistoryFormatter
from lavad.queries.frame import formats
from lavad.queries.frame.formats import RULE, wrap
from lavad.queries.frame.request import Options, Request, Shown, leave, out, read_period
from lavad.queries.frame.view import View
from lavad.queries.jobs import bhist_by_time, bjobs_filters, bjobs_long

_STATES = {**bjobs_filters.STATES, "e": frozenset({JobState.EXIT})}
Window = tuple[float, float]
TOGETHER = 200
"""Jobs whose histories are read in one go."""


def show(request: Request) -> Iterator[Shown]:
    options = request.options()
    request, log = lsf_log.opened(request, options)
    period = read_period(request, options.text("T") or ".-7,.")
    if "n" in options and not re.fullmatch(r"\d+(,\d*)?", options.text("n")):
        raise Refused(f"{options.text('n')}: Bad number of event log files")
    if "t" in options:
        yield from _show_by_time(request, period)
        return
    wanted = _wanted(request, options)
    found: Iterator[Job] = iter(JobSet(request.view, wanted, None) if log is None else log.chosen(wanted))
    if options.any("Jd", "hostfile"):
        found = bjobs_filters.by_text(request, options, found)
    jobs = sorted(found, key=lambda job: (job_of(job.key), index_of(job.key)))
    windows = {letter: read_period(request, options.text(letter)) for letter in "CSDT" if letter in options}
    rows = _rows(request, jobs, windows)
    first = next(rows, None)
    if first is None:
        yield out("No matching job found\n")
        yield from gone_since(request, wanted.ids)
        yield leave(255)
    elif options.any("l", "b", "UF"):
        factor = jobfacts.asked_cpu_factor(request, options)
        yield from _show_long(request, _chain(first, rows), options, factor)
    else:
        yield from _table(request, _chain(first, rows), "w" in options)


Row = tuple[Job, History, Times]


def _chain(first: Row, rest: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rest


def _wanted(request: Request, options: Options) -> Wanted:
    wanted = bjobs_filters.read_wanted(request, options)
    asked = [states for letter, states in _STATES.items() if letter in options]
    if "a" in options or (wanted.ids is not None and not asked):
        wanted.states = UNFINISHED | FINAL
    else:
        wanted.states = frozenset().union(*asked) if asked else UNFINISHED
        if "C" in options or "T" in options:
            wanted.states |= FINAL
    return wanted


def _rows(request: Request, jobs: list[Job], windows: dict[str, Window]) -> Iterator[Row]:
    groups = ((job_id, list(group)) for job_id, group in groupby(jobs, key=lambda job: job_of(job.key)))
    while some := list(islice(groups, TOGETHER)):
        events = request.view.reader.events_of_many([job_id for job_id, _ in some])
        for job_id, group in some:
            history = History(events.get(job_id, ()))
            for job in group:
                times = Times(history.of(job.key), request.now)
                if _inside(job, history, times, windows):
                    yield job, history, times


def _inside(job: Job, history: History, times: Times, windows: dict[str, Window]) -> bool:
    """-S, -D, -C: when it was submitted, dispatched, completed; -T: whether anything happened to it then."""
    ended = job.outcome.at if job.outcome is not None else 0.0
    points = {"S": (job.submitted,), "D": (times.dispatched,), "C": (ended,)}
    for letter, (begin, end) in windows.items():
        when = points[letter] if letter in points else [time_of(event) for event in history.of(job.key)]
        if not any(at and begin <= at <= end for at in when):
            return False
    return True


def _table(request: Request, rows: Iterator[Row], wide: bool) -> Iterator[Shown]:
    yield out("Summary of time in seconds spent in various states:\n")
    yield out("JOBID   USER    JOB_NAME  PEND    PSUSP   RUN     USUSP   SSUSP   UNKWN   TOTAL\n")
    for job, _, times in rows:
        user = request.view.spec(job).user
        name = job.name if wide or len(job.name) <= 8 else "*" + job.name[-7:]
        key = show_key(job.key)
        lead = f"{key:<7} {user:<7} {name:<9} " if wide else f"{key:<7.7} {user:<7.7} {name:<9.9} "
        cells = [f"{times.seconds[column]:<8}" for column in COLUMNS]
        yield out(f"{lead}{formats.joined(*cells, f'{times.total:<10}')}\n")
    yield out("\n")


def _show_long(request: Request, rows: Iterator[tuple[Job, History, Times]], options: Options, factor: float) -> Iterator[Shown]:
    """-l and -b: a record a job; CPU times are multiplied by ``factor``."""
    brief = "b" in options
    first = True
    while batch := list(islice(rows, TOGETHER)):
        texts = request.view.texts([job for job, _, _ in batch])
        for job, history, spent in batch:
            formatter = HistoryFormatter(request.view, job, texts[job.key], brief, factor)
            yield out(("" if first else RULE) + _record(request, formatter, history, spent, options))
            first = False
    yield out("\n")


def _record(request: Request, formatter: HistoryFormatter, history: History, spent: Times, options: Options) -> str:
    view, job, plain = request.view, formatter.job, "UF" in options
    spec = view.spec(job)
    parts = ["\n", wrap(bjobs_long.head(job, spec, formatter.text, "", view.service_classes.of(spec)), plain)]
    for event in history.of(job.key):
        parts += [_told(request.view, event, sentence, plain) for sentence in formatter.sentences(event)]
        if isinstance(event, ev.JobSubmitted) and not formatter.brief:
            spec = view.spec(Job(key=job.key, spec=event.spec, name="", submitted=0.0))
            parts.append(paragraphs.limits(spec))
    parts += _more(request, job, options)
    parts += [_peaks(request, job), _state_times(request.view, spent)]
    return "".join(parts)


def _told(view: View, event: ev.Event, sentence: str, plain: bool = False) -> str:
    """A sentence with its time; the lines below its first, of a table, stay as they are."""
    first, newline, rest = sentence.partition("\n")
    return wrap(f"{view.full_time(time_of(event))}: {first}", plain) + (rest + "\n" if newline else "")


def _more(request: Request, job: Job, options: Options) -> Iterator[str]:
    """-gpu, -aff and -hostfile."""
    spec = request.view.spec(job)
    if "gpu" in options:
        yield resources.gpu_requirement(spec) + resources.gpu_allocation(request.view, job)
        yield gpu_usage.table(job, jobfacts.Usage(job, request.view))
    if "aff" in options:
        table = resources.job_affinity(request.view, spec, job)
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
            sizes = [formats.unit_text(size, "S") if size else "-" for size in (end.max_mem, end.max_swap)]
            text += (
                f" {host:<16} {end.utime + end.stime:>9.1f}s {sizes[0]:>10} {sizes[1]:>10} {end.max_processes:>9} "
                f"{end.max_threads:>8}\n"
            )
    return text


def _state_times(view: View, spent: Times) -> str:
    """The table of seconds in each state."""
    numbers = formats.joined(*(f"{spent.seconds[column]:<9}" for column in COLUMNS), f"{spent.total:<12}")
    return (
        f"\nSummary of time in seconds spent in various states by  {view.full_time(spent.end)}\n"
        "  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL\n"
        f"  {numbers}\n"
    )


def _show_by_time(request: Request, window: Window) -> Iterator[Shown]:
    """-t."""
    found = False
    for event, sentence in bhist_by_time.told(request, window):
        found = True
        yield out(_told(request.view, event, sentence))
    if not found:
        yield out("No matching event found\n")
        yield leave(255)
