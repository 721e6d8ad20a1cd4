"""A trial leaves the cluster as it was, the line of its waiting jobs included."""

from __future__ import annotations

from config.model.values import Limits
from lavad.core.lang.ids import key_of
from lavad.sched.ask.estimate import estimate
from lavad.sched.ask.trial import Moment
from lavad.sched.ask.what_if import find_changes
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
    before = {number: ([*waiting.keys], waiting.ordered) for number, waiting in world.cluster.pending.items()}
    line = [placement.key for placement in world.schedule().placements]
    moment = Moment(world.cluster, world.soft, world.now, world.local)
    for key in (jobs[0], jobs[2], key_of(array, 2)):
        find_changes(moment, key)
        estimate(moment, key)
        assert {number: ([*waiting.keys], waiting.ordered) for number, waiting in world.cluster.pending.items()} == before
    assert all(ordered for _, ordered in before.values())
    assert [placement.key for placement in world.schedule().placements] == line
