"""The line of waiting classes: queue priority, user priority, btop/bbot, submission; a class stands by its first job.

Rule: only classes whose pending jobs changed are put in place anew, so that the others cost nothing.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from lavad.core.cluster import Cluster, Pending
from lavad.core.job import Job
from lavad.sched.memory import Known, Memory, Order


def order_of(cluster: Cluster, key: int, queue_priority: int, user_priority: int) -> Order:
    """The place of a pending job, element or array."""
    row = cluster.get(key)
    job = row.key & 0xFFFFFFFF if isinstance(row, Job) else row.job
    return (-queue_priority, -user_priority, row.position, row.submitted, job, key >> 32)


def renew_line(cluster: Cluster, memory: Memory) -> None:
    """Bring the line up to the cluster's pending jobs."""
    known, pending = memory.known, cluster.pending
    for number, jobs in pending.items():
        entry = known.get(number)
        if entry is None:
            entry = known[number] = Known()
        if entry.touched != jobs.touched or entry.pending is not jobs:
            _renew(cluster, memory, number, entry, jobs)
    if len(known) > len(pending):
        for number in [number for number in known if number not in pending]:
            _leave(memory, number, known[number])
            memory.forget(number)


def _leave(memory: Memory, number: int, entry: Known) -> None:
    if entry.head is not None:
        at = bisect_left(memory.line, (entry.head, number))
        del memory.line[at]
        entry.head = None


def _renew(cluster: Cluster, memory: Memory, number: int, entry: Known, jobs: Pending) -> None:
    entry.pending, entry.touched, entry.keys = jobs, jobs.touched, None
    head = order_at(cluster, number, next(iter(keys_in_order(cluster, number, entry))))
    if head != entry.head:
        _leave(memory, number, entry)
        entry.head = head
        insort(memory.line, (head, number))


def order_at(cluster: Cluster, number: int, key: int) -> Order:
    """The place of a job of a class."""
    spec = cluster.specs.rows[number]
    queue = cluster.queue_conf.get(spec.queue)
    return order_of(cluster, key, queue.priority if queue is not None else 0, max(0, spec.priority))


def keys_in_order(cluster: Cluster, number: int, entry: Known) -> Iterator[int]:
    """A class's pending jobs, first to run first."""
    jobs = cluster.pending[number]
    if jobs.ordered:
        return iter(jobs.keys)
    if entry.keys is None:
        entry.keys = sorted(jobs.keys, key=lambda key: order_of(cluster, key, 0, 0))
    return iter(entry.keys)
