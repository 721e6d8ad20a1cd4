"""A whole site under seeded faults: what nothing may start in spite of is in ``site_master``, its seed in the failure's text."""

from __future__ import annotations

import os
from collections import Counter

from tests.sim.site import SiteSimulation

SEEDS = max(4, int(os.environ.get("LAVA_SIM_SEEDS", "32")) // 8)


def test_a_site_with_all_that_users_and_administrators_do() -> None:
    """Nothing is lost or twice, and nothing starts before its condition holds, without its licences, or where it may not."""
    happened: Counter[str] = Counter()
    for seed in range(21, 21 + SEEDS):
        simulation = SiteSimulation(seed).run()
        happened.update(type(event).__name__ for event in simulation.disk.events)
    often = (
        "DependencyJudged JobModified JobSwitched HostSwitched QueueSwitched Configured AdvanceReservationSet GroupSet JobMoved"
    )
    for kind in often.split():
        assert happened[kind] > SEEDS, happened
    for kind in ("AdvanceReservationEnded", "JobSuspended", "JobGrew", "JobHeld", "HostLeft", "SlotsReserved"):
        assert happened[kind], happened
