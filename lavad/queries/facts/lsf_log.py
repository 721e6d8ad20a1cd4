"""A file in LSF's form (lsb.events, lsb.acct) in place of the store: bhist -f and bacct -f show what it says.

Rule: it is read once, whole, and asked as the store is asked, so that the commands are the same for both.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from config.model.cluster import HostConfig
from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Array, Attempt, Job, Outcome, Part
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import index_of, job_of, key_of
from lavad.core.lang.job_names import ArrayError, ArraySpec, Wildcard, parse_job_name
from lavad.core.lang.ranges import EMPTY
from lavad.core.lang.states import FINAL, JobState
from lavad.lsb.read import KINDS, Fields, Runs, job_finish, job_new
from lavad.queries.facts.history import moves
from lavad.queries.facts.jobset import Wanted
from lavad.queries.frame.request import Options, Request
from lavad.queries.frame.view import View
from lavad.store.asked import Asked, Find, Mark, Share, Sums, Wasteful

LARGEST = 256 << 20
MAX_ELEMENTS = 100_000


def opened(request: Request, options: Options) -> tuple[Request, FileLog | None]:
    """The request of a view of the file that -f names, and the file; the request itself and None without -f. Raises Refused."""
    if "f" not in options:
        return request, None
    log = FileLog(text_of(options))
    view, cluster = request.view, Cluster()
    cluster.configure(request.cluster.conf)
    for spec in log.specs_known():
        cluster.queue_conf.setdefault(spec.queue, QueueConfig(spec.queue))
    for host in log.hosts():
        cluster.host_conf.setdefault(host, HostConfig(host))
    again = View(cluster, view.soft, lambda: log, master=view.master, lsf=view.lsf)
    return Request(again, request.query, request.caller, request.now), log


def text_of(options: Options) -> str:
    """The file's text, which the command sent deflated, in base64. Raises Refused."""
    try:
        inflate = zlib.decompressobj()
        data = inflate.decompress(base64.b64decode(options.text("f"), validate=True), LARGEST)
    except (binascii.Error, ValueError, zlib.error):
        raise Refused(f"{options.command}: option -f is not supported by lava here") from None
    if inflate.unconsumed_tail:
        raise Refused(f"{options.command}: -f: larger than {LARGEST >> 20} MB")
    return data.decode("utf-8", "surrogateescape")


class FileLog:
    """The file's jobs, specs, texts and events, with the interface of the store."""

    def __init__(self, text: str) -> None:
        self.jobs: dict[int, Job] = {}
        self._specs: dict[int, Spec] = {}
        self._numbers: dict[Spec, int] = {}
        self._texts: dict[int, JobText] = {}
        self._events: list[tuple[int, ev.Event]] = []
        self._of_job: dict[int, list[tuple[int, ev.Event]]] = {}
        runs: Runs = {}
        for line in text.splitlines():
            if line[:1] == '"':
                try:
                    self._take(Fields(line), runs)
                except (IndexError, ValueError, OverflowError):
                    continue  # a line that was cut off; LSF's commands leave it out too
        self._tell()

    def _take(self, fields: Fields, runs: Runs) -> None:
        fields.skip(1)
        at = float(fields.number())
        if fields.kind == "JOB_NEW":
            job, submitted, spec, text, name, held = job_new(fields)
            self._submitted(job, submitted, self._number(spec), name, held)
            self._texts[job] = text
        elif fields.kind == "JOB_FINISH":
            found, spec, text = job_finish(fields, at)
            self.jobs[found.key] = replace(found, spec=self._number(spec))
            self._texts[found.key] = text
        else:
            kind = KINDS.get(fields.kind)
            for event in kind(at, fields, runs) if kind is not None else ():
                self._keep(event)

    def _number(self, spec: Spec) -> int:
        number = self._numbers.setdefault(spec, len(self._numbers) + 1)
        self._specs[number] = spec
        return number

    def _keep(self, event: ev.Event) -> None:
        row = (len(self._events) + 1, event)
        self._events.append(row)
        if isinstance(event, ev.JobEvent):
            self._of_job.setdefault(job_of(event.key), []).append(row)

    def _submitted(self, job: int, at: float, spec: int, name: str, held: bool) -> None:
        try:
            found = parse_job_name(name, 1 << 30)
        except ArrayError:
            found = name
        array = isinstance(found, ArraySpec) and len(found.indices) <= MAX_ELEMENTS
        indices = found.indices if isinstance(found, ArraySpec) and array else None
        for index in indices or (0,):
            key = key_of(job, index)
            shown = f"{found.name}[{index}]" if isinstance(found, ArraySpec) and index else name
            self.jobs[key] = Job(key=key, spec=spec, name=shown, submitted=at, since=at)
        self._keep(ev.JobSubmitted(at=at, key=job, spec=spec, name=name, held=held, indices=indices))

    def _tell(self) -> None:
        """Bring each job to the state that its events lead to; a job that has a line of lsb.acct alone is complete."""
        for job, rows in self._of_job.items():
            common = [event for _, event in rows if isinstance(event, ev.JobEvent) and not index_of(event.key)]
            own: dict[int, list[ev.Event]] = {}
            for _, event in rows:
                if isinstance(event, ev.JobEvent) and index_of(event.key):
                    own.setdefault(event.key, []).append(event)
            for key in [key for key in (job, *own) if key in self.jobs]:
                mine = common if key == job else sorted([*common, *own[key]], key=lambda event: event.at)
                self.jobs[key] = _led(self.jobs[key], mine)

    def specs_known(self) -> Iterable[Spec]:
        return self._numbers

    def hosts(self) -> set[str]:
        return {part.host for job in self.jobs.values() if job.run is not None for part in job.run.parts}

    def chosen(self, wanted: Wanted) -> Iterator[Job]:
        """The jobs that a listing wants."""
        for job in self.jobs.values():
            only = wanted.ids.get(job_of(job.key), EMPTY) if wanted.ids is not None else None
            if (
                job.state in wanted.states
                and (only is None or index_of(job.key) in only)
                and (wanted.users is None or self._specs[job.spec].user in wanted.users)
                and (wanted.spec_test is None or wanted.spec_test(job.spec))
                and (wanted.job_test is None or wanted.job_test(job))
            ):
                yield job

    def text_of(self, job: int) -> JobText | None:
        return self._texts.get(job)

    def texts(self, jobs: Iterable[int]) -> dict[int, JobText]:
        return {job: self._texts[job] for job in jobs if job in self._texts}

    def attached(self, key: int, number: int) -> str:
        """The log has none."""
        return ""

    def env(self, digest: str) -> dict[str, str] | None:
        """None: a file keeps no environments."""

    def finished_jobs(self, find: Find) -> list[Job]:
        """Jobs that have ended, of those named; nothing asks a file for more than names."""
        wanted = find.keys
        ended = (row for row in self.jobs.values() if row.state in FINAL)
        return [row for row in ended if wanted is None or row.key in wanted or job_of(row.key) in wanted]

    def finished_page(self, find: Find, after: int | None, down: bool, limit: int) -> list[Job | Array]:
        """As ``finished_keys``."""
        raise NotImplementedError("a file is read for bacct and bhist alone")

    def finished_keys(self, since: float, user: str | None) -> list[int]:
        """Nothing asks a file for these."""
        raise NotImplementedError("a file is read for bacct and bhist alone")

    def finished_marks(self, since: float) -> list[Mark]:
        """As ``finished_keys``."""
        raise NotImplementedError("a file is read for bacct and bhist alone")

    def specs(self, ids: Iterable[int]) -> dict[int, Spec]:
        return {number: self._specs[number] for number in ids if number in self._specs}

    def finished_array(self, job: int) -> Array | None:
        """None: a file has elements only."""

    def finished_arrays(self, jobs: Iterable[int]) -> dict[int, Array]:
        """As ``finished_array``."""
        return {}

    def events_of(self, job: int) -> list[tuple[int, ev.Event]]:
        return self._of_job.get(job, [])

    def events_of_many(self, jobs: Iterable[int]) -> dict[int, list[tuple[int, ev.Event]]]:
        return {job: self.events_of(job) for job in jobs}

    def sums(self, asked: Asked) -> Sums:
        """bacct goes through the jobs of a file itself."""
        raise NotImplementedError("a file has no sums")

    def shares(self, asked: Asked) -> list[Share]:
        """lava report reads no file."""
        raise NotImplementedError("a file has no sums")

    def wasteful(self, asked: Asked, most: int, gpus: bool) -> list[Wasteful]:
        """As ``shares``."""
        raise NotImplementedError("a file has no sums")

    def pages(self, asked: Asked) -> Iterator[list[Job]]:
        """The finished jobs asked for."""
        names = [Wildcard(name) for name in asked.names]
        found = [job for job in self.finished_jobs(Find()) if self._fits(job, asked) and _is_named(job, names)]
        yield sorted(found, key=lambda job: (job_of(job.key), index_of(job.key)))

    def _fits(self, job: Job, asked: Asked) -> bool:
        spec = self._specs[job.spec]
        hosts = {part.host for part in job.run.parts} if job.run is not None else set()
        named = ((asked.users, spec.user), (asked.queues, spec.queue), (asked.projects, spec.project))
        dispatched = job.run.dispatched if job.run is not None else 0.0
        times = ((asked.completed, job.since), (asked.submitted, job.submitted), (asked.dispatched, dispatched))
        return (
            all(not names or value in names for names, value in named)
            and spec.user not in asked.but_users
            and (not asked.states or job.state in asked.states)
            and (not asked.keys or job.key in asked.keys or job_of(job.key) in asked.keys)
            and (not asked.hosts or not hosts.isdisjoint(asked.hosts))
            and all(window is None or (at and window[0] <= at <= window[1]) for window, at in times)
        )

    def kept_since(self) -> float:
        """All that the file has is there."""
        return 0.0

    def events_between(self, begin: float, end: float) -> Iterator[list[tuple[int, ev.Event]]]:
        yield [row for row in self._events if begin <= row[1].at <= end]

    def site_events(self, kinds: Iterable[str], start: float, end: float) -> list[tuple[int, ev.Event]]:
        wanted = set(kinds)
        return [row for row in self._events if ev.kind_of(type(row[1])) in wanted and start <= row[1].at < end]


def _is_named(job: Job, names: Sequence[Wildcard]) -> bool:
    """Whether a job has one of these names, or is an element of an array that has; there are no names: any job."""
    array = job.name.partition("[")[0]
    return not names or any(name.fits(job.name) or (bool(index_of(job.key)) and name.fits(array)) for name in names)


def _led(job: Job, events: Sequence[ev.Event]) -> Job:
    state, since, run, outcome = job.state, job.since, job.run, job.outcome
    for at, to in moves(events):
        state, since = to, at
    for event in events:
        if isinstance(event, ev.JobDispatched):
            parts = tuple(Part(host=placed.host, slots=placed.slots) for placed in event.parts)
            run = Attempt(number=event.attempt, uid="", dispatched=event.at, parts=parts)
            outcome = None
        elif isinstance(event, ev.PartStarted) and run is not None:
            run = replace(run, started=event.at, cwd=event.cwd)
        elif isinstance(event, (ev.JobRequeued, ev.JobRevived)):
            outcome = None
        elif isinstance(event, ev.JobFinished):
            outcome = Outcome(at=ev.over_at(event), status=event.status, reason=event.reason)
            if run is not None:
                ended = [replace(part, end=event.end if not at else None) for at, part in enumerate(run.parts)]
                run = replace(run, verdict=event.end, parts=tuple(ended))
    if state is JobState.PEND:
        run = None
    return replace(job, state=state, since=since, run=run, outcome=outcome, attempt=run.number if run is not None else 0)
