"""How often a job with ``-k "DIR auto"`` writes checkpoints: by what one costs, and by how often its hosts fail.

The time between checkpoints is Daly's (J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps,
FGCS 22(3), 2006, equation 37), which is Young's sqrt(2 cost M) for small costs; M is the mean time between failures of the job.

The rate at which a host fails is estimated from what was seen of it, shrunk to the rate of all hosts, and that to ``PRIOR``: each
failure changes the estimate by as much as it tells. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.checkpoints import Checkpoints
from lavad.core.job.job import Attempt
from lavad.core.lang.states import HostState
from lavad.core.site.host import Host

DAY = 86400.0
PRIOR = 250 * DAY
"""Seconds of a host for each failure, before any was seen: 419 interruptions of 2,048 hosts in 54 days (A. Dubey et al., The
Llama 3 Herd of Models, 2024, section 3.3.4) are one in 264 days."""
FIRST_COST = 30.0
"""Seconds that a checkpoint is taken to cost before the job has made one."""
LEAST, MOST = 60, 7 * 86400
"""Seconds: no shorter and no longer period is ever set."""
NEWEST = 3
"""Checkpoints whose mean is the cost of the next."""
CHANGE = 0.1
"""A period that differs by less than this part of it stays."""


def best_interval(cost: float, between_failures: float) -> float:
    """Seconds from the beginning of one checkpoint to that of the next which lose least; both arguments in seconds, above 0."""
    if cost >= 2 * between_failures:
        return between_failures + cost
    ratio = cost / (2 * between_failures)
    return sqrt(2 * cost * between_failures) * (1 + sqrt(ratio) / 3 + ratio / 9)


def failure_rate(host: Host, pooled: float, now: float) -> float:
    """Failures a second of a host, shrunk to the rate of all."""
    return (1 + host.failures) / (1 / pooled + up_time(host, now))


def pooled_rate(hosts: Iterable[Host], now: float) -> float:
    """Failures a second of a host, by all hosts and the prior."""
    failures, seconds = 1.0, PRIOR
    for host in hosts:
        failures += host.failures
        seconds += up_time(host, now)
    return failures / seconds


def up_time(host: Host, now: float) -> float:
    """Seconds that a host has been up since it was first seen."""
    return host.up + (max(0.0, now - host.since) if host.state is HostState.OK else 0.0)


def between_failures(cluster: Cluster, names: Iterable[str], now: float) -> float:
    """Mean seconds until one of these hosts fails."""
    rows = cluster.hosts.rows
    pooled = pooled_rate(rows.values(), now)
    return 1 / sum(failure_rate(rows.get(name) or Host(name=name), pooled, now) for name in set(names))


def cost_of(known: Checkpoints | None) -> float:
    """Seconds that the next checkpoint will cost, as the newest did."""
    measured = [one.seconds for one in known.generations if one.seconds > 0] if known is not None else []
    newest = measured[-NEWEST:]
    return sum(newest) / len(newest) if newest else FIRST_COST


def period_of(cluster: Cluster, run: Attempt, known: Checkpoints | None, now: float) -> tuple[int, float, float]:
    """(the period in seconds, the cost of a checkpoint, the mean time between failures of the hosts of this attempt)."""
    cost, mean = cost_of(known), between_failures(cluster, (part.host for part in run.parts), now)
    return min(MOST, max(LEAST, round(best_interval(cost, mean)))), cost, mean


def differs(period: int, before: int) -> bool:
    """Whether a period is worth a change."""
    return abs(period - before) > CHANGE * before
