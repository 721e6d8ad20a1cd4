"""A page of jobs: filtered, in an order, by cursor; of a million jobs only those of the page become rows.

Rule: by number, the usual order, live jobs and those of the store are merged and nothing is sorted but numbers. The other orders
are of live jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import merge, nlargest, nsmallest
from itertools import islice

from lavad.core.job.job import Array, Job
from lavad.core.job.run_time import start_of
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import index_of, job_of, key_of, show
from lavad.core.lang.states import FINAL, STARTED, WAITING, JobState
from lavad.queries.facts import jobfacts, visibility
from lavad.queries.facts.jobset import elements
from lavad.queries.frame.request import Options, Request
from lavad.queries.records import asked, rows
from lavad.store.asked import Find
from proto.numbers import find_number
from proto.records import JobPage, JobRow

Entry = Job | Array
STATES = {
    "live": WAITING | STARTED,
    "waiting": WAITING | {JobState.WAIT},
    "running": STARTED - {JobState.WAIT},
    "finished": FINAL,
}
_SORTS: dict[str, Callable[[Entry, Spec], float | str]] = {
    "user": lambda entry, spec: spec.user,
    "queue": lambda entry, spec: spec.queue,
    "project": lambda entry, spec: spec.project,
    "name": lambda entry, spec: entry.name,
    "slots": lambda entry, spec: jobfacts.slots_of(entry, spec) if isinstance(entry, Job) else spec.slots,
    "submitted": lambda entry, spec: entry.submitted,
    "started": lambda entry, spec: start_of(entry) if isinstance(entry, Job) else 0.0,
    "state": lambda entry, spec: entry.state.name if isinstance(entry, Job) else "PEND",
}
STORED = 200
"""Finished jobs that are read at a time."""


def read(request: Request) -> JobPage:
    """Options: state user queue project host app group search array sort limit cursor."""
    options = request.options()
    wanted = _Wanted(request, options)
    sort = options.text("sort") or "-id"
    name, down = sort.lstrip("-"), sort.startswith("-")
    if name != "id" and name not in _SORTS:
        raise Refused(f"sort: one of id, {', '.join(_SORTS)} is expected, with - before it for the other way")
    limit = asked.limit(options)
    if name == "id":
        return _by_number(request, wanted, down, limit, asked.place(options, sort))
    start = asked.place(options, sort) or 0
    found = [entry for entry in wanted.live() if wanted.fits(entry)]
    key = _SORTS[name]

    def place(entry: Entry) -> tuple[float | str, int]:
        return key(entry, request.view.spec(entry)), number_of(entry)

    some = (nlargest if down else nsmallest)(start + limit + 1, found, key=place)
    page = some[start : start + limit]
    more = len(some) > start + limit
    return JobPage(jobs=[_row(request, entry) for entry in page], next=asked.cursor(sort, start + limit) if more else None)


def number_of(entry: Entry) -> int:
    """What rows are ordered by: the number of the job, then the index."""
    return entry.job << 32 if isinstance(entry, Array) else job_of(entry.key) << 32 | index_of(entry.key)


def _row(request: Request, entry: Entry) -> JobRow:
    view = request.view
    return rows.array_row(view, entry) if isinstance(entry, Array) else rows.row(view, entry)


def _by_number(request: Request, wanted: _Wanted, down: bool, limit: int, after: int | None) -> JobPage:
    streams = []
    if wanted.states & (WAITING | STARTED):
        live = sorted(wanted.live(), key=number_of, reverse=down)
        if after is not None:
            live = [entry for entry in live if (number_of(entry) < after if down else number_of(entry) > after)]
        streams.append(filter(wanted.fits, live))
    if wanted.states & FINAL:
        streams.append(filter(wanted.fits, _stored(request, wanted, down, after)))
    page = list(islice(merge(*streams, key=number_of, reverse=down), limit + 1))
    shown = page[:limit]
    sort = "-id" if down else "id"
    following = asked.cursor(sort, number_of(shown[-1])) if len(page) > limit else None
    return JobPage(jobs=[_row(request, entry) for entry in shown], next=following)


def _stored(request: Request, wanted: _Wanted, down: bool, after: int | None) -> Iterator[Entry]:
    """Finished jobs and arrays from the store, a few hundred at a time."""
    view = request.view
    while True:
        some = view.reader.finished_page(wanted.find, after, down, STORED)
        view.load_specs(some)
        yield from (entry for entry in some if not _is_live(request, entry))
        if len(some) < STORED:
            return
        after = number_of(some[-1])


def _is_live(request: Request, entry: Entry) -> bool:
    """In this version of the cluster, which the store may be ahead of."""
    if isinstance(entry, Array):
        return entry.job in request.cluster.arrays.rows
    return request.view.is_live(entry.key)


class _Wanted:
    """The filters of a page."""

    def __init__(self, request: Request, options: Options) -> None:
        self._request = request
        self.states = _states(options.text("state"))
        self.user, self.queue, self.project = (options.text(name) for name in ("user", "queue", "project"))
        self.host, self.app, self.group = (options.text(name) for name in ("host", "app", "group"))
        self.search = options.text("search").lower()
        self.array = _number(options.text("array"))
        self.find = Find(
            user=self.user or None,
            queue=self.queue or None,
            project=self.project or None,
            keys=(self.array,) if self.array else None,
        )
        self._sees = visibility.tested(request, False, None)
        self._specs: dict[int, bool] = {}

    def live(self) -> list[Entry]:
        """The live jobs, and arrays as one, that may fit; of ``array`` its elements."""
        cluster = self._request.cluster
        jobs, arrays = cluster.jobs.rows, cluster.arrays.rows
        if self.array:
            found = arrays.get(self.array)
            touched: list[Entry] = [jobs[key] for key in cluster.elements.get(self.array, ())]
            return touched if found is None else [*touched, *elements(found, self.states, None)]
        if self.host:
            use = cluster.use.hosts.get(self.host)
            return [jobs[key] for key in (use.jobs if use is not None else ()) if key in jobs]
        if self.states <= STARTED:
            return [jobs[key] for key in cluster.started]
        if self.user:
            keys = cluster.by_user.get(self.user, ())
            return [jobs[key] if key in jobs else arrays[key] for key in keys if not index_of(key)]
        # an element is below its array
        return [*(job for job in jobs.values() if not index_of(job.key)), *arrays.values()]

    def fits(self, entry: Entry) -> bool:
        """Whether an entry is wanted, and the caller may see it."""
        fits = self._specs.get(entry.spec)
        if fits is None:
            fits = self._specs[entry.spec] = self._spec_fits(entry)
        if not fits:
            return False
        if isinstance(entry, Array):
            if not self._array_fits(entry):
                return False
        elif entry.state not in self.states or (self.host and self.host not in [part.host for part in jobfacts.parts_of(entry)]):
            return False
        return not self.search or self._matches(entry)

    def _array_fits(self, entry: Array) -> bool:
        """Whether an element is in one of the states."""
        if entry.job not in self._request.cluster.arrays.rows:
            return bool((JobState.DONE in self.states and entry.done) or (JobState.EXIT in self.states and entry.exited))
        waits = (JobState.PEND in self.states and entry.pending) or (JobState.PSUSP in self.states and entry.held)
        return bool(waits) or bool(self.states & STARTED and entry.job in self._request.cluster.elements)

    def _spec_fits(self, entry: Entry) -> bool:
        spec = self._request.view.spec(entry)
        wanted = (
            (self.user, spec.user),
            (self.queue, spec.queue),
            (self.project, spec.project),
            (self.app, spec.app),
            (self.group, spec.group),
        )
        return all(not asks or asks == has for asks, has in wanted) and (self._sees is None or self._sees(entry.spec))

    def _matches(self, entry: Entry) -> bool:
        """Names, ids, owners, queues, projects and hosts."""
        spec = self._request.view.spec(entry)
        text = self.search
        ident = str(entry.job) if isinstance(entry, Array) else show(entry.key)
        if ident.startswith(text) or text in entry.name.lower():
            return True
        if text in (spec.user.lower(), spec.queue.lower(), spec.project.lower()):
            return True
        return isinstance(entry, Job) and any(part.host.lower() == text for part in jobfacts.parts_of(entry))


def _number(text: str) -> int:
    if not text:
        return 0
    if (number := find_number(text, 1)) is None:
        raise Refused("array: the number of an array is expected")
    return key_of(number)


def _states(text: str) -> frozenset[JobState]:
    found: set[JobState] = set()
    for word in text.replace(",", " ").split() or ["live", "finished"]:
        if word.lower() in STATES:
            found |= STATES[word.lower()]
        elif word.upper() in JobState.__members__:
            found.add(JobState[word.upper()])
        else:
            raise Refused(f"state: {word[:20]}: no state of a job, nor one of {', '.join(STATES)}")
    return frozenset(found)
