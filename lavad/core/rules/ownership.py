"""What each queue deserves of the cluster's slots: WEIGHT, CAPABILITY, GUARANTEE and RECLAIMABLE of lsb.queues.

Rule: slots are dealt out by weight to the queues that ask for them, none more than it asks for or may have; what one does
not ask for is lent to the others, and comes back when it asks. A guarantee is kept even for a queue that asks for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from config.model.queue import QueueConfig
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.usage_index import RSV, RUN, SSUSP, USUSP
from lavad.core.lang.states import HostState
from lavad.core.site.conf import Conf


class Claim(msgspec.Struct, frozen=True):
    """One queue's: the slots it asks for (used and waiting jobs'), and what its configuration says."""

    queue: str
    asked: int
    weight: int = 1
    most: int | None = None
    guarantee: int = 0


def has_owners(conf: Conf) -> bool:
    """Whether any queue owns slots."""
    return any(queue.weight is not None or queue.guarantee for queue in conf.queues)


def deal(total: int, claims: Iterable[Claim]) -> dict[str, int]:
    """Queue to the slots that it deserves; together never more than ``total``, unless guarantees alone are."""
    claims = list(claims)
    deserved = {claim.queue: min(claim.guarantee, _most(claim)) for claim in claims}
    kept = sum(max(0, claim.guarantee - deserved[claim.queue]) for claim in claims)
    left = total - kept - sum(deserved.values())
    open_ = [claim for claim in claims if deserved[claim.queue] < _most(claim)]
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


def total_slots(cluster: Cluster) -> int:
    """Slots of all hosts that take jobs."""
    names = [name for name, host in cluster.hosts.rows.items() if host.state is HostState.OK and not host.closed]
    clients = {name for name, conf in cluster.host_conf.items() if not conf.server}
    return sum(max(0, cluster.slots_of(name)) for name in names if name not in clients)


def has_slots(cluster: Cluster, queue: str) -> int:
    """Slots that a queue's jobs use; preempted jobs use none."""
    column = cluster.use.queues.get(queue)
    return 0 if column is None else column[RUN] + column[SSUSP] + column[USUSP] + column[RSV]


def lent_slots(cluster: Cluster) -> dict[str, int]:
    """Queue to the slots that its preempted jobs have given up."""
    found: dict[str, int] = {}
    for key in cluster.suspended:
        job = cluster.jobs.rows[key]
        if job.preempted_for and not job.preempted_for_good and job.run is not None:
            queue = cluster.specs.rows[job.spec].queue
            found[queue] = found.get(queue, 0) + sum(part.slots for part in job.run.parts)
    return found


def claims(cluster: Cluster, waiting: dict[str, int]) -> list[Claim]:
    """What all queues ask for; ``waiting``: slots of jobs that may start, by queue."""
    return [_claim(cluster, queue, waiting.get(queue.name, 0)) for queue in cluster.conf.queues]


def _claim(cluster: Cluster, queue: QueueConfig, waiting: int) -> Claim:
    asked = has_slots(cluster, queue.name) + waiting  # preempted jobs ask for what they gave up
    weight = 1 if queue.weight is None else queue.weight
    return Claim(queue.name, asked, weight, queue.capability, queue.guarantee)


def waiting_slots(cluster: Cluster, total: int, never: frozenset[int] = frozenset()) -> dict[str, int]:
    """Queue to the slots of its jobs that may start; counted only up to ``total``. ``never``: classes that fit no host."""
    found: dict[str, int] = {}
    arrays = cluster.arrays.rows
    for number, pending in cluster.pending.items():
        spec = cluster.specs.rows[number]
        known = found.get(spec.queue, 0)
        if known >= total or number in never:
            continue
        jobs = sum(len(arrays[key].startable) if key in arrays else 1 for key in pending.keys)
        found[spec.queue] = known + jobs * spec.slots
    return found
