"""A plan does not depend on the scheduler's memory, and is accepted as a whole."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings

from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.plan.plan import Plan
from lavad.sched.cycle import still_blocked
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.examples import examples
from tests.support.worlds.elastic import begin
from tests.support.worlds.mixed_site import STEADY, act, make_world, sites, stories
from tests.support.worlds.world import World

FIELDS = ("placements", "chunks", "preemptions", "resumes", "suspensions", "releases", "holds", "deadlocked", "promises")
MORE = ("growths", "run_limits", "extensions", "why_job")


def check_accepted(world: World, plan: Plan) -> None:
    """What a plan says becomes true as a whole, once."""
    events = world.accept(plan)
    kinds = Counter(type(event) for event in events)
    assert kinds[ev.JobDispatched] + kinds[ev.SlotsReserved] == len(plan.placements) + len(plan.holds)
    assert kinds[ev.JobResumed] == len(plan.resumes)
    assert kinds[ev.SlotsReleased] == len(plan.releases)
    assert {one.beneficiary for one in plan.preemptions} <= {placement.key for placement in plan.placements}
    again = accept_plan(world.cluster, plan, world.now, "again")
    assert not any(isinstance(event, ev.JobDispatched) for event in again)


def check_world(world: World) -> None:
    cluster = world.cluster
    check_invariants(cluster)
    for use in cluster.use.hosts.values():
        assert use.slots <= 4
        assert use.reserved.get("mem", 0.0) <= 16_000
        assert use.exclusive == 0 or len(use.jobs) <= 1
    assert sum(use.reserved.get("lic", 0.0) for use in cluster.use.hosts.values()) <= 2.0
    of = [cluster.service_classes.with_goals(cluster.spec_of(key)) for key in (*cluster.started, *cluster.promised)]
    assert STEADY not in cluster.conf.service_classes or of.count("steady") <= 2


@settings(max_examples=examples(60))
@given(sites, stories)
def test_a_plan_does_not_depend_on_what_the_scheduler_remembers(
    site: dict[str, Any], story: list[tuple[tuple[Any, ...], bool]]
) -> None:
    world = make_world(site)
    columns, hurried = SchedulerCache(few=1), SchedulerCache(few=1)
    for action, is_followed in story:
        act(world, site["queues"], action)
        check_world(world)
        for _ in range(2 if is_followed else 0):
            plan, by_columns = world.schedule(), world.schedule(columns)
            fresh, fresh_columns = world.schedule(SchedulerCache()), world.schedule(SchedulerCache(few=1))
            with patch.object(still_blocked, "LOOKS", 0):
                in_haste = world.schedule(hurried)
            # what a queue deserves depends on which jobs are known to wait in vain
            for field in () if site["owns"] else (*FIELDS, *MORE):
                found = [getattr(one, field) for one in (plan, fresh, by_columns, fresh_columns)]
                assert found[1] == found[0], f"{field}: rows with a memory"
                assert found[1] == found[2], f"{field}: columns with a memory"
                assert found[1] == found[3], f"{field}: columns"
                if field != "why_job":
                    assert found[0] == getattr(in_haste, field), f"{field}: without time for new reasons"
            check_accepted(world, plan)
            check_world(world)
            for key in {*(one.key for one in plan.placements), *(one.key for one in plan.growths)}.intersection(
                world.cluster.started
            ):
                begin(world, key)
