"""A plan of many starts keeps nobody waiting: it is taken in parts, and what users ask meanwhile is decided between them."""

from __future__ import annotations

import asyncio

import pytest

from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.placement import placement
from lavad.core.job.job import Placed
from lavad.core.plan.plan import Placement, Plan
from lavad.core.site.conf import Conf
from lavad.core.site.host import Facts
from lavad.engine import Engine
from lavad.services.plans import Acceptance
from tests.support.worlds.office import Office, bsub

JOBS = 6


def site(cluster: Cluster, now: float) -> Decided:
    """A host with a slot for each of the jobs."""
    configured = ev.Configured(at=now, conf=Conf(queues=(QueueConfig(name="normal"),)))
    joined = ev.HostJoined(at=now, host="h", facts=Facts(ncpus=JOBS))
    return Decided(events=[configured, joined, ev.HostUp(at=now, host="h")])


def test_a_user_is_answered_between_the_parts_of_a_plan(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """And each part is one commit, which the scheduler hears of as of any other."""
    monkeypatch.setattr(placement, "AT_ONCE", 2)

    async def work(engine: Engine) -> bool:
        await engine.ask(site)
        for _ in range(JOBS):
            await engine.ask(bsub, user="eve")
        part = (Placed(host="h", slots=1),)
        plan = Plan(engine.cluster.version, tuple(Placement(job, part) for job in range(1, JOBS + 1)))
        office.told.clear()
        taking = asyncio.ensure_future(Acceptance(engine).accept(plan))
        for _ in range(2):
            await engine.ask(bsub, user="ann")
        return await taking

    assert office.serve(work) is False  # nothing of it is recorded
    starts = [[event.key for event in told.events if type(event) is ev.JobDispatched] for told in office.told]
    assert [keys for keys in starts if keys] == [[1, 2], [3, 4], [5, 6]]
    asked = [at for at, told in enumerate(office.told) if any(type(event) is ev.JobSubmitted for event in told.events)]
    assert len(asked) == 2
    assert max(asked) < len(office.told) - 1
    office.check()


def test_a_plan_counts_for_nothing_once_its_scheduler_is_started_again(office: Office) -> None:
    """It may be of changes that were undone."""
    started = 1

    async def work(engine: Engine) -> tuple[int, int]:
        nonlocal started
        await engine.ask(site)
        await engine.ask(bsub)
        acceptance = Acceptance(engine, lambda: started)
        plan = Plan(engine.cluster.version, (Placement(1, (Placed(host="h", slots=1),)),))
        accepting = asyncio.ensure_future(acceptance.accept(plan))
        await asyncio.sleep(0)
        started += 1
        await accepting
        undone = len(engine.cluster.started)
        await acceptance.accept(plan)
        return undone, len(engine.cluster.started)

    assert office.serve(work) == (0, 1)
    office.check()
