"""Which jobs are dispatched in chunks, and how many together: CHUNK_JOB_SIZE and CHUNK_JOB_DURATION as in LSF."""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import Spec

SHORT = 1800
"""Seconds: without CHUNK_JOB_DURATION a job with a longer limit or estimate is not put into a chunk."""


def chunk_size(cluster: Cluster, spec: Spec) -> int:
    """The most jobs of a class in a chunk; 1: they are dispatched one by one.

    Those of one slot alone, which nobody talks to, that keep nothing from others but it, and that are not expected to take long:
    by their limits as given, as in LSF, whichever host it will be.
    """
    queue, app = cluster.queue_conf.get(spec.queue), cluster.conf.app_conf.get(spec.app)
    own = app.chunk_job_size if app is not None else None
    size = own if own is not None else queue.chunk_job_size if queue is not None else None
    if size is None or size < 2 or not _may_share(spec):
        return 1
    most = queue.limits if queue is not None else spec.limits
    told = [seconds for seconds in (spec.estimate, spec.limits.run or most.run, spec.limits.cpu or most.cpu) if seconds]
    longest = cluster.conf.params.chunk_job_duration
    if longest is not None and not told:
        return 1
    return size if max(told, default=0) <= (SHORT if longest is None else longest) else 1


def _may_share(spec: Spec) -> bool:
    if spec.slots > 1 or spec.max_slots > 1 or spec.interactive or spec.exclusive or spec.resizable:
        return False
    return not (spec.gpu is not None or spec.roles or spec.checkpoint is not None or spec.reservation)
