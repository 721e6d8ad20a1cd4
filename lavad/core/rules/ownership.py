"""What each queue deserves of the cluster's slots and GPUs: WEIGHT, CAPABILITY, GUARANTEE and RECLAIMABLE of lsb.queues.

Rule: slots are dealt out by weight to the queues that ask for them, none more than it asks for or may have; what one does
not ask for is lent to the others, and comes back when it asks. A guarantee is the least that a queue deserves, not a part
beside that by its weight (as in Volcano), and is kept even for a queue that asks for nothing.
GPUs are dealt out in the same way, by terms of their own; a GPU that jobs share counts for each of them, a MIG instance as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from config.model.queue import QueueConfig
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.gpu_book import GpuBook
from lavad.core.cluster.usage_index import RSV, RUN, SSUSP, USUSP
from lavad.core.job.job import Part, Placed
from lavad.core.job.spec import Spec
from lavad.core.lang.states import HostState
from lavad.core.rules.gpu_counts import gpus_asked, most_gpus_asked
from lavad.core.rules.ledger import Ledger
from lavad.core.site.conf import Conf
from lavad.core.site.host import Host


class Claim(msgspec.Struct, frozen=True):
    """One queue's: the slots or GPUs it asks for (used and waiting jobs'), and what its configuration says."""

    queue: str
    asked: int
    weight: int = 1
    most: int | None = None
    guarantee: int = 0


def deal(total: int, claims: Iterable[Claim]) -> dict[str, int]:
    """Queue to the slots (or GPUs) that it deserves; together never more than ``total``, unless guarantees alone are."""
    open_ = list(claims)
    left = total - sum(max(0, claim.guarantee - _least(claim)) for claim in open_)
    deserved: dict[str, int] = {}
    while True:
        dealt = _by_weight(left, open_)
        short = {claim.queue: _least(claim) for claim in open_ if dealt[claim.queue] < _least(claim)}
        if not short:
            return deserved | dealt
        # what they have more than by weight, the others have less, who may then come to stand on their guarantees
        deserved |= short
        left -= sum(short.values())
        open_ = [claim for claim in open_ if claim.queue not in short]


def _by_weight(left: int, claims: list[Claim]) -> dict[str, int]:
    deserved = {claim.queue: 0 for claim in claims}
    open_ = [claim for claim in claims if _most(claim)]
    while left > 0 and open_:
        weights = sum(claim.weight for claim in open_)
        round_ = left
        for claim in sorted(open_, key=lambda claim: (-claim.weight, claim.queue)):
            given = min(max(1, round_ * claim.weight // weights), _most(claim) - deserved[claim.queue], left)
            deserved[claim.queue] += given
            left -= given
        open_ = [claim for claim in open_ if deserved[claim.queue] < _most(claim)]
    return deserved


def _most(claim: Claim) -> int:
    return claim.asked if claim.most is None else min(claim.asked, claim.most)


def _least(claim: Claim) -> int:
    return min(claim.guarantee, _most(claim))


def _slots(cluster: Cluster) -> int:
    return sum(max(0, cluster.slots_of(name)) for name in _hosts(cluster))


def _gpus(cluster: Cluster) -> int:
    return sum(len(devices(cluster.hosts.rows[name])) for name in _hosts(cluster))


def devices(host: Host) -> list[str]:
    """UUIDs of the GPUs and MIG instances of a host that jobs may get."""
    closed = host.closed_devices()
    return [gpu.uuid for gpu in host.facts.gpus if not gpu.split and gpu.uuid not in closed]


def idle_gpus(ledger: Ledger, name: str) -> int:
    """How many of a host's GPUs no job has, and none is held for a waiting one."""
    use = ledger.cluster.use.hosts.get(name)
    if name in ledger.hosts or (use is not None and use.held):
        book = ledger.host(name).gpu_book
    else:
        book = use.gpus if use is not None else GpuBook()
    return sum(uuid not in book.jobs for uuid in devices(ledger.cluster.hosts.rows[name]))


def gpu_hosts(cluster: Cluster) -> list[str]:
    """Hosts with GPUs that take jobs."""
    return [name for name in _hosts(cluster) if cluster.hosts.rows[name].facts.gpus]


def _hosts(cluster: Cluster) -> list[str]:
    """The hosts that take jobs."""
    names = [name for name, host in cluster.hosts.rows.items() if host.state is HostState.OK and not host.closed]
    clients = {name for name, conf in cluster.host_conf.items() if not conf.server}
    return [name for name in names if name not in clients]


def _has_slots(cluster: Cluster, queue: str) -> int:
    column = cluster.use.queues.get(queue)
    return 0 if column is None else column[RUN] + column[SSUSP] + column[USUSP] + column[RSV]


def _has_gpus(cluster: Cluster, queue: str) -> int:
    return cluster.use.queue_gpus.get(queue, 0)


class Resource(NamedTuple):
    """What queues may own parts of. ``total``: of all hosts that take jobs; ``has``: of a queue's jobs, preempted or not."""

    name: str
    total: Callable[[Cluster], int]
    has: Callable[[Cluster, str], int]
    on_ledger: Callable[[Ledger, str], int]
    of_spec: Callable[[Spec], int]
    """What a job asks for at least."""
    most_of_spec: Callable[[Spec], int]
    of_part: Callable[[Part | Placed], int]
    terms: Callable[[QueueConfig], tuple[int | None, int | None, int]]
    """WEIGHT, CAPABILITY and GUARANTEE."""


SLOTS = Resource(
    "slots",
    _slots,
    _has_slots,
    Ledger.queue_slots,
    lambda spec: spec.slots,
    lambda spec: max(spec.slots, spec.max_slots),
    lambda part: part.slots,
    lambda queue: (queue.weight, queue.capability, queue.guarantee),
)
GPUS = Resource(
    "GPUs",
    _gpus,
    _has_gpus,
    Ledger.queue_gpus,
    gpus_asked,
    most_gpus_asked,
    lambda part: len(part.gpus),
    lambda queue: (queue.gpu_weight, queue.gpu_capability, queue.gpu_guarantee),
)


def owned(conf: Conf) -> tuple[Resource, ...]:
    """What queues own parts of: by a weight or a guarantee of any of them."""
    terms = {what.name: map(what.terms, conf.queues) for what in (SLOTS, GPUS)}
    return tuple(what for what in (SLOTS, GPUS) if any(weight is not None or kept for weight, _, kept in terms[what.name]))


def given_up(cluster: Cluster, what: Resource) -> dict[str, int]:
    """Queue to what its preempted jobs have given up, or will when they are gone: a suspended one slots, but no GPU."""
    found: dict[str, int] = {}
    for key in cluster.suspended:
        job = cluster.jobs.rows[key]
        if job.preempted_for and job.run is not None and job.preempted_for_good == (what is GPUS):
            queue = cluster.specs.rows[job.spec].queue
            found[queue] = found.get(queue, 0) + sum(map(what.of_part, job.run.parts))
    return found


def claims(cluster: Cluster, what: Resource, waiting: dict[str, int]) -> list[Claim]:
    """What all queues ask for; ``waiting``: slots or GPUs of jobs that may start, by queue."""
    return [_claim(cluster, what, queue, waiting.get(queue.name, 0)) for queue in cluster.conf.queues]


def _claim(cluster: Cluster, what: Resource, queue: QueueConfig, waiting: int) -> Claim:
    asked = what.has(cluster, queue.name) + waiting  # preempted jobs ask for what they gave up
    weight, most, kept = what.terms(queue)
    return Claim(queue.name, asked, 1 if weight is None else weight, most, kept)


def waiting(cluster: Cluster, what: Resource, total: int, never: frozenset[int] = frozenset()) -> dict[str, int]:
    """Queue to what its jobs that may start ask for at most, up to ``total``; what is held for them already they have.

    ``never``: classes that fit no host.
    """
    found = {queue: -held for queue, held in _held(cluster, what).items()}
    arrays = cluster.arrays.rows
    for number, pending in cluster.pending.items():
        spec = cluster.specs.rows[number]
        known = found.get(spec.queue, 0)
        if known >= total or number in never:
            continue
        each = what.most_of_spec(spec)
        if each:
            jobs = sum(len(arrays[key].startable) if key in arrays else 1 for key in pending)
            found[spec.queue] = known + jobs * each
    return found


def _held(cluster: Cluster, what: Resource) -> dict[str, int]:
    found: dict[str, int] = {}
    for key in cluster.promised:
        job = cluster.jobs.rows[key]
        queue = cluster.specs.rows[job.spec].queue
        found[queue] = found.get(queue, 0) + sum(map(what.of_part, job.promised))
    return found
