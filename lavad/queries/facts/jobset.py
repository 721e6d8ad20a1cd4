"""Which jobs a listing is about, and in which order: started, then waiting in dispatch order, then finished.

Rule: an untouched element of an array comes out as a ``Job`` of its own, made on the way and kept nowhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from heapq import merge
from itertools import chain
from operator import attrgetter
from typing import TypeGuard

import msgspec

from lavad.core.cluster.job_rows import Columns, JobRows, merged
from lavad.core.events.records import stands
from lavad.core.job.job import Array, Job
from lavad.core.lang.ids import index_of, job_of, key_of
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.core.lang.states import FINAL, STARTED, SUSPENDED, WAITING, JobState
from lavad.queries.frame.view import View
from lavad.store.asked import Find

Test = Callable[[Job], bool]
UNFINISHED = WAITING | STARTED
STOPPED = SUSPENDED | {JobState.PSUSP}
"""What listings call suspended: jobs that wait count too."""
_BY_KEY = attrgetter("key")
_FIRST_ELEMENT = key_of(0, 1)
MANY = 1000
"""Jobs of the users asked for from which on it is worth looking at those of all, in columns."""


class Wanted(msgspec.Struct):
    """What to list: states, owners (None: anybody's), job ids with indices (None: all), and tests."""

    states: frozenset[JobState]
    users: frozenset[str] | None = None
    ids: dict[int, Ranges | None] | None = None
    spec_test: Callable[[int], bool] | None = None
    """Whether jobs of a spec (by number) are wanted."""
    job_test: Test | None = None


def untouched(array: Array, index: int, state: JobState) -> Job:
    """An element that has no record of its own."""
    return Job(
        key=index << 32 | array.job,
        spec=array.spec,
        name=f"{array.name}[{index}]",
        submitted=array.submitted,
        state=state,
        since=array.submitted,
        position=array.position,
        queue_time=array.queue_time,
        depend=array.depend,
        blocked=stands(array, index),
        messages=array.messages,
        stopper=array.stopper if state is JobState.PSUSP else "",
    )


class Untouched(msgspec.Struct, frozen=True):
    """Elements of an array that have no record of their own, by index."""

    array: Array
    indices: Ranges
    state: JobState

    def __iter__(self) -> Iterator[Job]:
        return (untouched(self.array, index, self.state) for index in self.indices)


def elements(array: Array, states: frozenset[JobState], only: Ranges | None) -> Iterable[Job]:
    """The untouched elements of an array in these states, by index."""
    pending = array.pending if JobState.PEND in states else EMPTY
    held = array.held if JobState.PSUSP in states else EMPTY
    if only is not None:
        pending, held = pending.intersect(only), held.intersect(only)
    streams = [Untouched(array, some, state) for some, state in ((pending, JobState.PEND), (held, JobState.PSUSP)) if some]
    return streams[0] if len(streams) == 1 else merge(*streams, key=_BY_KEY)


class JobSet:
    """The jobs that ``wanted`` names, in LSF's order."""

    def __init__(self, view: View, wanted: Wanted, now: float | None) -> None:
        """``now``: of those that have ended only what ended lately (CLEAN_PERIOD) is there; None: all of them."""
        self._view = view
        self._wanted = wanted
        params = view.params
        self._since = 0.0 if now is None else now - params.clean_period
        done = params.clean_period_done
        self._done_since = self._since if now is None or done is None else max(self._since, now - done)
        self._fits: dict[int, bool] = {}
        self._ended: dict[int, list[Job]] = {}

    def __iter__(self) -> Iterator[Job]:
        return chain.from_iterable(self.pieces())

    def pieces(self) -> Iterator[Iterable[Job]]:
        """Some at a time: ``Submitted`` where they stand in columns, ``Untouched`` of an array."""
        started, waiting = self._live()
        yield started
        for entries in waiting:
            yield from self._expanded(entries) if isinstance(entries, list) else entries
        if self._wanted.states & FINAL:
            yield self._finished()

    def exists(self, job: int, indices: Ranges | None) -> bool:
        """Whether there is such a job, or such an element, live or recently finished, whatever the tests say."""
        cluster = self._view.cluster
        if job in cluster.jobs.rows:
            return indices is None
        array = cluster.arrays.rows.get(job)
        if array is not None:
            return indices is None or bool(array.indices.intersect(indices))
        return any(indices is None or index_of(row.key) in indices for row in self.finished_of(job))

    def _spec_fits(self, spec: int) -> bool:
        test = self._wanted.spec_test
        if test is None:
            return True
        fits = self._fits.get(spec)
        if fits is None:
            fits = self._fits[spec] = test(spec)
        return fits

    def _candidates(self) -> tuple[Sequence[Job], Sequence[Array], Sequence[Columns]]:
        """Jobs and arrays; the columns are of all users."""
        cluster, wanted = self._view.cluster, self._wanted
        jobs, arrays = cluster.jobs.rows, cluster.arrays.rows
        if self._takes_columns(jobs):
            return jobs.apart(), [*arrays.values()], jobs.in_columns()
        if wanted.ids is not None:
            keys: Iterable[int] = [key for job in wanted.ids for key in (job, *cluster.elements.get(job, ()))]
        elif wanted.users is not None:
            keys = [key for user in wanted.users for key in cluster.by_user.get(user, ())]
        elif wanted.states.isdisjoint(WAITING):
            keys = list(cluster.started)
        else:
            return [*jobs.values()], [*arrays.values()], ()
        return [jobs[key] for key in keys if key in jobs], [arrays[key] for key in keys if key in arrays], ()

    def _takes_columns(self, jobs: MutableMapping[int, Job]) -> TypeGuard[JobRows]:
        """Whether all that is asked of a job that has only been submitted is what those of its spec have in common."""
        wanted, by_user = self._wanted, self._view.cluster.by_user
        if not isinstance(jobs, JobRows) or wanted.ids is not None or wanted.job_test is not None:
            return False
        many = len(jobs) if wanted.users is None else sum(len(by_user[user]) for user in wanted.users if user in by_user)
        return JobState.PEND in wanted.states and many > MANY

    def _live(self) -> tuple[list[Job], list[list[Job | Array] | Iterator[Iterable[Job]]]]:
        """Started jobs in order, and the waiting ones queue by queue."""
        view, wanted = self._view, self._wanted
        started: defaultdict[str, list[Job]] = defaultdict(list)
        waiting: defaultdict[str, list[Job | Array]] = defaultdict(list)
        specs = view.cluster.specs.rows
        jobs, arrays, columns = self._candidates()
        if wanted.spec_test is not None or wanted.users is not None:  # of all users where they may be in columns
            jobs = [job for job in jobs if self._spec_fits(job.spec) and self._owned(job)]
            arrays = [array for array in arrays if self._spec_fits(array.spec) and self._owned(array)]
        if not wanted.states >= UNFINISHED:
            jobs = [job for job in jobs if job.state in wanted.states]
        if wanted.ids is not None or wanted.job_test is not None:
            jobs = [job for job in jobs if self._is_wanted(job)]
        places: dict[int, list[Job | Array]] = {}
        for array in arrays:
            waiting[specs[array.spec].queue].append(array)
        for job in jobs:
            if job.run is not None:
                started[specs[job.spec].queue].append(job)
                continue
            place = places.get(job.spec)
            if place is None:
                place = places[job.spec] = waiting[specs[job.spec].queue]
            place.append(job)
        plain = self._by_queue(columns)
        order = sorted({*started, *waiting, *plain}, key=lambda queue: (-view.queue(queue).priority, queue))
        running: list[Job] = []
        for queue in order:
            running += sorted(started.get(queue, ()), key=_by_dispatch)
        return running, [
            _with_columns(waiting[queue], columns, plain[queue]) if queue in plain else _in_order(waiting[queue])
            for queue in order
            if queue in waiting or queue in plain
        ]

    def _by_queue(self, columns: Sequence[Columns]) -> dict[str, set[int]]:
        """Queue to the specs of jobs in columns that are wanted."""
        specs, users = self._view.cluster.specs.rows, self._wanted.users
        found: defaultdict[str, set[int]] = defaultdict(set)
        for number in {number for one in columns for number in set(one.specs)} - {0}:
            if self._spec_fits(number) and (users is None or specs[number].user in users):
                found[specs[number].queue].add(number)
        return found

    def _owned(self, entry: Job | Array) -> bool:
        users = self._wanted.users
        return users is None or self._view.spec(entry).user in users

    def _is_wanted(self, job: Job) -> bool:
        ids = self._wanted.ids
        if ids is not None:
            only = ids.get(job_of(job.key))
            if only is not None and index_of(job.key) not in only:
                return False
        return self._wanted.job_test is None or self._wanted.job_test(job)

    def _expanded(self, entries: list[Job | Array]) -> Iterator[Iterable[Job]]:
        """Arrays as their elements, merged by index with those that have a record."""
        wanted = self._wanted
        at = 0
        while at < len(entries):
            entry = entries[at]
            if isinstance(entry, Job):
                jobs = _jobs_at(entries, at)
                yield jobs
                at += len(jobs)
                continue
            only = None if wanted.ids is None else wanted.ids.get(entry.job)
            stream = elements(entry, wanted.states, only)
            if wanted.job_test is not None:
                stream = filter(wanted.job_test, stream)
            touched = _jobs_at(entries, at + 1, entry.job)
            yield merge(stream, touched, key=_BY_KEY) if touched else stream
            at += 1 + len(touched)

    def _finished(self) -> Iterator[Job]:
        wanted = self._wanted
        if wanted.ids is not None:
            live = self._view.cluster.jobs.rows  # of a plain job that is live nothing is read
            found = [job for job_id in wanted.ids if job_id not in live for job in self.finished_of(job_id)]
        else:
            users = wanted.users
            one = next(iter(users)) if users is not None and len(users) == 1 else None
            found = self._view.finished_jobs(Find(user=one, since=self._since, done_since=self._done_since))
        self._view.load_specs(found)
        users = wanted.users
        chosen = [
            job
            for job in found
            if job.state in wanted.states
            and (users is None or self._view.spec(job).user in users)
            and self._spec_fits(job.spec)
            and self._is_wanted(job)
        ]
        chosen.sort(key=_by_end)
        yield from chosen

    def finished_of(self, job: int) -> list[Job]:
        """The recently finished jobs or elements of an id."""
        if job not in self._ended:
            rows = self._view.finished_jobs(Find(keys=(job,)))
            self._ended[job] = [row for row in rows if self._is_recent(row)]
        return self._ended[job]

    def _is_recent(self, job: Job) -> bool:
        return _end(job) >= (self._done_since if job.state is JobState.DONE else self._since)


def _end(job: Job) -> float:
    return job.outcome.at if job.outcome is not None else job.since


def _by_end(job: Job) -> tuple[float, int, int]:
    return _end(job), job_of(job.key), index_of(job.key)


def _by_dispatch(job: Job) -> tuple[float, int, int]:
    return (job.run.dispatched if job.run is not None else job.since), job_of(job.key), index_of(job.key)


def _jobs_at(entries: list[Job | Array], at: int, array: int = 0) -> list[Job]:
    """The jobs from this place on, up to an array; only elements of ``array``, if given."""
    found: list[Job] = []
    while at < len(entries) and isinstance(entry := entries[at], Job) and (not array or job_of(entry.key) == array):
        found.append(entry)
        at += 1
    return found


def _in_order(entries: list[Job | Array]) -> list[Job | Array]:
    """In dispatch order: moved ones by their position, the rest by id; an array before its elements."""
    jobs = _by_id(entries)
    return sorted(entries, key=_place) if jobs is None else [*jobs]


def _by_id(entries: list[Job | Array]) -> list[Job] | None:
    """In dispatch order, where that is by id; None: it is not."""
    jobs = []
    for entry in entries:
        if entry.position or entry.queue_time or isinstance(entry, Array) or entry.key >= _FIRST_ELEMENT:
            return None
        jobs.append(entry)
    return sorted(jobs, key=_BY_KEY)


def _with_columns(
    entries: list[Job | Array], columns: Sequence[Columns], specs: set[int]
) -> list[Job | Array] | Iterator[Iterable[Job]]:
    """In dispatch order, with the jobs of columns that have one of the specs."""
    jobs = _by_id(entries)
    if jobs is None:
        return _in_order([*entries, *(job for one in columns for job in one.jobs(specs))])
    # made while they are read: a list of many begins at once, and is never whole in memory
    return merged(columns, jobs, specs)


def _place(entry: Job | Array) -> tuple[float, float, int, int]:
    queue_time = entry.queue_time or entry.submitted
    if isinstance(entry, Array):
        return entry.position, queue_time, entry.job, 0
    return entry.position, queue_time, job_of(entry.key), index_of(entry.key)
