"""The one-line formats of bjobs: default, -w, -W, -WL, -WP, -WF, the reasons behind -p and -s, and -aps.

Rule: the middle of a row (owner, state, queue, submission host) is made once for each spec and state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

import msgspec

from lavad.core.cluster.job_rows import Submitted
from lavad.core.job.job import Job
from lavad.core.job.run_time import counted, start_of
from lavad.core.lang.states import WAITING, JobState
from lavad.queries.facts import jobfacts, reasons, shares
from lavad.queries.facts.jobset import Untouched
from lavad.queries.frame import formats
from lavad.queries.frame.columns import Custom
from lavad.queries.frame.request import Options, Request, Shown, out
from lavad.queries.frame.terminal import shown
from lavad.queries.frame.view import View

HEADER = "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME"
_WIDE = "  PROJ_NAME CPU_USED MEM SWAP PIDS START_TIME FINISH_TIME"
_MORE = {"WL": "   TIME_LEFT", "WP": "   %COMPLETE", "WF": "   FINISH_TIME"}
_JOB = 0xFFFFFFFF
_NAME = 10
"""Characters of a job name in a column."""
_AT_ONCE = 50
"""Rows in a piece: each piece goes through several generators, which takes as long as the text of a row."""


class Form(msgspec.Struct):
    """How the jobs are shown: what the options say about the format."""

    options: Options
    header: bool = True
    hms: bool = False
    json: bool = False
    level: int | None = None
    factor: float = 1.0
    custom: Custom | None = None
    show: Callable[[Request, Form, Iterator[Job]], Iterator[Shown]] | None = None
    """None: in lines, by ``show``."""


def tail(name: str, width: int = _NAME) -> str:
    """A job name in a column: one that is too long keeps its end, with ``*`` before it."""
    return name if len(name) <= width else "*" + name[1 - width :]


def show(request: Request, form: Form, pieces: Iterator[Iterable[Job]]) -> Iterator[Shown]:
    options, jobs = form.options, chain.from_iterable(pieces)
    if "W" in options:
        rows, header = _usage_rows(request, jobs), HEADER + _WIDE
    elif more := next((name for name in _MORE if name in options), None):
        rows, header = _time_rows(request, jobs, more), HEADER + _MORE[more]
    elif "w" in options:
        rows, header = _wide_rows(request, form, jobs), HEADER
    else:
        rows, header = _rows(request, form, pieces), HEADER
    if form.header:
        yield "out", header + "\n"
    yield from rows


class _Middles(dict[tuple[int, JobState], str]):
    """Owner, state, queue and submission host of a row by spec and state; ``wide``: nothing is cut off."""

    def __init__(self, view: View, wide: bool = False) -> None:
        super().__init__()
        self._view = view
        self._wide = wide

    def __missing__(self, key: tuple[int, JobState]) -> str:
        number, state = key
        spec = self._view.spec(Job(key=0, spec=number, name="", submitted=0.0))
        if self._wide:
            made = f"{spec.user:<7} {state.name:<5} {spec.queue:<10} {spec.from_host:<11}"
        else:
            made = f"{spec.user:<7.7} {state.name:<5.5} {spec.queue:<10.10} {spec.from_host:<11.11}"
        self[key] = made
        return made


def _after(request: Request, form: Form) -> Callable[[Job], list[str]] | None:
    """What follows a row: pend reasons with -p, suspend reasons with -s."""
    level = form.level
    suspended = "s" in form.options
    if level is None and not suspended:
        return None

    def lines(job: Job) -> list[str]:
        if level is not None and job.state in WAITING:
            return reasons.pending(request.view, job, level, False)
        if suspended and job.state is JobState.PSUSP:
            return reasons.pending(request.view, job, 0, False)
        return reasons.suspended(request.view, job) if suspended else []

    return lines


def _rows(request: Request, form: Form, pieces: Iterator[Iterable[Job]]) -> Iterator[Shown]:
    view, after, count = request.view, _after(request, form), 1  # the first goes out at once
    middles = _Middles(view)
    for piece in pieces:
        if after is None and isinstance(piece, Submitted) and len(str(piece.keys[0])) == len(str(piece.keys[-1])):
            yield "as_is", _submitted(middles, piece)
            continue
        if after is None and isinstance(piece, Untouched):
            for text in _untouched(middles, piece):
                yield "as_is", text
            continue
        rows = _texts(view, form.header, after, iter(piece))
        while some := "".join(islice(rows, count)):
            yield "out", some
            count = _AT_ONCE


def _submitted(middles: _Middles, jobs: Submitted) -> str:
    """The rows of jobs whose ids are of one length, as they may be shown; most are as the others but for the id."""
    keys, specs, times = jobs.keys, jobs.specs, jobs.times
    blanks = " " * max(8 - len(str(keys[0])), 1)
    leads = {spec: f"{blanks}{middles[spec, JobState.PEND]}             " for spec in set(specs)}
    names = {name: _name(name) for name in set(jobs.names)}
    first, last = min(times), max(times)
    if first // 60 == last // 60:
        when = _when(first)
        if len(leads) == len(names) == 1:
            same = shown(f"{leads[specs[0]]}{names[jobs.names[0]]}{when}")
            return same.join(map(str, keys)) + same
        rows = [f"{key}{leads[spec]}{names[name]}{when}" for key, spec, name in zip(keys, specs, jobs.names, strict=True)]
    else:
        every = zip(keys, specs, jobs.names, times, strict=True)
        rows = [f"{key}{leads[spec]}{names[name]}{_when(at)}" for key, spec, name, at in every]
    return shown("".join(rows))


def _untouched(middles: _Middles, elements: Untouched) -> Iterator[str]:
    """The same of elements of an array, in pieces: of each, only the name is its own."""
    array, indices = elements.array, iter(elements.indices)
    lead = shown(f"{array.job!s:<7} {middles[array.spec, elements.state]}             ")
    base, when = shown(array.name), _when(array.submitted)
    while some := "".join([f"{lead}{_name(f'{base}[{index}]')}{when}" for index in islice(indices, _AT_ONCE)]):
        yield some


def _name(name: str) -> str:
    return f"{name:<10}" if len(name) <= _NAME else tail(name)


def _when(submitted: float) -> str:
    return f" {formats.short_time(submitted)}  \n"


def _texts(view: View, header: bool, after: Callable[[Job], list[str]] | None, jobs: Iterator[Job]) -> Iterator[str]:
    middles, short_hosts = _Middles(view), view.short_hosts
    spec, state, last, minute = -1, JobState.WAIT, "", -1.0
    middle, name, when = "", _name(last), ""
    for job in jobs:
        # most rows are as the one before but for the number, and with !s that takes half as long to format
        if job.spec != spec or job.state is not state:
            spec, state = job.spec, job.state
            middle = middles[spec, state]
        if job.submitted // 60 != minute:
            minute, when = job.submitted // 60, _when(job.submitted)
        if job.name is not last:
            last = job.name
            name = _name(last)
        if job.run is None:
            text = f"{job.key & _JOB!s:<7} {middle}             {name}{when}"
        else:
            hosts = jobfacts.host_slots(job, short_hosts)
            text = f"{job.key & _JOB!s:<7} {middle} {hosts[0] if hosts else '':<11.11} {name}{when}"
            if header and len(hosts) > 1:
                text += "".join([f"{'':45}{host}\n" for host in hosts[1:]])
        yield text if after is None else text + "".join(after(job))


def _wide_lead(view: View, middles: _Middles, job: Job) -> str:
    """The columns up to the name, with all hosts in one."""
    hosts = jobfacts.exec_hosts(job, view) if job.run is not None else "   -    "
    return f"{job.key & _JOB:<7} {middles[job.spec, job.state]} {hosts:<11} {job.name:<10}"


def _wide_rows(request: Request, form: Form, jobs: Iterator[Job]) -> Iterator[Shown]:
    view, middles, after = request.view, _Middles(request.view, wide=True), _after(request, form)
    for job in jobs:
        text = f"{_wide_lead(view, middles, job)} {formats.short_time(job.submitted)}\n"
        if after is not None:
            text += "".join(after(job))
        yield "out", text


def _usage_rows(request: Request, jobs: Iterator[Job]) -> Iterator[Shown]:
    view, middles = request.view, _Middles(request.view, wide=True)
    for job in jobs:
        usage = jobfacts.Usage(job, view)
        row = (
            f"{_wide_lead(view, middles, job)} {formats.wide_time(job.submitted)} "
            f"{view.spec(job).project:<10} {cpu_text(usage.cpu):<10} "
        )
        mem, swap = (f"{usage.mem:<6}", f"{usage.swap:<6}") if usage.known else (f"{'-':<6}", f"{'-':<6}")
        pids = ",".join(map(str, usage.pids)) or "-"
        start, finish = formats.wide_time(start_of(job)), formats.wide_time(jobfacts.end_of(job))
        yield out(f"{row}{mem} {swap} {pids} {start} {finish}\n")


def cpu_text(seconds: float) -> str:
    """``000:00:00.01``."""
    whole, hundredths = divmod(round(seconds * 100), 100)
    return f"{whole // 3600:03d}:{whole // 60 % 60:02d}:{whole % 60:02d}.{hundredths:02d}"


def _time_rows(request: Request, jobs: Iterator[Job], what: str) -> Iterator[Shown]:
    middles = _Middles(request.view)
    for job in jobs:
        hosts = jobfacts.host_slots(job, request.view.short_hosts)
        value = _time_value(request, job, what)
        yield out(
            f"{job.key & _JOB:<7} {middles[job.spec, job.state]} "
            f"{hosts[0] if hosts else '':<11.11} {tail(job.name):<10} {formats.short_time(job.submitted):<14}{value}\n"
        )


def _time_value(request: Request, job: Job, what: str) -> str:
    spec = request.view.spec(job)
    if what == "WL":
        left = jobfacts.time_left(job, spec, request.view, request.now)
        return "   -" if left is None else f"   {left_text(left[0])} {left[1]}"
    if what == "WP":
        share = jobfacts.complete(job, spec, request.view, request.now)
        return "   -" if share is None else f"   {share[0]:.2f}% {share[1]}"
    return f"   {finish_text(request, job)}"


def left_text(seconds: float) -> str:
    """``1:59``, hours and minutes."""
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60}"


def finish_text(request: Request, job: Job) -> str:
    """When it finished, or will at the latest (`` L``, `` E``, `` X``); ``-`` if nothing says so."""
    end = jobfacts.end_of(job)
    if end:
        return formats.short_time(end)
    found = jobfacts.expected(job, request.view.spec(job), request.view, request.now)
    if found is None or job.run is None:
        return "-"
    return f"{formats.short_time(request.now - counted(job, request.now) + found[0])} {found[1]}"


_APS_HEADER = "JOBID   USER    STAT  QUEUE      FROM_HOST   JOB_NAME   SUBMIT_TIME    APS"


def show_priorities(request: Request, form: Form, jobs: Iterator[Job]) -> Iterator[Shown]:
    """-aps and -prio: waiting jobs in the order of their absolute priority, those of other queues after them."""
    priorities, middles = shares.AbsolutePriorities(request.view, request.now), _Middles(request.view)
    rows: list[tuple[tuple[bool, float, float, int], Job, str]] = []
    for job in jobs:
        if job.state in WAITING:
            value = priorities.find(job)
            place = (value is None, -(value or 0.0), job.submitted, job.key)
            rows.append((place, job, shares.priority_text(value) or "-"))
    if form.header:
        yield out(_APS_HEADER + "\n")
    for _, job, priority in sorted(rows, key=lambda row: row[0]):
        lead = f"{job.key & _JOB:<7} {middles[job.spec, job.state]}"
        yield out(f"{lead} {tail(job.name):<10} {formats.short_time(job.submitted):<14} {priority}\n")
