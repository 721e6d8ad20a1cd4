"""Where no host has anything free, jobs that wait still say why they wait now, not why they did when the last slot was taken."""

from __future__ import annotations

import pytest

from config.model.queue import QueueConfig
from config.model.values import Preemption
from lavad.core.plan.volatile import WhyClass
from lavad.sched.state import scheduler_cache
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.world import World


class Site(World):
    """Keeps what the scheduler has said of each class, as the master does."""

    def __init__(self, few: int = 64) -> None:
        super().__init__()
        self.cache = SchedulerCache(few=few)
        self.said: dict[int, WhyClass] = {}

    def cycle(self) -> None:
        plan = self.schedule(self.cache)
        self.accept(plan)
        self.said |= plan.why
        self.later(1)

    def reasons(self, job: int) -> set[tuple[int, tuple[str, ...]]]:
        return {(code, hosts) for code, _, hosts in self.said[self.cluster.jobs.rows[job].spec].reasons}


def fresh(site: Site, job: int) -> set[tuple[int, tuple[str, ...]]]:
    why = site.schedule(SchedulerCache()).why[site.cluster.jobs.rows[job].spec]
    return {(code, hosts) for code, _, hosts in why.reasons}


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize("preempts", [False, True])
def test_of_a_host_that_is_closed_it_says_so_though_all_are_full(few: int, preempts: bool) -> None:
    site = Site(few)
    takes = Preemption(preemptive=True, preempts=(("low", None),)) if preempts else Preemption()
    site.queues(QueueConfig(name="q", priority=30, preemption=takes), QueueConfig(name="low", priority=1))
    site.hosts("h1", "h2", slots=1)
    running = [site.submit(queue="q") for _ in range(2)]
    waiting = site.submit(queue="q")
    site.cycle()
    site.cycle()
    assert len(site.reasons(waiting)) == 1
    for host in ("h1", "h2"):
        site.host_switch(host, closed=True)
        site.cycle()
        site.cycle()
        assert site.reasons(waiting) == fresh(site, waiting)
    assert len(site.reasons(waiting)) == 1
    for job in running:
        site.finish(job)
        site.cycle()
        assert site.reasons(waiting) == fresh(site, waiting)
    site.host_switch("h1", closed=False)
    site.cycle()
    assert waiting in site.running()


def test_of_many_classes_each_says_so_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_cache, "LOOKS", 3)
    site = Site()
    site.hosts("h1", "h2", slots=1)
    jobs = [site.submit(project=f"p{number}") for number in range(12)]
    site.cycle()
    site.cycle()
    site.host_switch("h1", closed=True)
    for _ in range(12):
        site.cycle()
    for job in jobs[2:]:
        assert site.reasons(job) == fresh(site, job)
