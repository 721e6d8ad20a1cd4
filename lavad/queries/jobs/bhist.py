"""bhist: what jobs went through. The default is a line a job, -b and -l tell everything, -t goes by time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, islice

from lavad.core.job.job import Job
from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import index_of, job_of
from lavad.core.lang.ids import show as show_key
from lavad.core.lang.states import FINAL, WAITING, JobState
from lavad.core.lang.when import WhenError, parse_interval
from lavad.local_time import local_time
from lavad.queries.facts import lsf_log
from lavad.queries.facts.history import COLUMNS, History, Times
from lavad.queries.facts.jobset import UNFINISHED, JobSet, Wanted
from lavad.queries.frame.options import Options
from lavad.queries.frame.request import Request, Shown, leave, out
from lavad.queries.jobs import bhist_long, bhist_time, bjobs, bjobs_filters

_STATES = {
    "d": FINAL,
    "e": frozenset({JobState.EXIT}),
    "p": WAITING,
    "s": bjobs.SUSPENDED,
    "r": frozenset({JobState.RUN, JobState.UNKWN, JobState.ZOMBI}),
}
Window = tuple[float, float]
TOGETHER = 200
"""Jobs whose histories are read in one go."""


def show(request: Request) -> Iterator[Shown]:
    """The pieces of a history."""
    options = request.options()
    request, log = lsf_log.opened(request, options)
    period = window(request, options.text("T") or ".-7/,.")
    if "n" in options and not re.fullmatch(r"\d+(,\d*)?", options.text("n")):
        raise Refused(f"{options.text('n')}: Bad number of event log files")
    if "t" in options:
        yield from bhist_time.show(request, period)
        return
    wanted = _wanted(request, options)
    found: Iterator[Job] = iter(JobSet(request.view, wanted, 0.0) if log is None else log.chosen(wanted))
    if options.any("Jd", "hostfile"):
        found = bjobs_filters.by_text(request, options, found)
    jobs = sorted(found, key=lambda job: (job_of(job.key), index_of(job.key)))
    windows = {letter: window(request, options.text(letter)) for letter in "CSDT" if letter in options}
    rows = _rows(request, jobs, windows)
    first = next(rows, None)
    if first is None:
        yield out("No matching job found\n")
        yield leave(255)
    elif options.any("l", "b", "UF"):
        factor = bjobs.cpu_factor(request, options)
        yield from bhist_long.show(request, _chain(first, rows), options, factor)
    else:
        yield from _table(request, _chain(first, rows), "w" in options)


Row = tuple[Job, History, Times]


def _chain(first: Row, rest: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rest


def _wanted(request: Request, options: Options) -> Wanted:
    wanted = bjobs.read_wanted(request, options)
    asked = [states for letter, states in _STATES.items() if letter in options]
    if "a" in options or (wanted.ids is not None and not asked):
        wanted.states = UNFINISHED | FINAL
    else:
        wanted.states = frozenset().union(*asked) if asked else UNFINISHED
        if "C" in options or "T" in options:
            wanted.states |= FINAL
    return wanted


def window(request: Request, text: str) -> Window:
    """``t0,t1`` of -T, -C, -S, -D as seconds; raises Refused."""
    local = local_time(request.now)
    try:
        begin, end = parse_interval(text, local)
    except WhenError:
        raise Refused(f"{text[:80]}: Bad time specification") from None
    return (begin.timestamp() if begin is not None else 0.0), (end.timestamp() + 1 if end is not None else request.now)


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
        when = points[letter] if letter in points else [event.at for event in history.of(job.key)]
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
        yield out(f"{lead}{''.join(f'{times.seconds[column]:<8}' for column in COLUMNS)}{times.total:<10}\n")
    yield out("\n")
