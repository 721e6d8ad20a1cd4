"""What the scheduler keeps of guaranteed resource pools between cycles: their hosts, and what jobs have on these."""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.rules.guarantees.pools import Standing, members_of, standing_of, uses_on
from lavad.core.rules.ledger import Ledger
from lavad.core.site.conf import Conf
from lavad.core.site.service_classes import ServiceClasses


class PoolCache:
    """What was made from one configuration."""

    def __init__(self, conf: Conf) -> None:
        self.classes = ServiceClasses(conf)
        self.seen: tuple[object, ...] = ()
        """What of each pool was kept for whom in the cycle before."""
        self._members: tuple[int, list[tuple[str, ...]]] = (-1, [])
        """As of which state of the hosts, the hosts of each pool."""
        self._hosts: dict[str, tuple[object, int, list[Standing | None]]] = {}
        """Host to its record and the ``touched`` of its use, and how it stands in each pool as of these."""

    def members(self, cluster: Cluster, state_seen: int) -> list[tuple[str, ...]]:
        """The hosts of each pool, whatever their state; ``state_seen``: as of ``SchedulerCache``."""
        if self._members[0] != state_seen:
            self._members = state_seen, [members_of(cluster, pool) for pool in cluster.conf.pools]
        return self._members[1]

    def standing(self, ledger: Ledger, at: int, host: str) -> Standing:
        """How a host stands in the ``at``-th pool as a cycle begins."""
        cluster = ledger.cluster
        record, use = cluster.hosts.rows[host], cluster.use.hosts.get(host)
        touched = -1 if use is None else use.touched
        known = self._hosts.get(host)
        if known is None or known[0] is not record or known[1] != touched:
            known = self._hosts[host] = record, touched, [None] * len(cluster.conf.pools)
        found = known[2][at]
        if found is None:
            found = known[2][at] = standing_of(cluster.conf.pools[at], ledger, host, uses_on(cluster, host, self.classes))
        return found
