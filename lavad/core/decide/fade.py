"""Reservations that end, or shrink, before their job does (rusage[duration=,decay=])."""

from __future__ import annotations

from lavad.core.cluster import Cluster
from lavad.core.decide.decided import Decided
from lavad.core.events import Event, ReservationFaded


def fade(cluster: Cluster, now: float) -> Decided:
    """One event for each job of which less is reserved from now on."""
    rows = cluster.jobs.rows
    due = [key for key, at in cluster.use.fading.items() if at <= now]
    events: list[Event] = [ReservationFaded(at=now, key=key, attempt=rows[key].attempt) for key in due]
    return Decided(events=events)
