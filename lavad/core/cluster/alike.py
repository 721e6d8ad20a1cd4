"""Many jobs that are alike come into the indexes of a cluster together, or leave them.

Elements of an array are of its class, run, and have the same on one host; separate jobs are of one class, and wait. It is done as
``Cluster`` does with each change of a job, but what depends on the class and the host alone moves once.
"""

from __future__ import annotations

from collections.abc import Sequence

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.job_rows import JobRows, place_of_submitted
from lavad.core.cluster.key_set import KeySet
from lavad.core.cluster.records import CHARS, units_of
from lavad.core.cluster.versioned_table import Pending, submission_order
from lavad.core.job.job import Job


def add_started(cluster: Cluster, jobs: Sequence[Job]) -> None:
    """Elements that had no record start; all were made of one record."""
    spec = cluster.specs.rows[jobs[0].spec]
    rows, changed = cluster.jobs.rows, cluster.jobs.changed
    assert isinstance(rows, JobRows)
    rows.add_elements(jobs)
    cluster.jobs.moves += len(jobs)
    for job in jobs:
        changed.setdefault(job.key, None)
    _count(cluster, jobs, 1)
    started, siblings = cluster.started, cluster.elements.setdefault(jobs[0].key & 0xFFFFFFFF, {})
    keys = cluster.by_user.setdefault(spec.user, KeySet())
    for job in jobs:
        started[job.key] = siblings[job.key] = None
        keys.add(job.key)


def drop_started(cluster: Cluster, jobs: Sequence[Job]) -> None:
    """Elements that run leave; the array itself is still there."""
    for job in jobs:
        cluster.jobs.drop_unindexed(job.key, job)
    _count(cluster, jobs, -1)
    started, siblings = cluster.started, cluster.elements[jobs[0].key & 0xFFFFFFFF]
    keys = cluster.by_user[cluster.specs.rows[jobs[0].spec].user]
    for job in jobs:
        del started[job.key], siblings[job.key]
        keys.discard(job.key)
    if not siblings:
        del cluster.elements[jobs[0].key & 0xFFFFFFFF]


def add_submitted(cluster: Cluster, number: int, jobs: Sequence[tuple[int, str, float]]) -> None:
    """Separate jobs that were submitted, and nothing else: key, name and time of each, none of whose keys is there."""
    spec = cluster.specs.rows[number]
    if number not in cluster.spec_jobs:
        cluster.count_class(number, 1)
    cluster.spec_jobs[number] = cluster.spec_jobs.get(number, 0) + len(jobs)
    cluster.idle_specs.pop(number, None)
    cluster.count_units(spec.user, sum([1 + len(name) // CHARS for _, name, _ in jobs]))
    cluster.use.pend(spec, len(jobs))
    keys = cluster.by_user.setdefault(spec.user, KeySet())
    pending = cluster.pending.get(number)
    rows, changed = cluster.jobs.rows, cluster.jobs.changed
    assert isinstance(rows, JobRows)
    last = 0.0, 0
    if pending is None:
        pending = cluster.pending[number] = Pending()
    else:
        newest = pending.newest()
        last = place_of_submitted(rows, newest) or submission_order(cluster.get(newest), newest)
    for key, name, submitted in jobs:
        changed.setdefault(key, None)
        rows.add_submitted(key, name, number, submitted)
        keys.add(key)
        place = submitted, key << 32
        pending.add(key, last < place)
        last = place
        _tell(cluster, key, None, name)


def start_separate(cluster: Cluster, jobs: Sequence[Job]) -> None:
    """Separate jobs that had only been submitted start; they keep their names."""
    number = jobs[0].spec
    spec = cluster.specs.rows[number]
    pending, started = cluster.pending[number], cluster.started
    for job in jobs:
        cluster.jobs.put_unindexed(job.key, job)
        pending.discard(job.key)
        started[job.key] = None
        _tell(cluster, job.key, job.name, job.name)
    if not pending:
        del cluster.pending[number]
    cluster.use.pend(spec, -len(jobs))
    cluster.use.alike(jobs, spec, 1)
    cluster.accounts.add_all([job.run for job in jobs if job.run is not None], spec, 1)


def drop_separate(cluster: Cluster, jobs: Sequence[Job]) -> None:
    """Separate jobs that run leave."""
    number = jobs[0].spec
    user = cluster.specs.rows[number].user
    keys, started = cluster.by_user[user], cluster.started
    for job in jobs:
        cluster.jobs.drop_unindexed(job.key, job)
        keys.discard(job.key)
        del started[job.key]
        _tell(cluster, job.key, job.name, None)
    if not keys:
        del cluster.by_user[user]
    _count(cluster, jobs, -1)
    if not cluster.spec_jobs[number]:
        cluster.forget_class(number)


def _tell(cluster: Cluster, key: int, old: str | None, new: str | None) -> None:
    """What conditions ask about a job has changed: its name before and after."""
    if cluster.conditions.named or cluster.names.rows is not None:
        cluster.names.moved(key, old, new)
        cluster.conditions.job_changed(key)


def _count(cluster: Cluster, jobs: Sequence[Job], sign: int) -> None:
    number = jobs[0].spec
    spec = cluster.specs.rows[number]
    cluster.spec_jobs[number] += sign * len(jobs)
    cluster.count_units(spec.user, sign * sum(map(units_of, jobs)))
    cluster.use.alike(jobs, spec, sign)
    cluster.accounts.add_all([job.run for job in jobs if job.run is not None], spec, sign)
