"""Live records into a cluster that has none of them yet: where the store is loaded, and in a replica that starts.

Rule: the cluster is the same as after a ``put`` of each record in this order; nobody watches its conditions yet.
Of jobs that have only been submitted, of which there may be a million, what is the same for all of a class is added once.
"""

from __future__ import annotations

from collections.abc import Iterable

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.job_rows import JobRows
from lavad.core.cluster.key_set import KeySet
from lavad.core.cluster.records import CHARS
from lavad.core.cluster.versioned_table import Pending, submission_order
from lavad.core.job.job import Array, Job


class _Class:
    """What the jobs of a class have in common, and what is still to be added for them."""

    __slots__ = ("count", "keys", "last", "number", "pending", "units", "user")

    def __init__(self, number: int, user: str, keys: KeySet, pending: Pending, last: tuple[float, int]) -> None:
        self.number, self.user = number, user
        self.keys = keys
        self.pending = pending
        self.last = last
        """Where the last of its pending jobs stands in order of submission."""
        self.count = self.units = 0


def fill(cluster: Cluster, records: Iterable[Job | Array]) -> None:
    """Add the records; what has changed is not noted for all, so call ``forget_changes`` afterwards."""
    rows = cluster.jobs.rows
    assert isinstance(rows, JobRows)
    classes: dict[int, _Class] = {}
    for record in records:
        if isinstance(record, Array):
            _end(cluster, classes, record.spec)
            cluster.arrays.put(record.job, record)
            continue
        key = record.key
        known = classes.get(record.spec)
        if known is None or not _add(rows, known, record):
            _end(cluster, classes, record.spec)
            cluster.jobs.put(key, record)
            _begin(cluster, classes, record)
            continue
        known.keys.add(key)
        known.count += 1
        known.units += 1 + len(record.name) // CHARS
    for spec in [*classes]:
        _end(cluster, classes, spec)


def _add(rows: JobRows, known: _Class, job: Job) -> bool:
    """Add a job behind those of its class, with the values that it has in common with the last; False: it is not as they are."""
    submitted = known.last[0]
    if submitted != job.submitted:
        submitted = job.submitted
    if not rows.add_plain(job.key, job, known.number, submitted):
        return False
    order = (submitted, job.key << 32)
    known.pending.add(job.key, known.last < order)
    known.last = order
    return True


def _begin(cluster: Cluster, classes: dict[int, _Class], job: Job) -> None:
    """Jobs that have only been submitted may follow this one, if it is the newest of its class that is pending."""
    pending = cluster.pending.get(job.spec)
    if pending is not None and pending.newest() == job.key:
        user = cluster.specs.rows[job.spec].user
        classes[job.spec] = _Class(job.spec, user, cluster.by_user[user], pending, submission_order(job, job.key))


def _end(cluster: Cluster, classes: dict[int, _Class], number: int) -> None:
    """Add what is still to be added for a class."""
    known = classes.pop(number, None)
    if known is not None and known.count:
        cluster.use.pend(cluster.specs.rows[number], known.count)
        cluster.spec_jobs[number] += known.count
        cluster.records[known.user] += known.units
