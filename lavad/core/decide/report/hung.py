"""What the samples say of ranks that hang, as long as the attempt that they are about still runs."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Suspect
from lavad.core.lang.states import JobState


def suspected(cluster: Cluster, key: int, attempt: int, suspects: tuple[Suspect, ...], now: float) -> list[ev.Event]:
    """Name the ranks, or none; a job that is suspended is not judged."""
    job = cluster.jobs.rows.get(key)
    if job is None or job.run is None or job.run.number != attempt or job.state is not JobState.RUN:
        return []
    if suspects == job.run.suspects:
        return []
    return [ev.RanksSuspected(at=now, key=key, attempt=attempt, suspects=suspects)]
