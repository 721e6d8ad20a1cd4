"""Until when jobs may run on hosts that are not heard: what this master has granted, and when it may give a host's jobs up.

Rule: knows no clock. Every time is given, in seconds of CLOCK_BOOTTIME: it counts while the machine sleeps, and nobody sets it.

Why no job runs twice. An attempt has a lease of L seconds. All times in these lines are of one true clock:

* A shepherd ends its leased part at s + L, for the newest moment s at which its host sent a heartbeat (or greeting) that a
  master answered.
* A master answers at a moment t only while t < a + M: a is the moment before it asked the database for its own lease the
  last time that it got it, M that lease's length. The database counts M from a later moment, so that another master takes
  over at T >= a + M. So s < t < T for whatever an earlier master answered.
* A master gives a part up at F > max(t, T) + L + margin: t is its own last answer to the host, T when it took over.

So F > s + L + margin, whoever answered. Within the margin the part must be gone: KILL_TIME is what its shepherd, or the
starter where that is frozen, needs from the deadline on. Beside that the margin covers M once: the clock of a database that
is set forwards ends a lease early, by M at most, while the former master goes on answering.

A host that the site has fenced (LAVA_FENCE) is off, and needs no waiting.

    margin >= M + KILL_TIME     (config.model.params.least_margin; refused otherwise when the files are read)

The lease of an attempt stays what it was at its dispatch, so that no change of configuration shortens it behind its host's
back. An extension (badmin lease extend) ends at E for all: shepherds then wait until max(s + L, E), masters until
max(t + L, T + L, E) + margin.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.control.hosts import leased_parts
from lavad.core.lang.states import HostState


class Findings(NamedTuple):
    """What is to be decided about hosts now."""

    silent: list[tuple[str, float]]
    """Hosts that were up and are not heard, with the seconds since they were."""
    expired: list[tuple[str, list[int]]]
    """Silent hosts, with the keys of the jobs whose leases there and margins have passed."""


class Leases:
    """What one master in office has heard and answered. A new master knows of none: it counts from its take-over."""

    def __init__(self, taken_over: float, held_until: float = math.inf) -> None:
        self._taken_over = taken_over
        self._held_until = held_until
        """Until when this is certainly the only master; infinite where nobody else can use the store."""
        self._extended = 0.0
        self._looked = taken_over
        self._heard: dict[str, float] = {}
        self._answered: dict[str, float] = {}
        self._off: set[str] = set()
        """Hosts that were fenced and have not been heard since."""

    def held(self, until: float) -> None:
        """The masters' lease was renewed: it lasts until then, counted from before the database was asked."""
        self._held_until = max(self._held_until, until)

    def is_certain(self, now: float) -> bool:
        """Whether no other master can be in office."""
        return now < self._held_until

    def heard(self, host: str, now: float) -> None:
        """A message of the host has come."""
        self._heard[host] = now
        self._off.discard(host)

    def is_off(self, host: str, since: float) -> None:
        """The site says that nothing runs on the host, as of ``since``: its leases are over, unless it was heard later."""
        if self._heard.get(host, 0.0) < since:
            self._off.add(host)

    def to_fence(self, cluster: Cluster) -> list[str]:
        """Silent hosts with leased jobs of which it is not known that they are off; none if most hosts are silent."""
        silent = [name for name, host in cluster.hosts.rows.items() if host.state is not HostState.OK and host.joined]
        joined = sum(bool(host.joined) for host in cluster.hosts.rows.values())
        if joined >= 3 and 2 * len(silent) > joined:
            return []
        return [name for name in silent if name not in self._off and any(leased_parts(cluster, name))]

    def silence(self, host: str, now: float) -> float:
        """Seconds since the host was heard, at most those since the take-over."""
        return now - max(self._heard.get(host, 0.0), self._taken_over)

    def answer(self, host: str, now: float) -> bool:
        """Note that the host's greeting or heartbeat is answered now; False: it must not be, as another may be master."""
        if not self.is_certain(now):
            return False
        self._answered[host] = now
        return True

    def forget(self, host: str) -> None:
        """The host has left the cluster, and nothing of any job is there."""
        self._heard.pop(host, None)
        self._answered.pop(host, None)
        self._off.discard(host)

    def extend(self, now: float, seconds: float) -> None:
        """No lease ends, and no host is given up, before so many seconds have passed."""
        self._extended = max(self._extended, now + seconds)

    def extended_for(self, now: float) -> float:
        """The seconds that are left of an extension; 0.0: there is none."""
        return max(0.0, self._extended - now)

    def look(self, cluster: Cluster, now: float) -> Findings:
        """Hosts that have become silent, and the leases on silent hosts that have passed; to be called every second or so.

        A master that was stopped itself, or slept, has not heard what was said meanwhile, and the shepherds of a machine that
        slept with it have yet to look at their clocks: it counts from now, as one that has taken over.
        """
        timeout = cluster.conf.params.lava_host_timeout
        if now - self._looked > timeout / 2:
            self._taken_over = now
        self._looked = now
        findings = Findings([], [])
        for name, host in cluster.hosts.rows.items():
            if host.state is not HostState.OK:
                if keys := list(self._passed(cluster, name, now)):
                    findings.expired.append((name, keys))
            elif (seconds := self.silence(name, now)) > timeout:
                findings.silent.append((name, seconds))
        return findings

    def lasting(self, cluster: Cluster, host: str, now: float) -> list[int]:
        """The keys of the jobs whose leases on the host, with their margins, have not passed: they may run there."""
        passed = set(self._passed(cluster, host, now))
        return [key for key, _, _ in leased_parts(cluster, host) if key not in passed]

    def _passed(self, cluster: Cluster, host: str, now: float) -> Iterator[int]:
        answered = max(self._answered.get(host, 0.0), self._taken_over)
        for key, lease, margin in leased_parts(cluster, host):
            if host in self._off or now > max(answered + lease, self._extended) + margin:
                yield key
