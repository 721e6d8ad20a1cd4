"""Evaluation of dependency conditions: which pending jobs may start now, which never can; and bwait.

Rule: a condition is judged again only after a relevant change; the events of one judgement are applied before the next.
"""

from __future__ import annotations

import copy

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.conditions import Condition, Conditions
from lavad.core.cluster.versioned_table import Table
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.resolve import StoredJobs, resolve
from lavad.core.job.depend import BLOCKED, MET, NEVER, Depend
from lavad.core.job.job import Array, Job
from lavad.core.lang.asks import Caller, Judge
from lavad.core.lang.dependency import Answer
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState, TermReason
from lavad.core.lang.windows import Local
from lavad.core.rules.dependency_eval import Memo, by_element, elements_met, evaluate


class _Judged:
    """The result of the last judgement of a condition."""

    __slots__ = ("memo", "reported", "unreported")

    def __init__(self) -> None:
        self.memo = Memo()
        self.reported = -1
        """State reported to all waiters except ``unreported`` (MET, BLOCKED, NEVER); -1: all waiters must be examined."""
        self.unreported: dict[int, None] = {}
        """Keys of waiters added since then."""


class ConditionQueue:
    """The conditions that must be judged again; owned by the engine or a simulation, not by the cluster.

    It watches the cluster's index from its construction on; at first all conditions must be judged.
    """

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._known: dict[Condition, _Judged] = {}
        self._due: dict[Condition, set[int] | None] = {}
        """Conditions to judge, with the named jobs that changed (None: judge as a whole)."""
        conditions.watcher = self
        self.undone()

    def __bool__(self) -> bool:
        return bool(self._due)

    def added(self, condition: Condition, key: int) -> None:
        """See ``Watcher``."""
        known = self._known.setdefault(condition, _Judged())
        known.unreported[key] = None
        self._due.setdefault(condition, set() if known.memo.left else None)

    def left(self, condition: Condition, key: int) -> None:
        """See ``Watcher``."""
        self._known[condition].unreported.pop(key, None)

    def dropped(self, condition: Condition) -> None:
        """See ``Watcher``."""
        del self._known[condition]
        self._due.pop(condition, None)

    def changed(self, condition: Condition, job: int) -> None:
        """See ``Watcher``."""
        jobs = self._due.setdefault(condition, set())
        if jobs is not None:
            jobs.add(job)

    def undone(self) -> None:
        """Judge all conditions again."""
        conditions = self._conditions.rows.values()
        self._known = {condition: _Judged() for condition in conditions}
        self._due = dict.fromkeys(conditions)

    def time_passed(self) -> None:
        """Judge conditions with a time window again."""
        for condition in self._conditions.timed:
            self._due.setdefault(condition, set())

    def settle(self, cluster: Cluster, now: float, local: Local, most: int) -> list[ev.Event]:
        """Judge due conditions, up to about ``most`` events; the rest stays due. Apply the events before the next call."""
        events: list[ev.Event] = []
        while self._due and len(events) < most:
            condition, changed = self._due.popitem()
            if by_element(condition.depend):
                events += _elements_judged(cluster, condition, now, local)
                continue
            known = self._known[condition]
            stands = _stands(evaluate(cluster, condition.depend, local, known.memo, changed))
            found, complete = _waiters_judged(cluster, condition, known, stands, now, most - len(events))
            events += found
            if complete:
                known.reported = stands
                known.unreported.clear()
            else:
                self._due[condition] = set()
                break
        return events


def _stands(answer: Answer) -> int:
    return NEVER if answer is None else MET if answer else BLOCKED


def _waiters_judged(
    cluster: Cluster, condition: Condition, known: _Judged, stands: int, now: float, most: int
) -> tuple[list[ev.Event], bool]:
    """(events of the waiters, whether these are all); where the state is reported already, only new waiters are examined."""
    events: list[ev.Event] = []
    for key in known.unreported if stands == known.reported else condition.waiters:
        if len(events) >= most:
            return events, False
        events += _judged(cluster, key, condition.depend, stands, None, now)
    return events, True


def _judged(cluster: Cluster, key: int, depend: Depend, stands: int, elements: Ranges | None, now: float) -> list[ev.Event]:
    """Events for the new state of one waiter's condition."""
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
    """Those of the elements that had another state."""
    if stands == MET:
        return elements.intersect(array.waiting)
    if stands == BLOCKED:
        return elements.intersect(array.never)
    return elements.intersect(array.waiting).minus(array.never)


def _elements_judged(cluster: Cluster, condition: Condition, now: float, local: Local) -> list[ev.Event]:
    """Events of a condition that is judged for each element of an array."""
    events: list[ev.Event] = []
    for key in condition.waiters:
        array = cluster.arrays.rows.get(key)
        wanted = array.waiting if array is not None else Ranges.span(key >> 32, key >> 32)
        met, never = elements_met(cluster, condition.depend, wanted, local)
        for stands, elements in ((MET, met), (NEVER, never), (BLOCKED, wanted.minus(met).minus(never))):
            if elements:
                events += _judged(cluster, key, condition.depend, stands, elements, now)
    return events


def judge(cluster: Cluster, ask: Judge, caller: Caller, local: Local, known: StoredJobs) -> Decided:
    """bwait: answer ``stands`` is True, False, or None where it can never be met. Raises Refused, NeedsLookup."""
    depend, ended = resolve(cluster, ask.condition, caller, False, known, None)
    world = copy.copy(cluster)
    world.ended = Table()
    world.ended.rows = {**cluster.ended.rows, **dict(ended)}
    return Decided(answer={"stands": evaluate(world, depend, local)})
