"""The values of a host are the same for jobs (bsub -R) and for advance reservations (brsvadd -R)."""

from __future__ import annotations

from datetime import datetime

import pytest

from lavad.core.decide.reserve.reservations import add
from lavad.core.lang.asks import AddReservation, Caller
from tests.support.worlds.world import World

ROOT = Caller(user="root", uid=0, host="h1")


@pytest.mark.parametrize("requirement", ["cpuf > 0", "ngpus_physical == 2", "ncpus == 4", "rexpri == 0", "maxslots == 4"])
def test_a_reservation_and_a_job_understand_the_same_requirement(requirement: str) -> None:
    world = World()
    world.hosts("h1", "h2", slots=4, gpus=2)
    job = world.submit(resreq=f"select[{requirement}]")
    assert [placement.key for placement in world.schedule().placements] == [job]
    local = datetime.fromtimestamp(world.now)
    ask = AddReservation(
        users="alice", slots=2, resreq=f"select[{requirement}]", begin="2026:12:31:10:00", end="2026:12:31:11:00"
    )
    assert add(world.cluster, ask, ROOT, world.now, local).events
