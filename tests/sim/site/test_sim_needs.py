"""A site with all that jobs may ask of hosts, under seeded faults; its seed is in the failure's text."""

from __future__ import annotations

import os
from collections import Counter

from lavad.core import events as ev
from tests.sim.site.needs import NeedsSimulation

SEEDS = max(2, int(os.environ.get("LAVA_SIM_SEEDS", "32")) // 16)
FIRST = 100


def test_a_site_with_all_that_jobs_may_ask_of_hosts() -> None:
    """Nothing is lost or twice, no start is beyond what there is, no plan depends on what the scheduler remembers, all ends."""
    happened: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + SEEDS):
        for event in NeedsSimulation(seed).run().disk.events:
            happened[type(event).__name__] += 1
            if isinstance(event, ev.JobDispatched):
                happened["CPUs"] += any(part.binds for part in event.parts)
                happened["GPUs"] += any(part.gpus for part in event.parts)
                happened["memory"] += any("mem" in dict(part.reserved) for part in event.parts)
    for kind in ("CPUs", "GPUs", "memory", "SlotsReserved", "JobRequeued", "HostDown"):
        assert happened[kind], happened
