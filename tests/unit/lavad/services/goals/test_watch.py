"""Goals that are missed: after its violation period, and each time that this is over, the action of a class runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from unittest.mock import patch

from msgspec.structs import replace

from config.model.guarantees import ControlAction, Goal, ServiceClass
from lavad.core.events import Configured, GoalsMissed
from lavad.core.job.spec import Spec
from lavad.core.site.service_classes import ServiceClasses
from lavad.services.goals.watch import GoalWatch, Violations
from tests.support.worlds.query_cluster import QueryCluster

FAST, SLOW = Goal("velocity", 5, "9:00-17:00"), Goal("throughput", 6, "8:00-18:00")
ACTION = ControlAction(600, "tell")


def test_a_period_begins_when_a_goal_is_missed_and_again_when_it_is_over() -> None:
    violations, a, b = Violations(), ("a", FAST), ("b", FAST)
    assert violations.due([(a, 600.0)], 1000.0) == []
    assert violations.due([(a, 600.0), (b, 60.0)], 1599.0) == []
    assert violations.due([(a, 600.0), (b, 60.0)], 1600.0) == [a]
    assert violations.due([(a, 600.0), (b, 60.0)], 1700.0) == [b]
    assert violations.due([(a, 600.0)], 2199.0) == []
    assert violations.due([(a, 600.0)], 2200.0) == [a]


def test_a_goal_that_is_reached_meanwhile_begins_anew() -> None:
    violations, a = Violations(), ("a", FAST)
    assert violations.due([(a, 600.0)], 1000.0) == []
    assert violations.due([], 1500.0) == []
    assert violations.due([(a, 600.0)], 1700.0) == []
    assert violations.due([(a, 600.0)], 2300.0) == [a]


class Noted:
    """What is run, in place of the site's command."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, str]] = []

    async def run(self, service: str, goal: Goal, action: ControlAction) -> None:
        self.found.append((service, str(goal), action.command))


def cluster_of(*goals: Goal, action: ControlAction | None = ACTION) -> QueryCluster:
    c = QueryCluster(clean_period=3600)
    services = (ServiceClass(name="a", goals=goals, control_action=action),)
    c.feed(Configured(at=c.now, conf=replace(c.cluster.conf, service_classes=services)))
    for number in range(1, 9):
        c.submit(number, service_class="a", limits={"run": 1200})
    return c


def looks(c: QueryCluster, *times: float) -> list[tuple[str, str, str]]:
    """What one master runs that looks at these seconds of its machine's clock; the time of day goes on with that."""
    noted, began = Noted(), c.now

    async def note(missed: Sequence[tuple[str, Goal, float]]) -> None:
        c.feed(GoalsMissed(at=c.now, missed=tuple(missed)))

    watch = GoalWatch(c.cluster, c.soft, lambda: c.store, noted, note, lambda: c.now)

    async def look() -> None:
        for at in times:
            c.now = began + at - times[0]
            await watch.turn(at)

    asyncio.run(look())
    return noted.found


def test_for_each_goal_that_is_missed_the_action_runs() -> None:
    assert looks(cluster_of(FAST, SLOW), 0.0, 599.0) == []
    assert looks(cluster_of(FAST, SLOW), 0.0, 600.0) == [("a", "VELOCITY 5", "tell"), ("a", "THROUGHPUT 6", "tell")]
    assert len(looks(cluster_of(FAST), 0.0, 600.0, 900.0, 1200.0)) == 2


def test_a_new_master_goes_on_counting() -> None:
    """Its machine's clock is another one. A goal that was reached meanwhile, or whose period was over, begins anew."""
    c = cluster_of(FAST, SLOW)
    assert looks(c, 1000.0, 1400.0) == []
    c.now += 100.0
    assert [goal for _, goal, _ in looks(c, 7.0, 106.0)] == []
    c.now += 1.0
    assert [goal for _, goal, _ in looks(c, 90_000.0)] == ["VELOCITY 5", "THROUGHPUT 6"]
    c.now += 599.0
    assert looks(c, 20.0) == []
    for number in range(1, 6):
        c.start(number)
    assert looks(c, 21.0) == []
    assert c.cluster.goals_missed == ()


def test_a_clock_that_was_set_back_ends_no_period_early() -> None:
    c = cluster_of(FAST)
    assert looks(c, 0.0) == []
    c.now -= 3600.0
    assert looks(c, 10.0, 609.0) == []
    assert len(looks(c, 10.0, 609.0, 610.0)) == 1


def test_not_of_one_that_is_reached_nor_outside_of_its_window_nor_without_action() -> None:
    c = cluster_of(FAST, SLOW)
    for number in range(1, 6):
        c.start(number)
    assert looks(c, 0.0, 600.0) == []
    assert looks(cluster_of(Goal("velocity", 5, "17:00-18:00")), 0.0, 600.0) == []
    assert looks(cluster_of(FAST, action=None), 0.0, 600.0) == []


def test_a_throughput_that_is_reached_by_what_has_ended() -> None:
    c = cluster_of(SLOW)
    for number in range(1, 7):
        c.start(number)
        c.finish(number)
    assert looks(c, 0.0, 600.0) == []


def test_jobs_are_looked_through_once_for_all_classes() -> None:
    assert asks_of(classes=9) == asks_of(classes=1)


def asks_of(classes: int) -> int:
    """How often a look asks which service class a job belongs to."""
    c = cluster_of(FAST)
    services = tuple(ServiceClass(name="abcdefghi"[at], goals=(FAST,), control_action=ACTION) for at in range(classes))
    c.feed(Configured(at=c.now, conf=replace(c.cluster.conf, service_classes=services)))
    asked, real = 0, ServiceClasses.with_goals

    def count(self: ServiceClasses, spec: Spec) -> str:
        nonlocal asked
        asked += 1
        return real(self, spec)

    with patch.object(ServiceClasses, "with_goals", count):
        assert len(looks(c, 0.0, 600.0)) == 1
    return asked
