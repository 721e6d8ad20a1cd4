"""How long jobs of a service class with goals in time have taken: what is expected of the next, where they do not say it."""

from __future__ import annotations

import msgspec

NEWEST = 50
"""A job counts about as much as so many others: what ran long ago is forgotten."""


class Pace(msgspec.Struct, frozen=True, gc=False):
    """Of a service class: the mean time from dispatch to end, in seconds, of ``jobs`` (at most NEWEST) that nobody ended."""

    name: str
    jobs: int
    seconds: float


def with_job(known: Pace | None, name: str, seconds: float) -> Pace:
    """One job more has taken so long."""
    jobs, mean = (known.jobs, known.seconds) if known is not None else (0, 0.0)
    jobs = min(jobs + 1, NEWEST)
    return Pace(name, jobs, mean + (seconds - mean) / jobs)
