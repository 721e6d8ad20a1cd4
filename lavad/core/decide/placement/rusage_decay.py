"""Reservations that end, or shrink, before their job does (rusage[duration=,decay=])."""

from __future__ import annotations

from itertools import islice

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.events import Event, ReservationFaded

MOST = 5_000
"""Jobs of one turn of the engine; the others follow in the next."""


def fade(cluster: Cluster, now: float) -> Decided:
    """One event for each job of which less is reserved from now on."""
    rows = cluster.jobs.rows
    due = list(islice((key for key, at in cluster.use.fading.items() if at <= now), MOST))
    events: list[Event] = [ReservationFaded(at=now, key=key, attempt=rows[key].attempt) for key in due]
    return Decided(events=events)
