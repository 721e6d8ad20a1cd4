"""What a query reads: a replica of the cluster, the soft state, and the store for what is not in memory.

Rule: nothing here changes anything; a query sees one version of the cluster from its first line to its last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple, Protocol

from config.model.queue import QueueConfig
from lavad.core.cluster.cluster import Cluster
from lavad.core.events import Event, JobSuspended
from lavad.core.job.job import Array, Job
from lavad.core.job.spec import NO_TEXT, JobText, Spec
from lavad.core.lang.ids import index_of, job_of
from lavad.core.plan.volatile import Soft
from lavad.core.site.conf import Params
from lavad.core.site.service_classes import ServiceClasses
from lavad.queries.frame import formats
from lavad.store.asked import Asked, Find, Mark, Share, Sums, Wasteful
from proto.records import Sample


class Reader(Protocol):
    """Reads what the store keeps. ``job`` is a job id without index, ``key`` as in ``core.lang.ids``."""

    def text_of(self, job: int) -> JobText | None:
        """The text of one job or array."""

    def texts(self, jobs: Iterable[int]) -> dict[int, JobText]:
        """The texts of many jobs and arrays by id; those without one are left out."""

    def attached(self, key: int, number: int) -> str:
        """The data attached to a message of a job; "" for none."""

    def env(self, digest: str) -> dict[str, str] | None:
        """The environment kept under this hash."""

    def finished_jobs(self, find: Find) -> list[Job]:
        """Finished jobs with outcome and last attempt."""

    def finished_page(self, find: Find, after: int | None, down: bool, limit: int) -> list[Job | Array]:
        """Finished jobs and arrays by number."""

    def finished_keys(self, since: float, user: str | None) -> list[int]:
        """Keys of those that ended at this time or later."""

    def finished_marks(self, since: float) -> list[Mark]:
        """What is counted of the finished jobs since then, without reading the jobs."""

    def specs(self, ids: Iterable[int]) -> dict[int, Spec]:
        """Specs by number, also those that no live job has."""

    def finished_array(self, job: int) -> Array | None:
        """The last record of an array that has left memory."""

    def finished_arrays(self, jobs: Iterable[int]) -> dict[int, Array]:
        """As ``finished_array``, of many by job id."""

    def events_of(self, job: int) -> list[tuple[int, Event]]:
        """All events of a job, or of an array and its elements, in order."""

    def events_of_many(self, jobs: Iterable[int]) -> dict[int, list[tuple[int, Event]]]:
        """As ``events_of``, for many."""

    def sums(self, asked: Asked) -> Sums:
        """Accounting of finished jobs."""

    def shares(self, asked: Asked) -> list[Share]:
        """Finished jobs by user, project and queue."""

    def wasteful(self, asked: Asked, most: int, gpus: bool) -> list[Wasteful]:
        """Finished jobs that wasted the most slots, or GPUs."""

    def kept_since(self) -> float:
        """The time up to which history may be gone; 0.0: all is there."""

    def pages(self, asked: Asked) -> Iterator[list[Job]]:
        """Finished jobs by id, page by page."""

    def events_between(self, begin: float, end: float) -> Iterator[list[tuple[int, Event]]]:
        """All events of a time, in order, page by page."""

    def site_events(self, kinds: Iterable[str], start: float, end: float) -> list[tuple[int, Event]]:
        """Events of these kinds (names of classes) that are about no job, in order."""


class HeldSlots(NamedTuple):
    """Slots that are held for jobs that do not fit yet: on each host, of each queue and of each user."""

    hosts: Counter[str]
    queues: Counter[str]
    users: Counter[str]


class View:
    """One query's view of the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        soft: Soft,
        opened: Callable[[], Reader],
        *,
        master: str = "",
        lsf: Mapping[str, str] | None = None,
        samples: Callable[[int], list[Sample]] | None = None,
        checked: Callable[[], None] | None = None,
    ) -> None:
        self.cluster = cluster
        self.soft = soft
        self._opened = opened
        self.master = master
        self.lsf: Mapping[str, str] = lsf or {}
        self.samples: Callable[[int], list[Sample]] = samples or (lambda key: [])
        """What a running job has used over time."""
        self.checked = checked
        """Called before each piece that is shown; what it raises ends the query."""
        self._specs: dict[int, Spec] = {}
        self._suspended: dict[int, dict[int, JobSuspended]] = {}

    @cached_property
    def reader(self) -> Reader:
        """What reads the store, opened by the first query that needs it."""
        return self._opened()

    @cached_property
    def held_slots(self) -> HeldSlots:
        """Counted once: a listing shows those of thousands of hosts or users."""
        found, cluster = HeldSlots(Counter(), Counter(), Counter()), self.cluster
        for key, reserved in self.soft.promises.items():
            job = cluster.jobs.rows.get(key) or cluster.arrays.rows.get(job_of(key))
            spec = cluster.specs.rows.get(job.spec) if job is not None else None
            for host, slots in reserved.held:
                found.hosts[host] += slots
                if spec is not None:
                    found.queues[spec.queue] += slots
                    found.users[spec.user] += slots
        return found

    @cached_property
    def service_classes(self) -> ServiceClasses:
        """Which service class jobs belong to."""
        return ServiceClasses(self.cluster.conf)

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.cluster.conf.cluster

    @property
    def params(self) -> Params:
        return self.cluster.conf.params

    def full_time(self, at: float) -> str:
        """``Fri Nov 20 11:33:50``, in bjobs -l, bhist and bacct -l; with LSB_DISPLAY_YEAR the year behind it."""
        return formats.time_with_year(at) if self.params.lsb_display_year else formats.full_time(at)

    @cached_property
    def places_of_resources(self) -> dict[str, int]:
        """The place of each resource in lsf.shared."""
        return {resource.name: at for at, resource in enumerate(self.cluster.conf.resources)}

    @property
    def short_hosts(self) -> bool:
        """LSB_SHORT_HOSTLIST: ``4*hostA`` instead of four times ``hostA``."""
        return self.params.lsb_short_hostlist

    @property
    def hpc(self) -> bool:
        """LSB_ENABLE_HPC_ALLOCATION: the wording of LSF 10.1 (tasks and allocated slots)."""
        return self.params.lsb_enable_hpc_allocation

    def spec(self, job: Job | Array | Mark) -> Spec:
        """The spec of a job, live or finished."""
        found = self.cluster.specs.rows.get(job.spec) or self._specs.get(job.spec)
        if found is None:
            self.load_specs([job])
            found = self._specs.get(job.spec) or Spec(user="?", queue="?")
        return found

    def spec_numbered(self, number: int) -> Spec:
        """The spec with this number, of a live job or one that ``load_specs`` has read."""
        return self.spec(Mark(key=0, spec=number))

    def finished_jobs(self, find: Find) -> list[Job]:
        """As of the reader, without those that are live in this version of the cluster: the store can be ahead of it."""
        return [row for row in self.reader.finished_jobs(find) if not self.is_live(row.key)]

    def finished_keys(self, since: float, user: str | None = None) -> list[int]:
        """Keys of what ended since then, as of ``finished_jobs``."""
        return [key for key in self.reader.finished_keys(since, user) if not self.is_live(key)]

    def finished_marks(self, since: float) -> list[Mark]:
        """As of the reader, without those that are live; their specs are loaded."""
        found = [mark for mark in self.reader.finished_marks(since) if not self.is_live(mark.key)]
        self.load_specs(found)
        return found

    def is_live(self, key: int) -> bool:
        """Whether a job or element has not finished in this version of the cluster."""
        if key in self.cluster.jobs.rows:
            return True
        array = self.cluster.arrays.rows.get(job_of(key))
        return array is not None and (index_of(key) in array.pending or index_of(key) in array.held)

    def last_suspension(self, job: Job) -> JobSuspended | None:
        """The event that suspended a job last. The history of an array is read once for all of its elements."""
        number = job_of(job.key)
        if number not in self._suspended:
            events = self.reader.events_of(number)
            self._suspended[number] = {event.key: event for _, event in events if isinstance(event, JobSuspended)}
        return self._suspended[number].get(job.key)

    def load_specs(self, jobs: Iterable[Job | Array | Mark]) -> None:
        """Read the specs of finished jobs in one go."""
        live = self.cluster.specs.rows
        missing = {job.spec for job in jobs if job.spec not in live and job.spec not in self._specs}
        if missing:
            self._specs.update(self.reader.specs(sorted(missing)))

    def texts(self, jobs: Iterable[Job]) -> dict[int, JobText]:
        """The text of each job by its key; an element that has none of its own has its array's."""
        ids = {job.key: job_of(job.key) for job in jobs}
        found = self.reader.texts(set(ids) | set(ids.values()))
        return {key: found.get(key) or found.get(job) or NO_TEXT for key, job in ids.items()}

    def queue(self, name: str) -> QueueConfig:
        """A queue's configuration; one that is no longer configured has the defaults."""
        return self.cluster.queue_conf.get(name) or QueueConfig(name=name)
