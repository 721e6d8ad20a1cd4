"""A site with all that decides who goes first and where, under seeded faults; its seed is in the failure's text."""

from __future__ import annotations

import os
from collections import Counter

from lavad.core import events as ev
from tests.sim.site.policies import PolicySimulation

SEEDS = max(2, int(os.environ.get("LAVA_SIM_SEEDS", "32")) // 16)
FIRST = 60


def test_a_site_with_pools_goals_windows_load_and_gpus() -> None:
    """Nothing is lost or twice, no plan depends on what the scheduler remembers, and all ends."""
    happened: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + SEEDS):
        simulation = PolicySimulation(seed).run()
        for event in simulation.disk.events:
            happened[type(event).__name__] += 1
            if isinstance(event, ev.SpecAdded):
                happened["GPUs"] += event.value.gpu is not None
                happened[f"class {event.value.service_class}"] += 1
                happened[event.value.user] += 1
    for kind in ("JobSuspended", "JobResumed", "GpuSwitched", "GPUs", "class gold", "class silver", "bob", "carol"):
        assert happened[kind], happened
