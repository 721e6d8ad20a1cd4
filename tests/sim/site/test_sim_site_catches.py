"""Each thing that the simulation of a site watches for is shown to be caught: one rule of its master is broken at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.depend import MET
from lavad.core.job.job import Placed
from lavad.core.lang.cpus import Binding
from lavad.core.lang.windows import Local
from lavad.core.plan.plan import Plan
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.sim.must_break import must_break
from tests.sim.site.needs import NeedsMaster, NeedsSimulation
from tests.sim.site.policies import PolicyMaster, PolicySimulation
from tests.sim.site.site import SiteSimulation
from tests.sim.site.site_master import SiteMaster


def with_parts(events: list[ev.Event], change: Callable[[Placed], Placed]) -> list[ev.Event]:
    """Jobs start otherwise than the scheduler has planned it."""
    return [replace(one, parts=tuple(map(change, one.parts))) if isinstance(one, ev.JobDispatched) else one for one in events]


class TakesNoLicences(SiteMaster):
    def accept(self, cluster: Cluster, plan: Plan, now: float, seed: str) -> list[ev.Event]:
        return with_parts(super().accept(cluster, plan, now, seed), lambda part: replace(part, reserved=()))


class StartsOnAClosedHost(SiteMaster):
    def accept(self, cluster: Cluster, plan: Plan, now: float, seed: str) -> list[ev.Event]:
        events = super().accept(cluster, plan, now, seed)
        closed = [name for name, row in cluster.hosts.rows.items() if row.closed]
        return with_parts(events, lambda part: replace(part, host=closed[0])) if closed else events


class JudgesNothing(SiteMaster):
    """Every condition is taken to hold once it has been looked at."""

    def __init__(self, *words: Any) -> None:
        super().__init__(*words)
        assert self.conditions is not None
        settle = self.conditions.settle

        def holds(*asked: Any) -> list[ev.Event]:
            return [replace(one, stands=MET) if isinstance(one, ev.DependencyJudged) else one for one in settle(*asked)]

        self.conditions.settle = holds  # type: ignore[method-assign,assignment]


class SeesNoRoom(SiteMaster):
    """Its scheduler does not notice that a host has more room than before."""

    def __init__(self, *words: Any) -> None:
        super().__init__(*words)
        self.memory.changed.note_room = lambda row: None  # type: ignore[method-assign]


class GivesClosedGpus(PolicyMaster):
    def accept(self, cluster: Cluster, plan: Plan, now: float, seed: str) -> list[ev.Event]:
        closed = {name: tuple(row.closed_devices()) for name, row in cluster.hosts.rows.items()}
        events = super().accept(cluster, plan, now, seed)
        return with_parts(events, lambda part: replace(part, gpus=(part.gpus and closed[part.host]) or part.gpus))


class KeepsNoWindows(PolicyMaster):
    def local(self) -> Local:
        return 1, 20 * 3600


class KeepsNoLimits(NeedsMaster):
    def plan(self, memory: SchedulerCache) -> Plan:
        with self._without_limits():
            return super().plan(memory)

    def accept(self, cluster: Cluster, plan: Plan, now: float, seed: str) -> list[ev.Event]:
        with self._without_limits():
            return super().accept(cluster, plan, now, seed)

    @contextmanager
    def _without_limits(self) -> Iterator[None]:
        conf = self.cluster.conf
        self.cluster.conf = replace(conf, limits=())
        yield
        self.cluster.conf = conf


class BindsAllAlike(NeedsMaster):
    def accept(self, cluster: Cluster, plan: Plan, now: float, seed: str) -> list[ev.Event]:
        first = Binding((0,))
        events = super().accept(cluster, plan, now, seed)
        return with_parts(events, lambda part: replace(part, binds=(first,) * len(part.binds)))


BROKEN: list[tuple[type[SiteSimulation], type[SiteMaster], str]] = [
    (SiteSimulation, TakesNoLicences, r"has 0\.0 of the licences"),
    (SiteSimulation, StartsOnAClosedHost, r"hosts \['h\d'\] are closed"),
    (SiteSimulation, JudgesNothing, "does not hold"),
    (SiteSimulation, SeesNoRoom, "and without memory"),
    (PolicySimulation, GivesClosedGpus, r"GPU.* are closed"),
    (PolicySimulation, KeepsNoWindows, r"of queue \w+ is closed"),
    (NeedsSimulation, KeepsNoLimits, r"are more than Limit"),
    (NeedsSimulation, BindsAllAlike, "are given twice"),
]


@pytest.mark.parametrize(("simulation", "master", "text"), BROKEN, ids=[row[1].__name__ for row in BROKEN])
def test_a_master_that_breaks_a_rule_is_found(simulation: type[SiteSimulation], master: type[SiteMaster], text: str) -> None:
    must_break(text, lambda seed: simulation(seed, master))
