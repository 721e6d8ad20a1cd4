"""lava why JOB: where a waiting job stands, what keeps it, the smallest change that would start it, and when it may start; of one
that has ended, why (``why_ended``).

Rule: reasons are the scheduler's own, taken from its plans; changes and times were tried on the scheduler itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lavad.core.decide.modify.permitted import Permitted
from lavad.core.job.job import Array, Job
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import index_of, key_of
from lavad.core.lang.ids import show as show_key
from lavad.core.lang.job_names import ArrayError, parse_job_id
from lavad.core.lang.states import JobState
from lavad.queries.explain import table
from lavad.queries.facts import jobset, reasons, tasks, visibility
from lavad.queries.facts.service_goals import ServiceGoals
from lavad.queries.frame import formats
from lavad.queries.frame.request import Request, Shown, each_job, out
from lavad.queries.jobs import bjdepinfo, why_ended
from lavad.sched.ask.estimate import Estimate, estimate, get_queue_position
from lavad.sched.ask.trial import Moment, starts
from lavad.sched.ask.what_if import find_changes

MOST = 6
_STATES = {
    JobState.PSUSP: "it is held (bresume releases it)",
    JobState.RUN: "it runs",
    JobState.WAIT: "it waits at its host behind others of its chunk (CHUNK_JOB_SIZE), which run one after the other in one slot",
    JobState.ZOMBI: "it was killed, and its host does not answer: it ends once the host does, or is known to be off",
}

_UNKNOWN = {
    True: "its host does not answer: it may run on there until its lease has passed, and starts again on another then (bhosts)",
    False: "its host does not answer: it may run on there, and starts on no other host (bhosts); bkill -r ends it",
}
"""Whether it has a lease."""


def show(request: Request) -> Iterator[Shown]:
    return each_job(request, "lava why", _told)


def _told(request: Request, word: str) -> Iterator[Shown]:
    ended = why_ended.find(request, word)
    if ended:
        yield out(why_ended.explanation(request, ended))
        return
    key = _read(request, word)
    if not visibility.sees(request, _spec(request, key), detail=True):
        raise Refused(f"Job <{word}> is not found or has finished")
    yield from _why(request, key)


def _spec(request: Request, key: int) -> Spec:
    return request.view.spec(request.cluster.get(key))


def _read(request: Request, word: str) -> int:
    """The key of a live job; an array stands for one of its elements."""
    try:
        job, indices = parse_job_id(word)
    except ArrayError as error:
        raise Refused(str(error)) from error
    index = next(iter(indices), 0) if indices else 0
    cluster = request.cluster
    key = key_of(job, index)
    array = cluster.arrays.rows.get(job)
    if cluster.find_job(key) is None and array is None:
        raise Refused(f"Job <{word}> is not found or has finished")
    if array is not None and not index:
        key = _of_array(request, array)
    if not request.view.is_live(key):
        raise Refused(f"Job <{word}> is not found or has finished")
    return key


def _of_array(request: Request, array: Array) -> int:
    """The first element that waits, else the first that has not ended."""
    cluster, job = request.cluster, array.job
    touched = list(cluster.elements.get(job, ()))
    waiting = [key for key in touched if cluster.jobs.rows[key].state is JobState.PEND]
    waiting += [key_of(job, index) for index in islice(array.pending, 1)]
    return min(waiting or [*touched, *(key_of(job, index) for index in islice(array.held, 1))])


def _why(request: Request, key: int) -> Iterator[Shown]:
    row = request.cluster.get(key)
    job = row if isinstance(row, Job) else _element(row, key)
    spec = request.view.spec(job)
    head = f"Job <{show_key(key)}>, User <{spec.user}>, Queue <{spec.queue}>"
    if job.state is not JobState.PEND:
        yield out(f"{head}: {_state(job)}\n")
        yield from _not_waiting(request, job)
        return
    yield out(
        f"{head}: {spec.slots} {'slot' if spec.slots == 1 else 'slots'}, waiting since {formats.full_time(job.submitted)}\n"
    )
    if job.blocked:
        yield out("Position: not in line, as it waits for other jobs\n")
    else:
        yield from _place(request, key)
    yield out("\nWhy it waits\n")
    for line in reasons.pending(request.view, job, 3, True):
        yield out(line)
    yield from _condition(request, job)
    yield out(_advice(request, job))
    yield out(why_ended.earlier(request, job))
    if job.blocked:
        return
    if starts(moment_of(request), key):
        yield out("\nIt starts with the next cycle: nothing keeps it now\n")
        return
    yield from _changes(request, key)
    yield from _times(estimate(moment_of(request), key))


def _advice(request: Request, job: Job) -> str:
    """What to do about each of the reasons, most important first; what would start it now is said below by ``_changes``."""
    entries = dict.fromkeys(table.of_reason(code) for code, _, _ in reasons.of(request.view, job))
    found = [table.advice(entry, show_key(job.key)) for entry in entries if entry is not None]
    lines = [f"  {line}\n" for line in dict.fromkeys(found) if line and not line.startswith("lava why")]
    return "\nWhat to do\n" + "".join(lines) if lines else ""


def _condition(request: Request, job: Job) -> Iterator[Shown]:
    """The condition of a job that waits for others, and how far these are."""
    depend = job.depend
    if not job.blocked or depend is None:
        return
    relations = bjdepinfo.Relations(request)
    yield out(f"   Its condition: {depend.text}\n")
    for other in list(dict.fromkeys(key for keys in depend.ids for key in keys))[:MOST]:
        state, name = relations.facts(other)
        yield out(f"   Job <{show_key(other)}> ({name}): {state}\n")


def _state(job: Job) -> str:
    if job.state is JobState.UNKWN:
        return _UNKNOWN[job.run is not None and job.run.lease > 0]
    return _STATES.get(job.state, f"it is {job.state.name}")


def _not_waiting(request: Request, job: Job) -> Iterator[Shown]:
    """Why a job that has started does not run, or seems to hang."""
    for line in reasons.suspended(request.view, job):
        yield out(line)
    for suspect in job.run.suspects if job.run is not None and job.state is JobState.RUN else ():
        yield out(f" {tasks.suspicion(suspect, request.now)}\n")
    yield out(why_ended.earlier(request, job))


def moment_of(request: Request) -> Moment:
    """What the scheduler is tried on: this version of the cluster, now."""
    return Moment(request.cluster, request.view.soft, request.now, formats.week_second(request.now))


def _element(array: Array, key: int) -> Job:
    state = JobState.PEND if index_of(key) in array.pending else JobState.PSUSP
    return jobset.untouched(array, index_of(key), state)


def _place(request: Request, key: int) -> Iterator[Shown]:
    place = get_queue_position(moment_of(request), key)
    yield out(f"Position: {place.ahead + 1} of {place.waiting} in its queue")
    if place.before:
        names = " ".join(show_key(other) for other in place.first)
        more = " ..." if place.before > len(place.first) else ""
        yield out(f"; {place.before} go before it in all queues{': ' + names + more if names else ''}")
    yield out("\n")
    for name, jobs in ServiceGoals(request.view, request.now).before(request.cluster.spec_of(key)):
        yield out(f"  {jobs} of service class {name} go before it, as its goals need so many more at once (bsla {name})\n")


def _changes(request: Request, key: int) -> Iterator[Shown]:
    changes = find_changes(moment_of(request), key, Permitted.of(request.cluster, key))
    if not changes:
        yield out("\nNo single change of the job, and no two at once, would start it now\n")
        return
    yield out("\nIt would start now with (smallest change first)\n")
    for change in changes[:MOST]:
        yield out(f"  {change.text}\n")


def _times(found: Estimate) -> Iterator[Shown]:
    if found.soonest is None and found.latest is None:
        yield out("\nEstimated start: not known (no run limit says when what it needs becomes free)\n")
        return
    soonest = "not known" if found.soonest is None else formats.full_time(found.soonest)
    latest = "not known" if found.latest is None else formats.full_time(found.latest)
    yield out(f"\nEstimated start: from {soonest} to {latest}\n")
    yield out("  (by run limits; the first if no other job takes what becomes free, the second if all before it go first)\n")
