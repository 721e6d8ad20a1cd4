"""Dependency conditions that something has stirred: which waiting jobs may start now, and which never can.

Rule: only what is stirred is looked at; the events of a look are applied before the next.
"""

from __future__ import annotations

from datetime import datetime

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.conditions import Condition
from lavad.core.job.depend import BLOCKED, MET, NEVER, Depend
from lavad.core.job.job import Array, Job
from lavad.core.lang.dependency import Answer
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState, TermReason
from lavad.core.lang.windows import Local
from lavad.core.rules.dependency_eval import by_element, elements_met, evaluate


def local_of(at: datetime) -> Local:
    """What ``settle`` takes of a local time."""
    return (at.weekday() + 1) % 7, at.hour * 3600 + at.minute * 60 + at.second


def settle(cluster: Cluster, now: float, local: Local, most: int) -> list[ev.Event]:
    """Judge what is stirred; about ``most`` events, the rest stays stirred. Call again once they are applied."""
    events: list[ev.Event] = []
    conditions = cluster.conditions
    while conditions.stirred and len(events) < most:
        condition, changed = conditions.stirred.popitem()
        if condition.depend not in conditions.rows:
            continue
        if by_element(condition.depend):
            events += _settle_elements(cluster, condition, now, local)
            continue
        answer = evaluate(cluster, condition.depend, local, condition, changed)
        told = _tell(cluster, condition, _stands(answer), now, most - len(events))
        events += told
        if len(told) >= most:
            conditions.stirred[condition] = set()
            break
    return events


def _stands(answer: Answer) -> int:
    return NEVER if answer is None else MET if answer else BLOCKED


def _tell(cluster: Cluster, condition: Condition, stands: int, now: float, most: int) -> list[ev.Event]:
    """Of many waiters only those that are new are looked at, where the others know already how it stands."""
    events: list[ev.Event] = []
    for key in condition.untold if stands == condition.told else condition.waiters:
        if len(events) >= most:
            cluster.conditions.stirred[condition] = set()
            return events
        events += _judged(cluster, key, condition.depend, stands, None, now)
    condition.told = stands
    condition.untold.clear()
    return events


def _judged(cluster: Cluster, key: int, depend: Depend, stands: int, elements: Ranges | None, now: float) -> list[ev.Event]:
    """What the new standing of one waiter means."""
    row = cluster.jobs.rows.get(key) or cluster.arrays.rows[key]
    if isinstance(row, Job):
        if row.blocked == stands:
            return []
        if stands == NEVER and depend.orphan:
            reason = TermReason.TERM_ORPHAN_SYSTEM
            return [ev.JobFinished(at=now, key=key, state=JobState.EXIT, reason=reason)]
        return [ev.DependencyJudged(at=now, key=key, stands=stands)]
    changed = _changed(row, stands, row.waiting if elements is None else elements)
    if not changed:
        return []
    if stands == NEVER and depend.orphan:
        reason = TermReason.TERM_ORPHAN_SYSTEM
        return [ev.ElementsKilled(at=now, key=key, elements=changed, reason=reason)]
    whole = None if changed == row.waiting else changed
    return [ev.DependencyJudged(at=now, key=key, stands=stands, elements=whole)]


def _changed(array: Array, stands: int, elements: Ranges) -> Ranges:
    """Those of the elements that did not stand so."""
    if stands == MET:
        return elements.intersect(array.waiting)
    if stands == BLOCKED:
        return elements.intersect(array.never)
    return elements.intersect(array.waiting).minus(array.never)


def _settle_elements(cluster: Cluster, condition: Condition, now: float, local: Local) -> list[ev.Event]:
    events: list[ev.Event] = []
    for key in condition.waiters:
        array = cluster.arrays.rows.get(key)
        wanted = array.waiting if array is not None else Ranges.span(key >> 32, key >> 32)
        met, never = elements_met(cluster, condition.depend, wanted, local)
        for stands, elements in ((MET, met), (NEVER, never), (BLOCKED, wanted.minus(met).minus(never))):
            if elements:
                events += _judged(cluster, key, condition.depend, stands, elements, now)
    return events
