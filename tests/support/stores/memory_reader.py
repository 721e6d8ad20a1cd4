"""A store in memory with the interface that queries read: fed with the same events as the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from lavad.core.cluster.charge import gpus_with_attempt, used_by
from lavad.core.cluster.cluster import Cluster
from lavad.core.events import ElementsKilled, Event, JobEvent, JobFinished, SpecAdded, kind_of
from lavad.core.events.apply import apply
from lavad.core.job.checkpoints import CheckpointSums
from lavad.core.job.gpu_use import GpuSums
from lavad.core.job.job import Array, Job
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.ids import index_of, job_of
from lavad.core.lang.ranges import EMPTY
from lavad.core.lang.states import JobState
from lavad.store.asked import Asked, Find, Mark, Share, Sums, Wasteful
from lavad.store.rows import killed_jobs


def _counted(array: Array, event: Event) -> Array:
    """The array's last record: its last element is counted as the store's row has it."""
    if isinstance(event, JobFinished):
        done = event.state is JobState.DONE
        return replace(array, done=array.done + done, exited=array.exited + (not done))
    gone = len(event.elements) if isinstance(event, ElementsKilled) else 0
    return replace(array, exited=array.exited + gone, pending=EMPTY, held=EMPTY)


class MemoryReader:
    """Keeps what the real store keeps: events, texts, finished jobs, arrays and specs."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.events: list[tuple[int, Event]] = []
        self.by_job: dict[int, list[tuple[int, Event]]] = {}
        self.kept_texts: dict[int, JobText] = {}
        self.envs: dict[str, dict[str, str]] = {}
        self.attachments: dict[tuple[int, int], str] = {}
        self.finished: dict[int, Job] = {}
        self.arrays: dict[int, Array] = {}
        self.all_specs: dict[int, Spec] = {}

    def kept_since(self) -> float:
        """All is there."""
        return 0.0

    def feed(self, *events: Event) -> None:
        """Apply events and keep them."""
        for event in events:
            arrays = dict(self.cluster.arrays.rows) if isinstance(event, JobEvent) else {}
            apply(self.cluster, event)
            self.events.append((self.cluster.version, event))
            if isinstance(event, JobEvent):
                self.by_job.setdefault(job_of(event.key), []).append(self.events[-1])
            if isinstance(event, SpecAdded):
                self.all_specs[event.spec] = event.value
            for job_id, array in arrays.items():
                if job_id not in self.cluster.arrays.rows:
                    self.arrays[job_id] = _counted(array, event)
            self.finished.update(self.cluster.finished)
            if isinstance(event, ElementsKilled):
                self.finished.update((job.key, job) for job in killed_jobs([event], arrays))
            self.cluster.forget_changes()

    def text_of(self, job: int) -> JobText | None:
        return self.kept_texts.get(job)

    def texts(self, jobs: Iterable[int]) -> dict[int, JobText]:
        return {job: self.kept_texts[job] for job in jobs if job in self.kept_texts}

    def attached(self, key: int, number: int) -> str:
        """As of the real one."""
        return self.attachments.get((key, number), "")

    def env(self, digest: str) -> dict[str, str] | None:
        return self.envs.get(digest)

    def finished_job(self, key: int) -> Job | None:
        return self.finished.get(key)

    def finished_jobs(self, find: Find) -> list[Job]:
        wanted = set(find.keys) if find.keys is not None else None
        found = []
        for row in self.finished.values():
            spec = self.all_specs[row.spec]
            if (
                (wanted is None or row.key in wanted or job_of(row.key) in wanted)
                and find.user in (None, spec.user)
                and find.queue in (None, spec.queue)
                and find.project in (None, spec.project)
                and find.name in (None, row.name)
                and (find.since is None or (row.outcome is not None and row.outcome.at >= find.since))
                and (find.done_since is None or row.state is not JobState.DONE or row.since >= find.done_since)
            ):
                found.append(row)
        return found

    def finished_page(self, find: Find, after: int | None, down: bool, limit: int) -> list[Job | Array]:
        """As of the real one."""
        array = find.keys[0] if find.keys else 0
        numbers: dict[int, Job | Array] = {}
        for job in self.finished_jobs(find):
            if job_of(job.key) == array if array else not index_of(job.key):
                numbers[job_of(job.key) << 32 | index_of(job.key)] = job
        if not array:
            numbers |= {number << 32: row for number, row in self.arrays.items()}
        some = [at for at in sorted(numbers, reverse=down) if after is None or (at < after if down else at > after)]
        return [numbers[at] for at in some[:limit]]

    def finished_keys(self, since: float, user: str | None) -> list[int]:
        return [job.key for job in self.finished_jobs(Find(since=since, user=user))]

    def finished_marks(self, since: float) -> list[Mark]:
        return [Mark(job.key, job.spec, job.state) for job in self.finished_jobs(Find(since=since))]

    def specs(self, ids: Iterable[int]) -> dict[int, Spec]:
        return {number: self.all_specs[number] for number in ids if number in self.all_specs}

    def finished_array(self, job: int) -> Array | None:
        return self.arrays.get(job)

    def finished_arrays(self, jobs: Iterable[int]) -> dict[int, Array]:
        return {job: self.arrays[job] for job in jobs if job in self.arrays}

    def events_of(self, job: int) -> list[tuple[int, Event]]:
        return self.by_job.get(job, [])

    def events_of_many(self, jobs: Iterable[int]) -> dict[int, list[tuple[int, Event]]]:
        return {job: self.events_of(job) for job in jobs}

    def sums(self, asked: Asked) -> Sums:
        raise NotImplementedError("a real store sums up")

    def shares(self, asked: Asked) -> list[Share]:
        """One for each job; of the filters it knows users, projects and the time of the end."""
        found = []
        for job, spec in self._asked(asked):
            _, cpu, slots, _ = used_by(job.run, job.since) if job.run is not None else (0.0,) * 4
            gpus = gpus_with_attempt(job, job.run, job.since)
            wait = (job.run.dispatched if job.run is not None else job.since) - job.submitted
            figures = slots, cpu, int(gpus is not None), gpus or GpuSums(), CheckpointSums()
            times = int(job.state is JobState.EXIT), wait, wait, job.since, max(0.0, slots - cpu)
            found.append(Share(spec.user, spec.project, spec.queue, 1, *figures, *times))
        return found

    def wasteful(self, asked: Asked, most: int, gpus: bool) -> list[Wasteful]:
        """As of the real one."""
        found = []
        for job, spec in self._asked(asked):
            _, cpu, held, _ = used_by(job.run, job.since) if job.run is not None else (0.0,) * 4
            lost = held - cpu
            if gpus:
                sums = gpus_with_attempt(job, job.run, job.since) or GpuSums()
                held, lost = sums.held, sums.idle
            if lost > 0:
                found.append(Wasteful(job.key, spec.user, spec.project, spec.queue, job.name, held, lost))
        return sorted(found, key=lambda row: -row.wasted)[:most]

    def _asked(self, asked: Asked) -> list[tuple[Job, Spec]]:
        begin, end = asked.completed or (0.0, float("inf"))
        rows = [(job, self.all_specs[job.spec]) for job in self.finished.values() if begin <= job.since <= end]
        return [
            (job, spec)
            for job, spec in rows
            if spec.user in (asked.users or (spec.user,))
            and spec.user not in asked.but_users
            and spec.project in (asked.projects or (spec.project,))
        ]

    def pages(self, asked: Asked) -> Iterator[list[Job]]:
        raise NotImplementedError("a real store pages")

    def site_events(self, kinds: Iterable[str], start: float, end: float) -> list[tuple[int, Event]]:
        wanted = set(kinds)
        return [row for row in self.events if kind_of(type(row[1])) in wanted and start <= row[1].at < end]

    def events_between(self, begin: float, end: float) -> Iterator[list[tuple[int, Event]]]:
        """As of the real one, an event a page."""
        yield from ([row] for row in self.events if begin <= row[1].at <= end)
