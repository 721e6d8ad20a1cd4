"""bjobs counting instead of listing: -A the elements of arrays, -sum job slots by state, -psum what jobs wait for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from lavad.core.job.job import Array, Job
from lavad.core.lang.ids import job_of
from lavad.core.lang.states import JobState
from lavad.queries.facts import jobfacts, reasons
from lavad.queries.facts.jobset import UNFINISHED, Wanted, elements
from lavad.queries.frame import formats
from lavad.queries.frame.request import Options, Request, Shown, err, leave, out
from lavad.queries.jobs import bjobs_filters
from lavad.queries.jobs.bjobs_rows import Form

_ARRAY_HEADER = "JOBID    ARRAY_SPEC  OWNER   NJOBS PEND DONE  RUN EXIT SSUSP USUSP PSUSP"
_ORDER = ("PEND", "DONE", "RUN", "EXIT", "SSUSP", "USUSP", "PSUSP")
_COUNTED = {JobState.UNKWN: "RUN", JobState.ZOMBI: "RUN", JobState.WAIT: "PEND"}


def show_arrays(request: Request, options: Options, wanted: Wanted) -> Iterator[Shown]:
    """-A: the arrays of the caller, or the ones that are named."""
    arrays = list(_arrays(request, wanted))
    if options.any("Jd", "hostfile"):
        fitting = {job.key for job in bjobs_filters.by_text(request, options, map(_as_job, arrays))}
        arrays = [array for array in arrays if array.job in fitting]
    missing = [str(job) for job in wanted.ids or () if job not in {array.job for array in arrays}]
    if arrays and "noheader" not in options:
        yield out(_ARRAY_HEADER + "\n")
    for array in arrays:
        yield out(_row(request, array, "w" in options))
    for word in missing:
        yield err(f"Job <{word}> is not found")
    if missing and not arrays:
        yield leave(255)
    elif not arrays:
        yield err("No job array found")


def _arrays(request: Request, wanted: Wanted) -> Iterator[Array]:
    view = request.view
    rows = view.cluster.arrays.rows
    if wanted.ids is not None:
        found = [rows.get(job) or view.reader.finished_array(job) for job in wanted.ids]
        arrays = [array for array in found if array is not None]
    else:
        arrays = list(rows.values()) + list(_ended(request, wanted))
    for array in sorted(arrays, key=lambda array: -array.job):
        spec = view.spec(array)
        mine = wanted.users is None or spec.user in wanted.users
        if mine and (wanted.spec_test is None or wanted.spec_test(array.spec)) and _fits(request, wanted, array):
            yield array


def _as_job(array: Array) -> Job:
    """What an array is as a whole, whatever becomes of its elements."""
    return Job(key=array.job, spec=array.spec, name=array.name, submitted=array.submitted, state=JobState.DONE)


def _fits(request: Request, wanted: Wanted, array: Array) -> bool:
    """Whether the array, or an element of it that has not ended, passes the test of jobs."""
    if wanted.job_test is None:
        return True
    cluster = request.cluster
    touched = (cluster.jobs.rows[key] for key in cluster.elements.get(array.job, ()))
    return any(map(wanted.job_test, chain((_as_job(array),), touched, elements(array, UNFINISHED, None))))


def _ended(request: Request, wanted: Wanted) -> Iterator[Array]:
    """Arrays that finished lately, as far as an element of theirs has a record."""
    view = request.view
    users = wanted.users
    one = next(iter(users)) if users is not None and len(users) == 1 else None
    since = request.now - view.params.clean_period
    keys = view.finished_keys(since, one)
    jobs = {job_of(key) for key in keys if key >> 32} - set(view.cluster.arrays.rows)
    for job in sorted(jobs):
        array = view.reader.finished_array(job)
        if array is not None:
            yield array


def counts(request: Request, array: Array) -> Counter[str]:
    """Elements by state; lost ones count as running, those that wait in chunks as pending."""
    found: Counter[str] = Counter(DONE=array.done, EXIT=array.exited, PEND=len(array.pending), PSUSP=len(array.held))
    cluster = request.cluster
    for key in cluster.elements.get(array.job, ()):
        state = cluster.jobs.rows[key].state
        found[_COUNTED.get(state, state.name)] += 1
    return found


def _row(request: Request, array: Array, wide: bool) -> str:
    found = counts(request, array)
    numbers = [found[name] for name in _ORDER]
    owner = request.view.spec(array).user
    widths = (4, 4, 4, 4, 5, 5, 5)
    cells = " ".join(f"{number:>{width}}" for number, width in zip(numbers, widths, strict=True))
    name = array.spec_text or array.name
    lead = f"{array.job:<7}  {name:<8} {owner:>8}" if wide else f"{array.job:<7}  {name:<8.8} {owner:>8.8}"
    return f"{lead}   {len(array.indices):>5} {cells}\n"


_COLUMNS = (
    ("RUN", "RUN", 11),
    ("SSUSP", "SSUSP", 12),
    ("USUSP", "USUSP", 11),
    ("UNKNOWN", "UNKWN", 11),
    ("PEND", "PEND", 11),
    ("FWD_PEND", "", 10),
    ("PSUSP", "PSUSP", 9),
)
_HOSTS = "Individual host based reasons"


def show_sum(request: Request, form: Form, jobs: Iterator[Job]) -> Iterator[Shown]:
    """-sum: job slots by state."""
    counts: Counter[str] = Counter()
    for job in jobs:
        counts["PEND" if job.state is JobState.WAIT else job.state.name] += jobfacts.slots_of(job, request.view.spec(job))
    if form.header:
        yield out("".join(f"{title:<{width}}" for title, _, width in _COLUMNS) + "\n")
    yield out("".join(f"{counts[state]:<{width}}" for _, state, width in _COLUMNS) + "\n")


def show_reasons(request: Request, form: Form, jobs: Iterator[Job]) -> Iterator[Shown]:
    """-psum: how many jobs wait for what, and of what is about hosts how often it was found, the most frequent first."""
    counts: Counter[str] = Counter()
    on_hosts: Counter[str] = Counter()
    total = 0
    for job in jobs:
        total += 1
        found = reasons.of(request.view, job)
        counts.update({reasons.text_of(request.view, code) if not hosts else _HOSTS for code, hosts, _ in found})
        for code, hosts, _ in found:
            if hosts:
                on_hosts[reasons.text_of(request.view, code)] += hosts
    width = max((len(words) for words in (*counts, *on_hosts)), default=0) + 3
    yield out(f"Pending reason summary: published {formats.time_with_year(request.now)}\n")
    yield out(f"Summarizing {total} pending jobs in cluster ({request.view.name}):\n")
    yield out("".join(_counted(counts, width, "jobs")))
    if on_hosts:
        yield out(f"\n{_HOSTS}\n{''.join(_counted(on_hosts, width, 'occurrences'))}")


def _counted(counts: Counter[str], width: int, what: str) -> Iterator[str]:
    for words, count in sorted(counts.items(), key=lambda row: (-row[1], row[0])):
        yield f"    {words + ':':<{width}}{count} {what}\n"
