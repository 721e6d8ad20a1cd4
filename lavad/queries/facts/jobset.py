"""Which jobs a listing is about, and in which order: started, then waiting in dispatch order, then finished.

Rule: an untouched element of an array comes out as a ``Job`` of its own, made on the way and kept nowhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from operator import attrgetter

import msgspec

from lavad.core.events.records import stands
from lavad.core.job.job import Array, Job
from lavad.core.lang.ids import index_of, job_of, key_of
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.core.lang.states import FINAL, STARTED, SUSPENDED, WAITING, JobState
from lavad.queries.frame.view import View
from lavad.store.read import Find

Test = Callable[[Job], bool]
UNFINISHED = WAITING | STARTED
STOPPED = SUSPENDED | {JobState.PSUSP}
"""What listings call suspended: jobs that wait count too."""
_BY_KEY = attrgetter("key")


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
    )


def elements(array: Array, states: frozenset[JobState], only: Ranges | None) -> Iterator[Job]:
    """The untouched elements of an array in these states, by index."""
    pending = array.pending if JobState.PEND in states else EMPTY
    held = array.held if JobState.PSUSP in states else EMPTY
    if only is not None:
        pending, held = pending.intersect(only), held.intersect(only)
    streams = [_made(array, ranges, state) for ranges, state in ((pending, JobState.PEND), (held, JobState.PSUSP)) if ranges]
    return streams[0] if len(streams) == 1 else merge(*streams, key=_BY_KEY)


def _made(array: Array, indices: Ranges, state: JobState) -> Iterator[Job]:
    return (untouched(array, index, state) for index in indices)


class JobSet:
    """The jobs that ``wanted`` names, in LSF's order."""

    def __init__(self, view: View, wanted: Wanted, since: float) -> None:
        self._view = view
        self._wanted = wanted
        self._since = since
        self._fits: dict[int, bool] = {}
        self._ended: dict[int, list[Job]] = {}

    def __iter__(self) -> Iterator[Job]:
        started, waiting = self._live()
        yield from started
        for entries in waiting:
            yield from self._expanded(entries)
        if self._wanted.states & FINAL:
            yield from self._finished()

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

    def _candidates(self) -> tuple[Sequence[Job], Sequence[Array]]:
        cluster, wanted = self._view.cluster, self._wanted
        jobs, arrays = cluster.jobs.rows, cluster.arrays.rows
        if wanted.ids is not None:
            keys: Iterable[int] = [key for job in wanted.ids for key in (job, *cluster.elements.get(job, ()))]
        elif wanted.users is not None:
            keys = [key for user in wanted.users for key in cluster.by_user.get(user, ())]
        elif wanted.states.isdisjoint(WAITING):
            keys = list(cluster.started)
        else:
            return [*jobs.values()], [*arrays.values()]
        return [jobs[key] for key in keys if key in jobs], [arrays[key] for key in keys if key in arrays]

    def _live(self) -> tuple[list[Job], list[list[Job | Array]]]:
        """Started jobs in order, and the waiting ones queue by queue."""
        view, wanted = self._view, self._wanted
        started: defaultdict[str, list[Job]] = defaultdict(list)
        waiting: defaultdict[str, list[Job | Array]] = defaultdict(list)
        specs = view.cluster.specs.rows
        jobs, arrays = self._candidates()
        if wanted.spec_test is not None or (wanted.users is not None and wanted.ids is not None):
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
        order = sorted({*started, *waiting}, key=lambda queue: (-view.queue(queue).priority, queue))
        running: list[Job] = []
        for queue in order:
            running += sorted(started.get(queue, ()), key=_by_dispatch)
        return running, [_in_order(waiting[queue]) for queue in order if queue in waiting]

    def _owned(self, entry: Job | Array) -> bool:
        users = self._wanted.users
        return users is None or self._wanted.ids is None or self._view.spec(entry).user in users

    def _is_wanted(self, job: Job) -> bool:
        ids = self._wanted.ids
        if ids is not None:
            only = ids.get(job_of(job.key))
            if only is not None and index_of(job.key) not in only:
                return False
        return self._wanted.job_test is None or self._wanted.job_test(job)

    def _expanded(self, entries: list[Job | Array]) -> Iterable[Job]:
        """Arrays as their elements, merged by index with those that have a record."""
        jobs = [entry for entry in entries if isinstance(entry, Job)]
        return jobs if len(jobs) == len(entries) else self._merged(entries)

    def _merged(self, entries: list[Job | Array]) -> Iterator[Job]:
        wanted = self._wanted
        at = 0
        while at < len(entries):
            entry = entries[at]
            at += 1
            if isinstance(entry, Job):
                yield entry
                continue
            only = None if wanted.ids is None else wanted.ids.get(entry.job)
            stream = elements(entry, wanted.states, only)
            if wanted.job_test is not None:
                stream = filter(wanted.job_test, stream)
            touched: list[Job] = []
            while at < len(entries) and isinstance(other := entries[at], Job) and job_of(other.key) == entry.job:
                touched.append(other)
                at += 1
            yield from merge(stream, touched, key=_BY_KEY) if touched else stream

    def _finished(self) -> Iterator[Job]:
        wanted = self._wanted
        if wanted.ids is not None:
            live = self._view.cluster.jobs.rows  # of a plain job that is live nothing is read
            found = [job for job_id in wanted.ids if job_id not in live for job in self.finished_of(job_id)]
        else:
            users = wanted.users
            one = next(iter(users)) if users is not None and len(users) == 1 else None
            found = self._view.finished_jobs(Find(user=one, since=self._since))
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
            self._ended[job] = [row for row in rows if _end(row) >= self._since]
        return self._ended[job]


def _end(job: Job) -> float:
    return job.outcome.at if job.outcome is not None else job.since


def _by_end(job: Job) -> tuple[float, int, int]:
    return _end(job), job_of(job.key), index_of(job.key)


def _by_dispatch(job: Job) -> tuple[float, int, int]:
    return (job.run.dispatched if job.run is not None else job.since), job_of(job.key), index_of(job.key)


def _in_order(entries: list[Job | Array]) -> list[Job | Array]:
    """In dispatch order: moved ones by their position, the rest by id; an array before its elements."""
    first_element = key_of(0, 1)
    for entry in entries:
        if entry.position or entry.queue_time or isinstance(entry, Array) or entry.key >= first_element:
            return sorted(entries, key=_place)
    return sorted(entries, key=_BY_KEY)


def _place(entry: Job | Array) -> tuple[float, float, int, int]:
    queue_time = entry.queue_time or entry.submitted
    if isinstance(entry, Array):
        return entry.position, queue_time, entry.job, 0
    return entry.position, queue_time, job_of(entry.key), index_of(entry.key)
