"""Leases of jobs, of their queues and of the site."""

from __future__ import annotations

import pytest

from config.model.queue import QueueConfig
from lavad.core.cluster.leases import shortest_lease
from lavad.core.site.conf import Params
from tests.support.worlds.world import World


@pytest.mark.parametrize(("of_queues", "shortest"), [((None,), 600.0), ((120, None), 120.0), ((900,), 600.0)])
def test_agents_of_the_version_before_renew_by_the_shortest_lease(of_queues: tuple[int | None, ...], shortest: float) -> None:
    """They know one lease for all: a longer one could outlive the requeue of a job with a shorter one."""
    world = World()
    queues = tuple(QueueConfig(name=f"q{at}", lease=lease) for at, lease in enumerate(of_queues))
    world.configure(queues=queues, params=Params(lava_lease=600))
    assert shortest_lease(world.cluster) == shortest
