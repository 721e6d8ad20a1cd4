"""How many jobs and slots of a user wait, against what MAX_PEND_JOBS and MAX_PEND_SLOTS allow."""

from __future__ import annotations

from typing import NamedTuple

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.usage_index import PEND, PSUSP
from lavad.core.site.limit_book import LimitBook


class Waiting(NamedTuple):
    """Jobs and slots; as a limit None is none."""

    jobs: int | None
    slots: int | None


def pending_limits(cluster: Cluster, user: str) -> Waiting:
    """What may wait of a user: the least that lsb.params and the user's line of lsb.users say."""
    own, params = LimitBook(cluster.conf).section_of(user), cluster.conf.params
    if own is None:
        return Waiting(params.max_pend_jobs, params.max_pend_slots)
    return Waiting(_least(params.max_pend_jobs, own.max_pend_jobs), _least(params.max_pend_slots, own.max_pend_slots))


def _least(*limits: int | None) -> int | None:
    return min((most for most in limits if most is not None), default=None)


def is_over(cluster: Cluster, user: str, limits: Waiting, jobs: int, slots: int) -> bool:
    """Whether so many more would be too many."""
    if limits.jobs is not None and pending_jobs(cluster, user) + jobs > limits.jobs:
        return True
    if limits.slots is None:
        return False
    used = cluster.use.users[user]
    return used[PEND] + used[PSUSP] + slots > limits.slots


def pending_jobs(cluster: Cluster, user: str) -> int:
    """Jobs and elements of a user that wait."""
    return cluster.use.waiting.get(user, 0)
