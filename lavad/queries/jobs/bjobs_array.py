"""bjobs -A: one line for each array, with its elements counted by state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lavad.core.job.job import Array, Job
from lavad.core.lang.ids import job_of
from lavad.core.lang.states import JobState
from lavad.queries.facts.jobset import Wanted
from lavad.queries.frame.options import Options
from lavad.queries.frame.request import Request, Shown, err, leave, out

HEADER = "JOBID    ARRAY_SPEC  OWNER   NJOBS PEND DONE  RUN EXIT SSUSP USUSP PSUSP"
_ORDER = ("PEND", "DONE", "RUN", "EXIT", "SSUSP", "USUSP", "PSUSP")


def show(request: Request, options: Options, wanted: Wanted) -> Iterator[Shown]:
    """The arrays of the caller, or the ones that are named."""
    arrays = list(_arrays(request, options, wanted))
    missing = [str(job) for job in wanted.ids or () if job not in {array.job for array in arrays}]
    if arrays and "noheader" not in options:
        yield out(HEADER + "\n")
    for array in arrays:
        yield out(_row(request, array))
    for word in missing:
        yield err(f"Job <{word}> is not found")
    if missing and not arrays:
        yield leave(255)
    elif not arrays:
        yield err("No job array found")


def _arrays(request: Request, options: Options, wanted: Wanted) -> Iterator[Array]:
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
        if mine and (wanted.spec_test is None or wanted.spec_test(array.spec)) and _named(wanted, array):
            yield array


def _named(wanted: Wanted, array: Array) -> bool:
    return wanted.job_test is None or wanted.job_test(Job(key=array.job, spec=0, name=array.name, submitted=0.0))


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
    """Elements by state; lost ones count as running."""
    found: Counter[str] = Counter(DONE=array.done, EXIT=array.exited, PEND=len(array.pending), PSUSP=len(array.held))
    cluster = request.cluster
    for key in cluster.elements.get(array.job, ()):
        state = cluster.jobs.rows[key].state
        found["RUN" if state in (JobState.UNKWN, JobState.ZOMBI) else state.name] += 1
    return found


def _row(request: Request, array: Array) -> str:
    found = counts(request, array)
    numbers = [found[name] for name in _ORDER]
    owner = request.view.spec(array).user
    widths = (4, 4, 4, 4, 5, 5, 5)
    cells = " ".join(f"{number:>{width}}" for number, width in zip(numbers, widths, strict=True))
    return f"{array.job:<7}  {array.spec_text or array.name:<8.8} {owner:>8.8}   {len(array.indices):>5} {cells}\n"
