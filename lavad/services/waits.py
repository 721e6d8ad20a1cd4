"""Callers that wait for a job to start or end (bsub -K)."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from lavad.committed import Committed
from lavad.core.cluster.cluster import Cluster
from lavad.core.events import JobFinished, PartPrepared, PartStarted
from lavad.core.job.job import Job
from lavad.core.lang.states import JobState, TermReason
from proto.answers import Answer

K = TypeVar("K")
V = TypeVar("V")


def answer_for(job: Job) -> Answer:
    """What a waiting caller gets."""
    status = job.outcome.status if job.outcome is not None else 0
    host = job.run.parts[0].host if job.run is not None else ""
    why = job.outcome.why if job.outcome is not None and (job.run is None or not job.run.started) else ""
    answer: Answer = {"state": job.state.name, "status": status, "host": host, "why": why}
    if job.outcome is not None and job.outcome.reason is not TermReason.NONE:
        answer["reason"] = job.outcome.reason.name
    return answer


class Waits:
    """Futures by job key."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting: dict[tuple[int, str], list[asyncio.Future[Answer]]] = {}
        self._arrays: dict[int, list[asyncio.Future[None]]] = {}

    def committed(self, committed: Committed) -> None:
        """Answer callers whose job or array has started or ended."""
        for array in [array for array in self._arrays if self._cluster.find_array(array) is None]:
            for over in self._arrays.pop(array):
                if not over.done():
                    over.set_result(None)
        if not self._waiting or committed.kinds.isdisjoint((PartStarted, PartPrepared, JobFinished)):
            return
        waited = {key for key, _ in self._waiting}
        finished = {job.key: job for job in committed.finished if job.key in waited}
        for event in committed.events:
            if not isinstance(event, (PartStarted, PartPrepared, JobFinished)) or event.key not in waited:
                continue
            if isinstance(event, PartStarted):
                job = self._cluster.find_job(event.key)
                if job is not None and job.run is not None and job.run.parts[0].host == event.host:
                    self._answer(event.key, "started", answer_for(job))
            elif isinstance(event, PartPrepared) and event.attach_address:
                self._answer(event.key, "attachable", {})
            elif isinstance(event, JobFinished):
                ended = finished[event.key]
                self._answer(event.key, "started", answer_for(ended))
                self._answer(event.key, "finished", answer_for(ended))
                self._answer(event.key, "attachable", answer_for(ended))

    def _answer(self, key: int, until: str, answer: Answer) -> None:
        for future in self._waiting.pop((key, until), ()):
            if not future.done():
                future.set_result(answer)

    async def wait(self, key: int, until: str) -> Answer | None:
        """Wait until the live job has started or ended (``until``) and return the answer; None if it is not live."""
        job = self._cluster.find_job(key)
        if job is None:
            return None
        if until == "started" and job.run is not None and job.run.started and job.state is not JobState.PEND:
            return answer_for(job)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault((key, until), []).append(future)
        try:
            return await future
        finally:
            if future.cancelled():
                _drop(self._waiting, (key, until), future)

    async def array_over(self, job: int) -> None:
        """Return once no element of the array is live; at once if the job is not a live array."""
        if self._cluster.find_array(job) is not None:
            over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._arrays.setdefault(job, []).append(over)
            try:
                await over
            finally:
                if over.cancelled():
                    _drop(self._arrays, job, over)


def _drop(waiting: dict[K, list[asyncio.Future[V]]], key: K, future: asyncio.Future[V]) -> None:
    """The caller of ``future`` has gone away."""
    left = [one for one in waiting.get(key, ()) if one is not future]
    if left:
        waiting[key] = left
    else:
        waiting.pop(key, None)
