"""Looks whether goals of service classes with CONTROL_ACTION are reached, and has the action run for those that are missed.

Rule, as in LSF: an action runs when a goal has been missed for its violation period without a break, and again each time that the
period is over; for each goal by itself. Since when goals are missed is kept: a new master goes on counting.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol

from config.model.guarantees import ControlAction, Goal, ServiceClass
from lavad.boottime import boottime
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.events import GoalsMissed
from lavad.core.lang.asks import Refused
from lavad.core.plan.volatile import Soft
from lavad.core.rules.goals.optimum import HOUR, is_on_time
from lavad.core.rules.goals.work import pursued, seconds_left
from lavad.engine import Engine
from lavad.queries.facts.service_goals import ServiceGoals
from lavad.queries.frame.view import Reader, View
from lavad.store.errors import StoreError
from proto.daemon.workers import Workers

log = logging.getLogger(__name__)

PAUSE = 20.0
"""Seconds between two looks; violation periods are minutes."""
Missed = tuple[str, Goal]
"""(service class, goal of it)."""
Note = Callable[[Sequence[tuple[str, Goal, float]]], Awaitable[object]]
"""Keeps which goals are missed, and since when (seconds since the epoch). Raises Refused."""


async def note_missed(engine: Engine, missed: Sequence[tuple[str, Goal, float]]) -> None:
    """``Note`` of a master."""
    await engine.ask(lambda _, now: Decided(events=[GoalsMissed(at=now, missed=tuple(missed))]))


class Act(Protocol):
    """``action.Actions``."""

    async def run(self, service: str, goal: Goal, action: ControlAction) -> None: ...


class Violations:
    """Since when goals are missed: pure."""

    def __init__(self, since: Mapping[Missed, float] | None = None) -> None:
        self.since: dict[Missed, float] = dict(since or {})

    def due(self, missed: Collection[tuple[Missed, float]], now: float) -> list[Missed]:
        """Those of what is missed (with its period, s) whose period is over, which begins anew; all others are reached."""
        self.since = {key: self.since.get(key, now) for key, _ in missed}
        over = [key for key, period in missed if now - self.since[key] >= period]
        self.since.update(dict.fromkeys(over, now))
        return over


class GoalWatch:
    """Those of all service classes."""

    def __init__(
        self, cluster: Cluster, soft: Soft, opened: Callable[[], Reader], act: Act, note: Note, clock: Callable[[], float]
    ) -> None:
        self._cluster = cluster
        self._soft = soft
        self._opened = opened
        self._act = act
        self._note = note
        self._clock = clock
        self._violations: Violations | None = None
        self._reading = Workers("jobs of service classes that ended")

    async def run(self) -> None:
        """Serve for ever."""
        while True:
            await asyncio.sleep(PAUSE)
            await self.turn(boottime())

    async def turn(self, at: float) -> None:
        """Look once; ``at``: seconds of a clock that nobody sets."""
        if self._violations is None:
            age, kept = self._clock() - at, self._cluster.goals_missed
            self._violations = Violations({(name, goal): min(at, since - age) for name, goal, since in kept})
        services = {one.name: one for one in self._cluster.conf.service_classes if one.control_action is not None}
        missed: list[Missed] = []
        if services:
            try:
                view, now = View(self._cluster, self._soft, self._opened), self._clock()
                ended = await self._reading.run(self._ended, view, now) if _has_throughput(services.values()) else {}
                goals, period = ServiceGoals(view, now), max(1, view.params.clean_period)
                rates = {name: ended.get(name, 0) * HOUR / period for name in services}
                missed = [key for one in services.values() for key in self._missed(one, goals, rates[one.name])]
            except StoreError as error:
                log.warning("whether service classes reach their goals is not known: %s", error)
                return
        actions = {name: one.control_action for name, one in services.items()}
        periods = [((name, goal), float(action.seconds)) for name, goal in missed if (action := actions[name]) is not None]
        before = dict(self._violations.since)
        over = self._violations.due(periods, at)
        if self._violations.since != before:
            await self._keep(self._violations.since, at)
        for name, goal in over:
            if (action := actions[name]) is not None:
                await self._act.run(name, goal, action)

    async def _keep(self, since: Mapping[Missed, float], at: float) -> None:
        age = self._clock() - at
        try:
            await self._note([(name, goal, began + age) for (name, goal), began in since.items()])
        except Refused as refusal:
            log.warning("since when goals of service classes are missed is not kept: %s", refusal.text)

    def _ended(self, view: View, now: float) -> dict[str, int]:
        """Service class to the jobs that ended within CLEAN_PERIOD. Reads the store: not for the thread of the loop."""
        found: dict[str, int] = {}
        for mark in view.finished_marks(now - view.params.clean_period):
            if name := view.service_classes.with_goals(view.spec_numbered(mark.spec)):
                found[name] = found.get(name, 0) + 1
        return found

    def _missed(self, one: ServiceClass, goals: ServiceGoals, rate: float) -> Iterator[Missed]:
        """``rate``: jobs of it that end in an hour."""
        work = goals.work(one)
        for goal in pursued(one, goals.clock):
            if not is_on_time(goal, work, seconds_left(goal, goals.clock), rate):
                yield one.name, goal


def _has_throughput(services: Collection[ServiceClass]) -> bool:
    return any(goal.kind == "throughput" for one in services for goal in one.goals)
