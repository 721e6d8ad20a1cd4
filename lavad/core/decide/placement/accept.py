"""A plan becomes true, and what it was decided on becomes part of the history."""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.plan.cycle_record import RecordedCycle
from lavad.core.plan.plan import Plan
from lavad.core.site.limit_book import LimitBook


def accepted(cluster: Cluster, plan: Plan, now: float, seed: str, book: LimitBook) -> Decided:
    """As ``accept_plan``; the answer says whether the plan's record is kept with the events."""
    events = accept_plan(cluster, plan, now, seed, book)
    recorded = plan.recorded
    if not events or recorded is None:
        return Decided(events=events)
    cycle = RecordedCycle(
        version=plan.version,
        first=cluster.version + 1,
        count=len(events),
        at=now,
        seed=seed,
        anew=recorded.anew,
        data=recorded.data,
    )
    return Decided(events=events, cycles=[cycle], answer={"kept": True})
