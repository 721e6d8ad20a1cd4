"""Guaranteed pools of a world of the scheduler's tests."""

from __future__ import annotations

from lavad.core.rules.guarantees.pools import PoolUse, members_of, ready_hosts, standing_of, uses_on
from lavad.core.rules.ledger import Ledger
from lavad.core.site.service_classes import ServiceClasses
from tests.support.worlds.world import World


def use_of(world: World, at: int = 0) -> PoolUse:
    """A pool as it is between two cycles."""
    cluster = world.cluster
    pool, classes, ledger = cluster.conf.pools[at], ServiceClasses(cluster.conf), Ledger(cluster)
    hosts = ready_hosts(cluster, members_of(cluster, pool), world.now)
    return PoolUse(pool, ledger, {host: standing_of(pool, ledger, host, uses_on(cluster, host, classes)) for host in hosts})
