"""Moments that a host reports, on the master's clock: charges, priorities and run times are differences of both clocks.

Rule: what lies between the dispatch and the report is believed. What does not is of a host whose clock is set otherwise, and
counts from the moment at which the report came; where the clock is a little behind, as clocks are, from the dispatch, as the
report may have come late.
"""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Attempt, End
from lavad.core.lang.states import HostState

NEAR = 5.0
"""Seconds."""


def begin(run: Attempt, started: float, now: float) -> float:
    """When a part has begun."""
    if started < run.dispatched <= started + NEAR:
        return run.dispatched
    return started if run.dispatched <= started <= now else now


def end_in_time(run: Attempt, end: End, now: float) -> End:
    """The end of a part; how long it ran is believed, as far as it fits. One that says no time stays as it is."""
    if not end.at or (run.dispatched <= end.at <= now and (not end.started or run.dispatched <= end.started <= end.at)):
        return end
    began_before = end.started and end.started + NEAR < run.dispatched  # it ended later than its host says, then
    at = end.at if run.dispatched <= end.at <= now and not began_before else now
    ran = max(0.0, end.at - end.started)
    # a master that has taken over may be behind the one that has dispatched it
    return replace(end, at=at, started=min(at, max(run.dispatched, at - ran)) if end.started else 0.0)


def ended_unheard(cluster: Cluster, run: Attempt, only: End | None, now: float) -> float:
    """When an attempt was over that ended while nobody heard its host: no master ran, or the host was away. 0.0: at its report.

    ``only``: the end of its only part, where that has no event of its own. What a host says of how long it ran is believed.
    """
    last, heard = 0.0, cluster.master_since
    for part in run.parts:
        end = part.end or only
        if end is None or end.lost or not end.at:
            return 0.0
        began = run.started if run.started and end.started else 0.0
        last = max(last, began + end.at - end.started if began else end.at)
        host = cluster.hosts.rows.get(part.host)
        if host is not None and host.state is HostState.OK:
            heard = max(heard, host.since)
    return last if run.dispatched <= last < heard <= now else 0.0
