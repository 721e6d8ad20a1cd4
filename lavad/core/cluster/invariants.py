"""Invariants of every cluster state, checked by tests, by the simulator, by ``lava db`` and after a fold that failed midway.

Rule: it changes nothing, and raises at the first violation. The cost grows with the number of live jobs, so the engine does not
call it in a batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.gpu_book import EXCLUSIVE_GPU, gpu_weight
from lavad.core.job.depend import Depend
from lavad.core.job.job import Array, Job
from lavad.core.lang.ids import index_of, job_of, show
from lavad.core.lang.states import FINAL, OVER, STARTED, WAITING

K = TypeVar("K")


class BrokenInvariant(AssertionError):
    """The message names the link that is broken."""


def check_invariants(cluster: Cluster) -> None:
    """Raise ``BrokenInvariant`` unless records, indexes and hosts agree."""
    for key, job in cluster.jobs.rows.items():
        _check_job(cluster, key, job)
    for number, array in cluster.arrays.rows.items():
        _check_array(cluster, number, array)
    _check_specs(cluster)
    _check_indexes(cluster)
    _check_hosts(cluster)
    _check_counters(cluster)


def _require(true: bool, link: str) -> None:
    if not true:
        raise BrokenInvariant(link)


def _check_job(cluster: Cluster, key: int, job: Job) -> None:
    name = f"job {show(key)}"
    _require(job.key == key, f"{name} is filed under another key than its own {show(job.key)}")
    _require(job.state not in FINAL, f"{name} is {job.state.name} and still live")
    _require(job.spec in cluster.specs.rows, f"{name} has spec {job.spec}, which is not there")
    _require(not job.blocked or (job.depend is not None and job.run is None), f"{name} waits for no condition")
    if job.state in WAITING:
        _require(job.run is None, f"{name} is {job.state.name} and has an attempt")
    else:
        _check_attempt(name, job)
    if index_of(key):
        _check_element(cluster, name, key)
    else:
        _require(key not in cluster.arrays.rows, f"{name} is a job and an array")


def _check_attempt(name: str, job: Job) -> None:
    run = job.run
    if run is None:
        raise BrokenInvariant(f"{name} is {job.state.name} and has no attempt")
    _require(job.state in STARTED, f"{name} has an attempt in state {job.state.name}")
    _require(run.number == job.attempt, f"{name} runs attempt {run.number}, its newest is {job.attempt}")
    _require(bool(run.parts), f"{name} runs on no host")
    hosts = [part.host for part in run.parts]
    _require(len(set(hosts)) == len(hosts), f"{name} has two parts on one host: {hosts}")
    numbers = [pending.number for pending in run.pending_signals]
    _require(len(set(numbers)) == len(numbers), f"{name} has two pending_signals of one number: {numbers}")


def _check_element(cluster: Cluster, name: str, key: int) -> None:
    array = cluster.arrays.rows.get(job_of(key))
    if array is None:
        raise BrokenInvariant(f"{name} has no array")
    index = index_of(key)
    _require(index in array.indices, f"{name} is not one of its array's indices")
    _require(index not in array.pending and index not in array.held, f"{name} is touched and untouched")


def _check_array(cluster: Cluster, number: int, array: Array) -> None:
    name = f"array {number}"
    _require(array.job == number, f"{name} is filed under another id than its own {array.job}")
    _require(array.spec in cluster.specs.rows, f"{name} has spec {array.spec}, which is not there")
    _require(not array.pending.intersect(array.held), f"{name} has elements both pending and held")
    for ranges, what in ((array.pending, "pending"), (array.held, "held")):
        _require(not ranges.minus(array.indices), f"{name} has {what} elements that it was not submitted with")
    _require(not array.waiting.minus(array.pending.union(array.held)), f"{name} has others waiting than untouched elements")
    _require(not array.never.minus(array.waiting), f"{name} has elements that can never start and do not wait")
    touched = len(cluster.elements.get(number, ()))
    untouched = len(array.pending) + len(array.held)
    _require(touched + untouched > 0, f"{name} has no live element")
    known = touched + untouched + array.done + array.exited
    _require(known == len(array.indices), f"{name} has {len(array.indices)} elements and accounts for {known}")


def _check_specs(cluster: Cluster) -> None:
    for spec, number in cluster.spec_numbers.items():
        _require(cluster.specs.rows.get(number) == spec, f"spec {number} is indexed as another than it is")
    for number in cluster.idle_specs:
        _require(number in cluster.specs.rows, f"spec {number} is idle and not there")
        _require(number not in cluster.spec_jobs, f"spec {number} is idle and has live jobs")


def _waiting(cluster: Cluster) -> dict[int, set[int]]:
    return {number: set(pending) for number, pending in cluster.pending.items()}


def _check_indexes(cluster: Cluster) -> None:
    """Compare with a cluster built from the rows."""
    fresh = Cluster()
    fresh.specs.rows = cluster.specs.rows
    for array in cluster.arrays.rows.values():
        fresh.arrays.put(array.job, array)
    for job in cluster.jobs.rows.values():
        fresh.jobs.put(job.key, job)
    for group in cluster.groups.rows.values():
        fresh.groups.put(group.name, group)
    counted = ("elements", "spec_jobs", "copy_sources", "timed", "by_user", "records", "groups_of")
    for name in (*counted, "started", "suspended", "promised", "held_back"):
        _require_same(name, getattr(cluster, name), getattr(fresh, name))
    _require_same("pending", _waiting(cluster), _waiting(fresh))
    sums = ("queues", "users", "pairs", "waiting", "queue_waiting", "queue_gpus")
    for name in (*sums, "array_running", "group_running", "decaying"):
        _require_same(f"use.{name}", _nonzero(getattr(cluster.use, name)), _nonzero(getattr(fresh.use, name)))
    for name in ("elastic", "copies"):
        _require_same(f"use.{name}", getattr(cluster.use, name), getattr(fresh.use, name))
    _require_same("conditions", _waiters(cluster), _waiters(fresh))
    _require_same("conditions.orphans", cluster.conditions.orphans, fresh.conditions.orphans)
    _require_same("accounts", cluster.accounts.rows, fresh.accounts.rows)
    _require_same("use.hosts", _host_use(cluster), _host_use(fresh))
    for number, pending in cluster.pending.items():
        _require(bool(pending), f"spec {number} has an empty entry in pending")


def _waiters(cluster: Cluster) -> dict[Depend, list[int]]:
    return {depend: sorted(condition.waiters) for depend, condition in cluster.conditions.rows.items()}


def _nonzero(sums: Mapping[K, object]) -> dict[K, object]:
    return {key: value for key, value in sums.items() if (any(value) if isinstance(value, list) else value)}


def _host_use(cluster: Cluster) -> dict[str, tuple[object, ...]]:
    return {
        name: (
            use.slots,
            use.exclusive,
            use.jobs,
            use.held,
            {k: round(v, 6) for k, v in use.reserved.items()},
            use.gpus.jobs,
            use.gpus.mem,
            use.cpus,
        )
        for name, use in cluster.use.hosts.items()
        if use.slots or use.exclusive or use.jobs or use.reserved or use.gpus.jobs or use.cpus
    }


def _require_same(name: str, is_now: Mapping[K, object], should_be: Mapping[K, object]) -> None:
    if is_now == should_be:
        return
    for key in [*is_now, *should_be]:
        one, other = is_now.get(key, "nothing"), should_be.get(key, "nothing")
        if one != other:
            raise BrokenInvariant(f"index {name} is not what the rows give: {key}: {one}, not {other}")


def _check_hosts(cluster: Cluster) -> None:
    """No CPU is bound to two jobs, and no GPU that a job has for itself is another's.

    Slots, and memory of GPUs, are not among it: of what is in use there may be more than there is, once somebody has given the
    host fewer slots, or it has come back with fewer CPUs.
    """
    gpus: Counter[tuple[str, str]] = Counter()
    for job in cluster.jobs.rows.values():
        if job.run is None:
            continue
        weight = gpu_weight(cluster.specs.rows[job.spec])
        for part in job.run.parts:
            if part.state not in OVER:
                gpus.update({(part.host, gpu): weight for gpu in part.gpus})
    for host, use in cluster.use.hosts.items():
        twice = [cpu for cpu, count in use.cpus.items() if count > 1]
        _require(not twice, f"CPUs {twice} of host {host} are given to several jobs")
    for (host, gpu), taken in gpus.items():
        _require(taken <= EXCLUSIVE_GPU, f"GPU {gpu} of host {host} is exclusive to one job and has another")


def _check_counters(cluster: Cluster) -> None:
    newest = max(cluster.specs.rows, default=0)
    _require(cluster.next_spec > newest, f"next spec is {cluster.next_spec}, but there is spec {newest}")
    for name, host in cluster.hosts.rows.items():
        _require(host.name == name, f"host {host.name} is filed under {name}")
    for name, queue in cluster.queues.rows.items():
        _require(queue.name == name, f"queue {queue.name} is filed under {name}")
