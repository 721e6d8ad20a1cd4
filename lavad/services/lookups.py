"""Finished jobs that a dependency condition names, read from the store before the engine decides."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from typing import TypeVar

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.resolve import MAX_NAMED, NeedsLookup, StoredJobs
from lavad.core.decide.base.select import Filters, owners
from lavad.core.decide.control.revive import FinishedJobs
from lavad.core.job.depend import Ended, jobs_of
from lavad.core.job.job import Job
from lavad.core.lang.asks import Caller, Refused, Select
from lavad.core.lang.ids import job_of
from lavad.core.lang.job_names import ArrayError, keys_named, parse_job_id
from lavad.core.lang.ranges import Ranges
from lavad.core.site.rights import is_admin
from lavad.store.asked import Find
from lavad.store.read import Reader
from proto.answers import Answer
from proto.daemon.workers import Workers

T = TypeVar("T")
ENDED = ("DONE", "EXIT")
TRIES = 20
"""Attempts: a job may end between the lookup and the decision, which then needs another lookup."""


class Lookups:
    """Repeats a decision with lookups in the store until it has all jobs that it needs."""

    def __init__(self, cluster: Cluster, reader: Reader, reads: Workers, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._reader = reader
        self._reads = reads
        self._clock = clock
        self._kept_since = 0.0
        self._open: set[asyncio.Task[object]] = set()

    async def held(self, work: Coroutine[object, None, T]) -> T:
        """Carry out ``work``, to its end even if the caller goes away; jobs that it finds stay in the store until then."""
        task = asyncio.ensure_future(work)
        self._open.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._open.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be left who would see it

    async def forget(self, before: float) -> None:
        """Find no longer what was over before this time; returns when all that may have found some of it are through."""
        self._kept_since = max(self._kept_since, before)
        if self._open:
            await asyncio.wait(set(self._open))

    async def tried(self, decided: Callable[[StoredJobs], Awaitable[Answer]], caller: Caller) -> Answer:
        """The answer of ``decided``, called with all jobs that it needs from the store; raises Refused."""
        try:
            return await decided(StoredJobs())
        except NeedsLookup as missing:
            return await self.held(self._tried(decided, caller, missing))

    async def _tried(self, decided: Callable[[StoredJobs], Awaitable[Answer]], caller: Caller, missing: NeedsLookup) -> Answer:
        known = StoredJobs()
        for _ in range(TRIES):
            await self._reads.run(self._read, missing, caller, known, who=caller.user)
            try:
                return await decided(known)
            except NeedsLookup as more:
                missing = more
        raise missing

    async def finished(self, jobs: Select, caller: Caller, states: Collection[str] = ENDED) -> FinishedJobs:
        """Finished jobs that ids or filters select (by filters only those that ended within CLEAN_PERIOD, in these states)."""
        return await self._reads.run(self._finished, jobs, caller, states, who=caller.user)

    def _finished(self, jobs: Select, caller: Caller, states: Collection[str]) -> FinishedJobs:
        try:
            keys = keys_named(jobs.ids)
            everything = not jobs.ids or any(parse_job_id(text)[0] == 0 for text in jobs.ids)
        except ArrayError as error:
            raise Refused(str(error)) from None
        if not everything:
            found = self._reader.finished_jobs(Find(keys=tuple(keys)))
        else:
            since = self._clock() - self._cluster.conf.params.clean_period
            found = self._matching(jobs, caller, states, since)
        due = self._due({job_of(job.key) for job in found})
        found = [job for job in found if job_of(job.key) not in due]
        ids = {job_of(job.key) for job in found if job.key >> 32}
        arrays = {job: array for job in ids if (array := self._reader.finished_array(job)) is not None}
        numbers = {job.spec for job in found} | {array.spec for array in arrays.values()}
        return FinishedJobs(jobs=found, arrays=arrays, specs=self._reader.specs(sorted(numbers)))

    def _matching(self, jobs: Select, caller: Caller, states: Collection[str], since: float) -> list[Job]:
        """Jobs that the filters select, by id; without an id the last one, of an array all its elements that they select."""
        whose = owners(self._cluster, jobs, caller)
        user = next(iter(whose)) if isinstance(whose, frozenset) else None
        name = jobs.name.partition("[")[0] if jobs.name.endswith("]") else jobs.name  # the filters look at the indices
        find = Find(user=user, name=name if jobs.name else None, queue=jobs.queue or None, since=since)
        found = [job for job in self._reader.finished_jobs(find) if job.state.name in states]
        specs = self._reader.specs(sorted({job.spec for job in found}))
        filters = Filters(self._cluster, jobs)
        taken = [job for job in found if (whose is None or specs[job.spec].user in whose) and filters.take(job, specs[job.spec])]
        if jobs.ids or not taken:
            return taken
        return [job for job in taken if job_of(job.key) == job_of(taken[-1].key)]

    def _read(self, missing: NeedsLookup, caller: Caller, known: StoredJobs) -> None:
        since = self._clock() - self._cluster.conf.params.clean_period
        user = None if is_admin(self._cluster.conf, caller) else caller.user
        jobs = set(missing.jobs)
        for name in missing.names:
            if name.endswith("*"):
                # of jobs that are about to leave the store none is found
                after = max(since, self._kept_since)
                ids, alike = self._reader.named_alike(name.removesuffix("*"), user, after, MAX_NAMED + 1)
                if isinstance(ids, Ranges):
                    known.alike[name] = alike
                else:
                    known.jobs.update((job, ended) for those, ended in alike for job in those)
            else:
                ids, alike = self._reader.id_named(name, user, since), ()
            rest = ids if isinstance(ids, Ranges) else Ranges.from_indices(ids)
            for those, _ in alike:
                rest = rest.minus(those)
            due = self._due(rest)
            known.names[name] = jobs_of(job for job in ids if job not in due) if due else ids
            # of more than a condition may name none is read: the decision refuses them
            jobs.update(rest if len(ids) <= MAX_NAMED else ())
        known.jobs.update(self._ended_of(jobs))
        known.elements.update(self._ended_of(missing.elements))

    def _due(self, jobs: Collection[int]) -> set[int]:
        """Which of these jobs are about to leave the store."""
        return self._reader.due(jobs, self._kept_since) if self._kept_since else set()

    def _ended_of(self, jobs: Iterable[int]) -> dict[int, Ended | None]:
        wanted = set(jobs)
        due = self._due(wanted)
        return dict.fromkeys(due) | self._reader.ended_of(sorted(wanted - due))
