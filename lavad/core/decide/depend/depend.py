"""Evaluation of dependency conditions: which pending jobs may start now, which never can; and bwait.

Rule: a condition is judged again only after a relevant change; the events of one judgement are applied before the next.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.conditions import Condition, Conditions
from lavad.core.cluster.named_jobs import JobSet
from lavad.core.cluster.versioned_table import Table
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.resolve import StoredJobs, resolve
from lavad.core.job.depend import BLOCKED, MET, NEVER, Depend, Jobs, are_many
from lavad.core.job.job import Array, Job
from lavad.core.lang.asks import Caller, Judge
from lavad.core.lang.dependency import Answer, Question
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState, TermReason
from lavad.core.lang.windows import Local
from lavad.core.rules.dependency_eval import Look, SetAnswer, by_element, elements_met, evaluate


class _Judged:
    """The result of the last judgement of a condition."""

    __slots__ = ("reported", "unreported")

    def __init__(self) -> None:
        self.reported = -1
        """State reported to all waiters except ``unreported`` (MET, BLOCKED, NEVER); -1: all waiters must be examined."""
        self.unreported: dict[int, None] = {}
        """Keys of waiters added since then."""


class _Set:
    """What is known of many jobs that conditions name together."""

    __slots__ = ("answers", "by_element")

    def __init__(self) -> None:
        self.answers: dict[Question, SetAnswer] = {}
        self.by_element: dict[Condition, None] = {}
        """Conditions that are judged for each element of an array."""


class ConditionQueue:
    """The conditions that must be judged again; owned by the engine or a simulation, not by the cluster.

    It watches the cluster's index from its construction on; at first all conditions must be judged.
    """

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._known: dict[Condition, _Judged] = {}
        self._due: dict[Condition, None] = {}
        self._sets: dict[JobSet, _Set] = {}
        """Those of many jobs; their conditions are due only when an answer about them changes."""
        self._changed: set[int] = set()
        """Named jobs that have changed since the sets were last looked at."""
        conditions.watcher = self
        self.undone()

    def __bool__(self) -> bool:
        return bool(self._due or self._changed)

    def added(self, condition: Condition, key: int) -> None:
        """See ``Watcher``."""
        known = self._known.get(condition)
        if known is None:
            known = self._begin(condition)
        known.unreported[key] = None
        self._due[condition] = None

    def left(self, condition: Condition, key: int) -> None:
        """See ``Watcher``."""
        self._known[condition].unreported.pop(key, None)

    def dropped(self, condition: Condition, sets: list[JobSet]) -> None:
        """See ``Watcher``."""
        del self._known[condition]
        self._due.pop(condition, None)
        for one in sets:
            self._sets.pop(one, None)
        if by_element(condition.depend):
            for known in self._sets_of(condition):
                known.by_element.pop(condition, None)

    def changed(self, job: int) -> None:
        """See ``Watcher``."""
        self._changed.add(job)

    def undone(self) -> None:
        """Judge all conditions again."""
        self._known, self._due, self._sets, self._changed = {}, {}, {}, set()
        for condition in self._conditions.rows.values():
            self._begin(condition)
            self._due[condition] = None

    def _begin(self, condition: Condition) -> _Judged:
        for jobs in condition.depend.ids:
            if are_many(jobs):
                known = self._sets.setdefault(self._conditions.named.sets[jobs], _Set())
                if by_element(condition.depend):
                    known.by_element[condition] = None
        known_of = self._known[condition] = _Judged()
        return known_of

    def _sets_of(self, condition: Condition) -> Iterator[_Set]:
        """Those that are left of a condition's."""
        sets = self._conditions.named.sets
        for jobs in condition.depend.ids:
            if jobs in sets and (known := self._sets.get(sets[jobs])) is not None:
                yield known

    def time_passed(self) -> None:
        """Judge conditions with a time window again."""
        self._due.update(self._conditions.timed)

    def _ask_many(self, look: Look, question: Question, jobs: Jobs) -> Answer:
        """As ``AskMany``, with what is known already."""
        one = self._conditions.named.sets[jobs]
        answers = self._sets[one].answers
        known = answers.get(question)
        if known is None:
            assert one.many is not None
            known = answers[question] = SetAnswer(look, question, one.many)
        return known.answer

    def _look_at_changed(self, look: Look) -> None:
        """Make due the conditions that name the jobs that have changed; of many jobs, those about which an answer has changed."""
        changed, self._changed = self._changed, set()
        for jobs, those in self._conditions.named.sets_among(changed).items():
            known = self._sets.get(jobs)
            if known is None:
                self._due.update(jobs.conditions)
            else:
                answers = [answer.update(look, those) for answer in known.answers.values()]
                self._due.update(jobs.conditions if any(answers) else known.by_element)

    def settle(self, cluster: Cluster, now: float, local: Local, most: int) -> list[ev.Event]:
        """Judge due conditions, up to about ``most`` events; the rest stays due. Apply the events before the next call."""
        events: list[ev.Event] = []
        look = Look(cluster)
        if self._changed:
            self._look_at_changed(look)
        ask_many = partial(self._ask_many, look)
        while self._due and len(events) < most:
            condition, _ = self._due.popitem()
            if by_element(condition.depend):
                events += _elements_judged(cluster, condition, now, local)
                continue
            known = self._known[condition]
            stands = _stands(evaluate(cluster, condition.depend, local, ask_many))
            found, complete = _waiters_judged(cluster, condition, known, stands, now, most - len(events))
            events += found
            if complete:
                known.reported = stands
                known.unreported.clear()
            else:
                self._due[condition] = None
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
    found = resolve(cluster, ask.condition, caller, False, known, None)
    if found.stands is not None:
        return Decided(answer={"stands": None if found.stands == NEVER else found.stands == MET})
    world = copy.copy(cluster)
    world.ended = Table()
    world.ended.rows = {**cluster.ended.rows, **dict(found.ended)}
    return Decided(answer={"stands": evaluate(world, found.depend, local)})
