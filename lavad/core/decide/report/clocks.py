"""Moments that a host reports, on the master's clock: charges, priorities and run times are differences of both clocks.

Rule: what lies between the dispatch and the report is believed. What does not is of a host whose clock is set otherwise, and
counts from the moment at which the report came; where the clock is a little behind, as clocks are, from the dispatch, as the
report may have come late.
"""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core.job.job import Attempt, End

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
