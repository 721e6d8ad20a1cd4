"""A trial leaves the cluster as it was, the line of its waiting jobs included."""

from __future__ import annotations

import pytest

from config.model.values import Limits
from lavad.core import events as ev
from lavad.core.decide.modify.permitted import Permitted
from lavad.core.lang.ids import key_of
from lavad.sched.ask.estimate import estimate
from lavad.sched.ask.trial import Moment, trial
from lavad.sched.ask.what_if import find_changes
from lavad.sched.line.line import SLACK
from tests.support.worlds.world import World


def test_waiting_jobs_are_in_order_after_it() -> None:
    """Undone, a job comes back as the last of its class, and each later plan would put the whole class in order again."""
    world = World()
    world.hosts("h1", slots=4)
    world.submit(user="bob", slots=4, limits=Limits(run=600))
    world.step()
    jobs = [world.submit(slots=2, limits=Limits(run=60)) for _ in range(5)]
    array = world.submit(array="1-5", user="carol")
    world.cluster.forget_changes()
    before = {number: ([*waiting], waiting.ordered) for number, waiting in world.cluster.pending.items()}
    line = [placement.key for placement in world.schedule().placements]
    moment = Moment(world.cluster, world.soft, world.now, world.local)
    for key in (jobs[0], jobs[2], key_of(array, 2)):
        find_changes(moment, key, Permitted.of(moment.cluster, key))
        estimate(moment, key)
        assert {number: ([*waiting], waiting.ordered) for number, waiting in world.cluster.pending.items()} == before
    assert all(ordered for _, ordered in before.values())
    assert [placement.key for placement in world.schedule().placements] == line


@pytest.mark.parametrize("ordered", [True, False])
def test_a_cache_that_has_seen_a_trial_plans_every_job_afterwards(ordered: bool) -> None:
    """Inside, all jobs leave the line, come back and are planned: their numbers of then mean nothing after it."""
    world = World()
    world.hosts("h1", slots=1)
    jobs = [world.submit() for _ in range(SLACK + 20)]
    if not ordered:
        world.apply(ev.JobMoved(at=world.now, key=jobs[-1], position=-1.0, by="alice"))
        jobs = [jobs[-1], *jobs[:-1]]
    world.cluster.forget_changes()
    world.schedule()
    with trial(world.cluster):
        for verb in (ev.JobHeld, ev.JobReleased) * 2:
            world.apply(*(verb(at=world.now, key=key) for key in jobs[-2::-1]))
            world.schedule()
    late = world.submit(held=True)
    world.cluster.forget_changes()
    world.apply(ev.JobMoved(at=world.now, key=jobs[2], position=-2.0, by="alice"), ev.JobReleased(at=world.now, key=late))
    begun = []
    for _ in range(len(jobs) + 1):
        [(key, _)] = world.step().items()
        begun.append(key)
        world.finish(key)
    assert begun == [jobs[2], *jobs[:2], *jobs[3:], late]
