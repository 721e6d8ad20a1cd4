"""A whole site under seeded faults: what nothing may start in spite of is in ``site_master``, its seed in the failure's text."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

from lavad.core import events as ev
from tests.sim.site.site import SiteSimulation

SEEDS = max(4, int(os.environ.get("LAVA_SIM_SEEDS", "32")) // 8)

OFTEN = (
    "DependencyJudged",
    "JobModified",
    "JobSwitched",
    "HostSwitched",
    "QueueSwitched",
    "Configured",
    "AdvanceReservationSet",
    "GroupSet",
    "JobMoved",
)
NOW_AND_THEN = (
    "by element",
    "in a reservation",
    "AdvanceReservationEnded",
    "JobSuspended",
    "JobGrew",
    "JobHeld",
    "HostLeft",
    "SlotsReserved",
)


def names_of(event: ev.Event) -> Iterator[str]:
    yield type(event).__name__
    if isinstance(event, ev.SpecAdded) and event.value.reservation:
        yield "in a reservation"
    if isinstance(event, ev.JobSubmitted) and event.depend is not None and "[*]" in event.depend.text:
        yield "by element"


def test_a_site_with_all_that_users_and_administrators_do() -> None:
    """Nothing is lost or twice, and nothing starts before its condition holds, without its licences, or where it may not."""
    happened: Counter[str] = Counter()
    for seed in range(21, 21 + SEEDS):
        simulation = SiteSimulation(seed).run()
        happened.update(name for event in simulation.disk.events for name in names_of(event))
    for kind in OFTEN:
        assert happened[kind] > SEEDS, happened
    for kind in NOW_AND_THEN:
        assert happened[kind], happened
