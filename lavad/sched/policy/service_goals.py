"""Service classes with goals in time: how many more of their jobs may start now.

Rule, as in LSF: a class gets as many jobs as its goals need at once, before all others, and no more while it pursues them; limits
of queues, users and hosts hold as ever. Jobs of a class that pursues a goal are not preempted, and not put into chunks.
"""

from __future__ import annotations

from collections import Counter

from lavad.core.job.spec import Spec
from lavad.core.rules.goals.work import elements_waiting, optimum_now, work_of
from lavad.core.rules.ledger import UNLIMITED
from lavad.core.rules.limits import Room
from lavad.core.site.pend_reason import PendReason
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.goal_cache import GoalCache

LOOK_AGAIN = 60.0
"""Seconds: with time alone a deadline comes nearer, and jobs take longer than it was thought."""


class ServiceGoals:
    """The classes that pursue goals in one cycle."""

    def __init__(self, state: CycleState, goals: GoalCache) -> None:
        self._state = state
        self.cache = goals
        self._has: Counter[str] = Counter()
        """Jobs of each class that have slots, or for which some are held."""
        self._most: dict[str, int] = {}
        self._begun = 0
        """How many of those that the ledger has noted are counted."""
        cluster = state.cluster
        self._held = {cluster.get(key).spec for key in cluster.promised}
        held = Counter(name for key in cluster.promised if (name := goals.active(cluster.spec_of(key))))
        started = goals.started(cluster) if goals.pursued else {}
        pending = cluster.pending
        has_deadline = any(goal.kind == "deadline" for one in goals.pursued.values() for goal in one)
        elements = elements_waiting(cluster) if has_deadline else Counter()
        for name, pursued in goals.pursued.items():
            self._has[name] = len(started[name]) + held[name]
            jobs = ((len(pending[number]) + elements[number], expected) for number, expected in goals.members[name].items())
            work = work_of(jobs, started[name].values(), cluster.paces.rows.get(name), state.now)
            work = work._replace(waiting=max(0, work.waiting - held[name]))
            self._most[name] = optimum_now(pursued, work, state.clock)
            if any(goal.kind != "velocity" for goal in pursued) and self._has[name] + work.waiting > self._most[name]:
                state.wake(state.now + LOOK_AGAIN)

    def left(self, spec: Spec) -> Room:
        """Slots that jobs of a spec may take, and the reason when they are too few."""
        name = self.cache.active(spec)
        if not name or self._state.limits.for_started_jobs:
            return UNLIMITED, 0
        self._catch_up()
        return max(0, self._most[name] - self._has[name]) * max(spec.slots, spec.max_slots), PendReason.SLA_OPTIMUM

    def is_full(self, number: int) -> bool:
        """Whether a class of jobs need not be looked at: its service class has what its goals need, and it holds no slots."""
        most = self._most.get(self.cache.names.get(number, ""))
        if most is None or number in self._held:
            return False
        self._catch_up()
        return self._has[self.cache.names[number]] >= most

    def _catch_up(self) -> None:
        """Count the jobs that got slots since."""
        begun = self._state.ledger.begun
        for spec in begun[self._begun :]:
            self._has[self.cache.active(spec)] += 1
        self._begun = len(begun)
